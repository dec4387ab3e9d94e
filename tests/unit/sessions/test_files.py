"""Reading files of JSON lines and trees, in chunks of any size and while they are written."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_mux.sdk import facts, session_files
from agent_mux.sdk.session_files import JsonLinesReader, RowTree, parse_timestamp
from agent_mux.sdk.sessions import SessionEntry

TREE = RowTree(id="id", parent="parent", starts=lambda row: row.get("prompt") is True)


def texts(cursor: JsonLinesReader) -> list[str]:
    return [entry.fact.text for entry in cursor.read() if isinstance(entry.fact, facts.WholeText)]


def cursor_of(path: Path) -> JsonLinesReader:
    return JsonLinesReader(path, lambda row: (SessionEntry(None, facts.WholeText(row["text"])),))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
def test_the_chunk_size_does_not_change_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(session_files, "READ_SIZE", size)
    lines = ["one", "zwei ü", "\u2028", "x" * 100]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\r\n".join(msgspec.json.encode({"text": text}) for text in lines) + b"\n\n \n")
    assert texts(cursor_of(path)) == lines


def test_an_incomplete_line_is_read_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = b'{"text":"one"}\n{"text":"two"}\n'
    cursor = None
    seen: list[str] = []
    for end in range(1, len(whole) + 1):
        path.write_bytes(whole[:end])
        cursor = cursor or cursor_of(path)
        seen += texts(cursor) if end > 14 or end % 5 == 0 else []
    assert seen == ["one", "two"]


def test_a_damaged_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text":"one"}\n{"text":\n\xff\xfe\n[1]\n{"text":"two"}\n')
    assert texts(cursor_of(path)) == ["one", "two"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-21T20:32:55.768Z", 1795293175768),
        ("2026-11-21T21:32:55.768+01:00", 1795293175768),
        ("2026-11-21T20:32:55.768", 1795293175768),
        (1795293175768, 1795293175768),
        (1795293175768.9, 1795293175768),
        ("soon", None), (None, None), (True, None), (-1, None), (float("nan"), None), (10**30, None),
        ("9999-01-01", None),
    ],
)  # fmt: skip
def test_a_time_becomes_milliseconds_or_none(value: Any, expected: int | None) -> None:
    assert parse_timestamp(value) == expected


def tree(path: Path, *rows: tuple[str, str | None, bool]) -> Path:
    encoded = (
        msgspec.json.encode({"id": name, "parent": parent, "prompt": is_prompt}) for name, parent, is_prompt in rows
    )
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def test_a_rewound_prompt_is_dropped_with_everything_after_it(tmp_path: Path) -> None:
    path = tree(
        tmp_path / "a.jsonl",
        ("p1", None, True), ("a1", "p1", False),
        ("p2", "a1", True), ("a2", "p2", False), ("r2", "a2", False),
        ("p3", "a1", True), ("a3", "p3", False),
    )  # fmt: skip
    assert TREE.abandoned_rows(path) == {"p2", "a2", "r2"}


def test_results_that_branch_within_a_turn_are_kept(tmp_path: Path) -> None:
    path = tree(
        tmp_path / "a.jsonl",
        ("p1", None, True), ("call1", "p1", False), ("call2", "call1", False),
        ("result2", "call2", False), ("result1", "call1", False), ("a1", "result1", False),
    )  # fmt: skip
    assert TREE.abandoned_rows(path) == set()


def test_a_cyclic_tree_does_not_hang(tmp_path: Path) -> None:
    path = tree(tmp_path / "a.jsonl", ("a", "b", True), ("b", "a", True), ("c", "nowhere", True))
    assert TREE.abandoned_rows(path) == {"a", "b"}
    assert TREE.abandoned_rows(tree(tmp_path / "b.jsonl", ("a", "b", True), ("b", "a", True))) == set()


def test_empty_ids_are_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [
        {"id": "1", "prompt": True},
        {"id": "2", "parent": "1", "prompt": True},
        {"id": "", "parent": "2"},
        {"id": "3", "parent": "1", "prompt": True},
    ]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    assert TREE.abandoned_rows(path) == {"2"}
