"""Our own JSON files: strict, and read again only when they changed."""

import os
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.preferences.documents import Remembered, read_object, write_object


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "a": 1,\n}', "line 3, column 1"),
        ('{"a": // no\n 1}', "line 1, column 7"),
        ("", "line 1, column 1"),
        ("[]", "no JSON object (line 1, column 1)"),
        ('"text"', "no JSON object"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": 1e999}', "1e999 is too large"),
        ('{"a": {"b": 1, "b": 2}}', "'b' stands twice"),
        ("\ufeff{}", "line 1, column 1"),
        ('{"a":' * 100_000, "is not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
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


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.json"
    assert read_object(path) is None
    write_object(path, {"b": "é", "a": [1, None]}, private=True)
    assert read_object(path) == {"b": "é", "a": [1, None]}
    assert path.read_text("utf-8") == '{\n  "b": "é",\n  "a": [\n    1,\n    null\n  ]\n}\n'


def test_a_file_is_read_when_it_changed(tmp_path: Path) -> None:
    path, reads = tmp_path / "x", []

    def read(asked: Path) -> str | None:
        reads.append(asked)
        return asked.read_text() if asked.exists() else None

    remembered = Remembered(read)
    assert [remembered.of(path), remembered.of(path)] == [None, None]
    path.write_text("one")
    assert [remembered.of(path), remembered.of(path)] == ["one", "one"]
    path.write_text("three")
    assert remembered.of(path) == "three"
    os.utime(path, ns=(1, 1))
    assert remembered.of(path) == "three"
    path.unlink()
    assert remembered.of(path) is None
    assert len(reads) == 5
