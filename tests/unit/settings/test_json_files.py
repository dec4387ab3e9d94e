"""Our own JSON files: strict, and read again only when they changed."""

import os
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.settings.json_files import EMPTY, FileCache, edit_object, parse_object, read_object


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "a": 1,\n  b\n}', "line 3, column 3"),
        ('{"a": // no\n 1}', "line 1, column 7"),
        ("", "line 1, column 1"),
        ("[]", "not a JSON object (line 1, column 1)"),
        ('"text"', "not a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1e999}', "1e999 is too large"),
        ('{"a": {"b": 1, "b": 2}}', "duplicate key 'b'"),
        ("\ufeff{}", "line 1, column 1"),
        ('{"a":' * 100_000, "is not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
    ],
)
def test_what_is_no_object_says_where(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AgentMuxError) as raised:
        read_object(path)
    assert raised.value.code == "CONFIG_ERROR"
    assert str(path) in str(raised.value)
    assert told in str(raised.value)
    assert path.read_text(encoding="utf-8") == text


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(AgentMuxError, match="not UTF-8"):
        read_object(tmp_path / "x")


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read_object(tmp_path / "new" / "config.json") is None
    assert list(tmp_path.iterdir()) == []


def test_only_what_changes_is_changed() -> None:
    text = '{"model":"m",\n      "tags" : ["a", "b"],\n  "retryPolicy": {"jitter": 0.5}}'
    told = {"model": "n", "retryPolicy.maxAttempts": 3, "timeout": 5}
    changed = edit_object(text, told)
    assert changed.startswith(
        '{"model":"n",\n      "tags" : ["a", "b"],\n  "retryPolicy": {"jitter": 0.5, "maxAttempts": 3}'
    )
    assert parse_object(changed, "x") == {
        "model": "n", "tags": ["a", "b"], "retryPolicy": {"jitter": 0.5, "maxAttempts": 3}, "timeout": 5,
    }  # fmt: skip


def test_what_is_removed_takes_empty_objects_with_it() -> None:
    told = {"model": None, "retryPolicy.jitter": None, "not.there": None}
    assert parse_object(edit_object('{"model": "m", "retryPolicy": {"jitter": 0.5}}', told), "x") == {}


def test_what_is_new_is_laid_out() -> None:
    assert edit_object(EMPTY, {"a.b": 1}) == '{\n  "a": {\n    "b": 1\n  }\n}\n'


def test_a_way_through_what_is_no_object() -> None:
    with pytest.raises(AgentMuxError, match=r"a\.b cannot be set") as raised:
        edit_object('{"a": 1}', {"a.b": 2})
    assert raised.value.code == "VALIDATION_ERROR"


def test_a_file_is_read_when_it_changed(tmp_path: Path) -> None:
    path, reads = tmp_path / "x", []

    def read(asked: Path) -> str | None:
        reads.append(asked)
        return asked.read_text() if asked.exists() else None

    cache = FileCache(read)
    assert [cache.get(path), cache.get(path)] == [None, None]
    path.write_text("one")
    assert [cache.get(path), cache.get(path)] == ["one", "one"]
    path.write_text("three")
    assert cache.get(path) == "three"
    os.utime(path, ns=(1, 1))
    assert cache.get(path) == "three"
    path.unlink()
    assert cache.get(path) is None
    assert len(reads) == 5
