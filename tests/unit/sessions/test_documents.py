"""Exporting, comparing and searching sessions."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux.sessions.client import Sessions
from agent_mux.sessions.export import Format

HOSTILE = '<script>alert(1)</script> ``` & "quoted" \''


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    write_session(
        tmp_path, "odd",
        {"session": "odd", "title": HOSTILE},
        {"prompt": HOSTILE, "at": START}, {"text": HOSTILE}, {"tool": HOSTILE, "input": {"a": HOSTILE}},
        {"result": HOSTILE, "output": HOSTILE}, {"call": "c", "model": HOSTILE, "tokens": [1, 2]},
    )  # fmt: skip
    return sessions_in(tmp_path)


class Page(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_json_contains_the_whole_session(sessions: Sessions) -> None:
    read = json.loads(sessions.export("odd", "json"))
    assert read["summary"]["id"] == "scripted:odd"
    assert [message["role"] for message in read["messages"]] == ["user", "assistant"]
    assert read["messages"][1]["tools"] == [
        {"id": HOSTILE, "name": HOSTILE, "input": {"a": HOSTILE}, "output": HOSTILE},
    ]  # fmt: skip


def test_json_lines_are_the_summary_and_the_messages(sessions: Sessions) -> None:
    lines = [json.loads(line) for line in sessions.export("odd", "jsonl").splitlines()]
    assert [line["type"] for line in lines] == ["session", "message", "message"]
    assert lines[1]["text"] == HOSTILE


def test_html_escapes_the_text_of_messages(sessions: Sessions) -> None:
    page = Page()
    page.feed(sessions.export("odd", "html"))
    assert "script" not in page.tags
    assert page.links == []  # it needs no other file
    assert page.text.count(HOSTILE) >= 5
    assert page.tags.count("article") == 2


def test_markdown_fences_are_longer_than_those_in_the_text(sessions: Sessions) -> None:
    text = sessions.export("odd", "markdown")
    fences = [line for line in text.splitlines() if set(line) <= {"`"} and line]
    assert fences[-1] == "````"
    assert f"\n{HOSTILE}\n````\n" in text


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "html"])
def test_every_document_ends_with_a_newline(sessions: Sessions, form: Format) -> None:
    assert sessions.export("odd", form).endswith("\n")


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"prompt" if number % 2 == 0 else "text": word} for number, word in enumerate(words)]


@pytest.mark.parametrize(
    ("second", "common", "changes"),
    [
        (rows("a", "b", "c", "d"), 4, []),
        (rows("a", "b", "c", "other"), 3, [(3, ["d"], ["other"])]),
        (rows("a", "b"), 2, [(2, ["c", "d"], [])]),
        (rows("a", "b", "c", "d", "e"), 4, [(4, [], ["e"])]),
        (rows("x", "b", "c", "d"), 0, [(0, ["a"], ["x"])]),
    ],
)
def test_a_comparison_lists_removed_and_added_messages(
    tmp_path: Path, second: list[dict[str, Any]], common: int, changes: list[Any]
) -> None:
    write_session(tmp_path, "first", *rows("a", "b", "c", "d"))
    write_session(tmp_path, "second", *[{**row, "at": START} for row in second])
    found = sessions_in(tmp_path).diff("first", "second")
    assert found.common == common
    assert found.is_same == (not changes)
    texts = [(one.at, [m.text for m in one.removed], [m.text for m in one.added]) for one in found.changes]
    assert texts == changes


def test_different_tool_results_are_a_difference(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_session(tmp_path, name, {"tool": "Look", "input": {}}, {"result": "Look", "output": name})
    assert not sessions_in(tmp_path).diff("first", "second").is_same


def test_search_covers_all_texts_and_ignores_case(tmp_path: Path) -> None:
    write_session(tmp_path, "asked", {"prompt": "Where is the NEEDLE?", "at": START})
    write_session(
        tmp_path, "given", {"tool": "Look", "input": {"for": "needle"}}, {"result": "Look", "output": {"a": "Needle"}}
    )
    write_session(tmp_path, "nothing", {"text": "hay"})
    hits = sessions_in(tmp_path).search("needle")
    assert [(hit.session.native_id, hit.count) for hit in hits] == [("given", 2), ("asked", 1)]
    assert hits[1].excerpt == "Where is the NEEDLE?"
    assert [hit.session.native_id for hit in sessions_in(tmp_path).search("needle", limit=1)] == ["given"]


def test_an_excerpt_contains_the_text_around_the_match(tmp_path: Path) -> None:
    write_session(tmp_path, "one", {"text": "far " * 50 + "needle" + " away" * 50})
    [hit] = sessions_in(tmp_path).search("needle")
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert "far needle away" in hit.excerpt
    assert len(hit.excerpt) < 140
