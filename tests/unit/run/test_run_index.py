"""The run index: short lines, concurrent writers, and tolerant readers."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux.errors import AgentMuxError
from agent_mux.journal.run_index import (
    MAX_LINE_SIZE,
    IndexRecord,
    append_line,
    encode_line,
    new_index_record,
    read_index,
)

AT = 1_795_343_400_123


def record(**known: Any) -> IndexRecord:
    return new_index_record(**{"started_at": AT, "run_id": "0" * 26, "agent": "someone", **known})


def test_a_line_has_all_known_fields() -> None:
    full = record(model="m", session_id="S", cost=0.25, tags=("a", "b"), project_id="p")
    assert json.loads(encode_line(full)) == {
        "v": 1, "runId": "0" * 26, "agent": "someone", "model": "m", "sessionId": "S",
        "timestamp": "2026-11-22T10:30:00.123Z", "cost": 0.25, "tags": ["a", "b"], "projectId": "p",
    }  # fmt: skip
    assert json.loads(encode_line(record())) == {
        "v": 1, "runId": "0" * 26, "agent": "someone", "timestamp": "2026-11-22T10:30:00.123Z",
    }  # fmt: skip


def test_the_longest_tags_are_cut_and_listed_in_cut(tmp_path: Path) -> None:
    line = encode_line(record(session_id="S", tags=("short", "x" * 600, "mid", "y" * 300)))
    assert len(line) <= MAX_LINE_SIZE
    append_line(tmp_path / "index", line)
    [read] = read_index(tmp_path / "index")
    assert (read.tags, read.cut, read.session_id) == (("short", "mid", "y" * 300), ("tags",), "S")


def test_without_tags_the_least_important_field_is_dropped_first() -> None:
    read = json.loads(encode_line(record(model="m" * 300, session_id="S", project_id="p" * 600, tags=("t" * 20,))))
    assert (read["model"], read["sessionId"], read["cut"]) == ("m" * 300, "S", ["projectId"])
    assert ("projectId" in read, read["tags"]) == (False, ["t" * 20])


texts = st.text(max_size=700)


@settings(deadline=None)  # writes to disk
@given(texts, texts, texts, st.lists(texts, max_size=20).map(tuple))
def test_every_line_is_short_and_can_be_read(model: str, session: str, project: str, tags: tuple[str, ...]) -> None:
    whole = record(model=model, session_id=session, project_id=project, tags=tags)
    line = encode_line(whole)
    assert len(line) <= MAX_LINE_SIZE
    assert line.count(b"\n") == 1
    with tempfile.TemporaryDirectory() as directory:
        append_line(Path(directory) / "index", line)
        [read] = read_index(Path(directory) / "index")
    assert set(read.tags) <= set(tags)
    assert ("tags" in read.cut) == (set(read.tags) != set(whole.tags))
    for name, key in (("model", "model"), ("session_id", "sessionId"), ("project_id", "projectId")):
        assert getattr(read, name) == (None if key in read.cut else getattr(whole, name))


def test_text_that_json_cannot_encode_is_sanitized() -> None:
    assert json.loads(encode_line(record(project_id="a\ud800b", tags=("\udfff",))))["projectId"] == "a�b"


def test_the_file_is_for_its_owner_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run-index.jsonl"
    assert list(read_index(path)) == []
    for name in "ab":
        append_line(path, encode_line(record(model=name)))
    assert [one.model for one in read_index(path)] == ["a", "b"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "noise",
    [
        b"", b"\n", b"noise\n", b"{}\n", b"[1]\n", b'{"v":2,"runId":"x","agent":"a","timestamp":"t"}\n', b"\xff\xfe\n",
        b'{"v":1,"runId":5,"agent":"a","timestamp":"t"}\n', b"x" * 5000 + b"\n", b"[" * 600 + b"\n",
        b'{"v":1,"runId":"x","ag',
    ],
)  # fmt: skip
def test_truncated_and_unknown_lines_are_skipped(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "index"
    append_line(path, encode_line(record(model="a")))
    with path.open("ab") as file:
        file.write(noise)
    append_line(path, encode_line(record(model="b")))
    assert [one.model for one in read_index(path)] == ["a", "b"]


def test_lines_with_newer_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b'{"v":1,"runId":"x","agent":"a","timestamp":"t","later":[1]}\n')
    assert [one.run_id for one in read_index(path)] == ["x"]


def test_an_incomplete_last_line_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(encode_line(record())[:-1])
    assert list(read_index(path)) == []


def test_only_a_regular_file_is_written(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("mine\n")
    link.symlink_to(target)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path):
        with pytest.raises(OSError, match=r".+"):
            append_line(path, b"x\n")
    assert target.read_text() == "mine\n"


def test_an_unreadable_index_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="cannot read") as raised:
        list(read_index(tmp_path))
    assert raised.value.code == "CONFIG_ERROR"


WRITER = """
import sys
import tempfile
from pathlib import Path
from agent_mux.journal.run_index import append_line, encode_line, new_index_record
path, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    record = new_index_record(started_at=number, run_id=f"{who}-{number}", agent="a", tags=("x" * 380,))
    append_line(path, encode_line(record))
"""


@pytest.mark.slow
def test_several_processes_can_write_concurrently(tmp_path: Path) -> None:
    path, writers, count = tmp_path / "index", 4, 300
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(who), str(count)]) for who in range(writers)
    ]
    assert [one.wait(timeout=60) for one in running] == [0] * writers
    written = [one.run_id for one in read_index(path)]
    assert sorted(written) == sorted(f"{who}-{number}" for who in range(writers) for number in range(count))
    for who in range(writers):
        own = [one for one in written if one.startswith(f"{who}-")]
        assert own == [f"{who}-{number}" for number in range(count)]
