"""Our own JSON files: strict parsing, editing and caching."""

import os
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.settings.json_files import EMPTY, FileCache, edit_object, parse_object, read_object


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_error_names_the_position(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AgentMuxError) as raised:
        read_object(path)
    assert raised.value.code == "CONFIG_ERROR"
    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert path.read_text(encoding="utf-8") == text


def test_invalid_utf8_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(AgentMuxError, match="not UTF-8"):
        read_object(tmp_path / "x")


def test_missing_file_is_none(tmp_path: Path) -> None:
    assert read_object(tmp_path / "new" / "config.json") is None
    assert list(tmp_path.iterdir()) == []


def test_edit_preserves_the_rest() -> None:
    text = '{"model":"m",\n      "tags" : ["a", "b"],\n  "retryPolicy": {"jitter": 0.5}}'
    changes = {"model": "n", "retryPolicy.maxAttempts": 3, "timeout": 5}
    changed = edit_object(text, changes)
    assert changed.startswith(
        '{"model":"n",\n      "tags" : ["a", "b"],\n  "retryPolicy": {"jitter": 0.5, "maxAttempts": 3}'
    )
    assert parse_object(changed, "x") == {
        "model": "n", "tags": ["a", "b"], "retryPolicy": {"jitter": 0.5, "maxAttempts": 3}, "timeout": 5,
    }  # fmt: skip


def test_removal_removes_empty_objects() -> None:
    changes = {"model": None, "retryPolicy.jitter": None, "not.there": None}
    assert parse_object(edit_object('{"model": "m", "retryPolicy": {"jitter": 0.5}}', changes), "x") == {}


def test_new_keys_are_indented() -> None:
    assert edit_object(EMPTY, {"a.b": 1}) == '{\n  "a": {\n    "b": 1\n  }\n}\n'


def test_path_through_a_non_object_is_rejected() -> None:
    with pytest.raises(AgentMuxError, match=r"a\.b cannot be set") as raised:
        edit_object('{"a": 1}', {"a.b": 2})
    assert raised.value.code == "VALIDATION_ERROR"


def test_cache_reads_changed_files(tmp_path: Path) -> None:
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
