"""Recordings: their items, and the order of input and output lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.scripted_run import control, header, printed

from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Exited, Kind, Record, encode
from agent_mux.sdk.codec import Send
from agent_mux_adapters.replay.playback.recording import STDERR, STDIN, STDOUT, RecordedItem, load, sent_positions
from agent_mux_testing.fixtures import find_fixtures

FIXTURES = Path(__file__).parents[4] / "fixtures"


def lines(*natives: dict[str, Any]) -> list[bytes]:
    return [json.dumps(native).encode() + b"\n" for native in natives]


PROMPT = {"type": "user", "message": {"role": "user", "content": "go"}}
INIT = {"type": "system", "subtype": "init"}
RESULT = {"type": "result"}
RPC_DONE = {"id": 1, "result": {}}
RPC_ASK = {"id": 0, "method": "ask"}


def ask(key: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": key, "request": {"subtype": "can_use_tool"}}


def allow(key: Any) -> dict[str, Any]:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": key, "response": {"behavior": "allow"}},
    }


def shake(key: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": key, "request": {"subtype": "initialize"}}


def shaken(key: Any) -> dict[str, Any]:
    return {"type": "control_response", "response": {"subtype": "success", "request_id": key, "response": {}}}


@pytest.mark.parametrize(
    ("agent", "driver", "expected"),
    [
        ([INIT, RESULT], [PROMPT], [0]),
        ([INIT, RESULT, INIT, RESULT], [PROMPT, PROMPT], [0, 2]),
        ([INIT, RESULT], [PROMPT, PROMPT], [0, 0]),  # merged into the turn: its time is unknown
        ([shaken("i"), INIT, ask("a"), RESULT], [shake("i"), PROMPT, allow("a")], [0, 1, 3]),
        ([INIT, ask("a"), ask("b"), RESULT], [PROMPT, allow("b"), allow("a")], [0, 3, 3]),
        ([INIT, shaken("late"), shaken("early"), RESULT], [shake("late"), shake("early")], [1, 2]),
        ([INIT, shaken("early"), shaken("late"), RESULT], [shake("late"), shake("early")], [1, 1]),
        ([RPC_DONE, RPC_ASK], [{"id": 1, "method": "go"}, {"id": 0, "result": {}}], [0, 2]),
        ([RPC_ASK], [{"id": 0, "error": {}}], [1]),
        ([], [PROMPT, allow("never asked")], [0, 0]),
        ([b"noise\n"], [b"not json\n"], [0]),
    ],
)  # fmt: skip
def test_without_times_the_lines_determine_their_order(
    agent: list[Any], driver: list[Any], expected: list[int]
) -> None:
    printed = [line if isinstance(line, bytes) else lines(line)[0] for line in agent]
    sent = [line if isinstance(line, bytes) else lines(line)[0] for line in driver]
    assert sent_positions(printed, sent, times=[0.0] * len(printed), sent_times=[]) == expected


def test_with_times_the_clock_decides_within_the_possible_order() -> None:
    agent, driver = lines(INIT, ask("a"), INIT), lines(PROMPT, allow("a"), PROMPT)
    assert sent_positions(agent, driver, times=[0.1, 0.2, 0.3], sent_times=[0.0, 0.25, 0.3]) == [0, 2, 3]
    assert sent_positions(agent, driver, times=[0.2, 0.2, 0.2], sent_times=[0.2, 0.2, 0.2]) == [3, 3, 3]
    before = lines({"id": 1, "result": {}})
    assert sent_positions(before, lines({"id": 1, "method": "turn/start"}), times=[0.1], sent_times=[0.1]) == [0]


@pytest.mark.parametrize("agent", sorted(folder.name for folder in FIXTURES.iterdir()))
def test_every_fixture_loads_with_all_its_bytes(agent: str) -> None:
    for folder in find_fixtures(FIXTURES, agent):
        recording = load(folder)
        for stream, name in ((STDOUT, "stdout.jsonl"), (STDERR, "stderr.txt"), (STDIN, "stdin.jsonl")):
            path = folder / name
            played = b"".join(item.data for item in recording.items if item.stream == stream)
            assert played == (path.read_bytes() if path.exists() else b""), path
        times = [item.at for item in recording.items]
        assert times == sorted(times), folder
        assert recording.end >= max(times, default=0), folder


def test_journal_loads_as_recording(tmp_path: Path) -> None:
    records = [
        control("start"),
        Record(Kind.STDIN, 10, b'{"type":"user"}\n'),
        *printed(b"one\ntw", b"o\r\nthr", at=1_000_000),
        Record(Kind.STDERR, 1_500_000, b"oh\n"),
        Record(Kind.ACTION, 1_600_000, encode(Send("more"))),
        Record(Kind.STDOUT, 2_000_000, b"ee"),
        Record(Kind.EXIT, 3_000_000, encode(Exited(code=4))),
    ]
    path = tmp_path / "run.journal"
    writer = JournalWriter(path, header(cwd="/p"))
    for record in records:
        writer.append(record)
    writer.close()
    recording = load(path)
    assert recording.items == [
        RecordedItem(0.00001, STDIN, b'{"type":"user"}\n'),
        RecordedItem(1.0, STDOUT, b"one\n"),
        RecordedItem(1.001, STDOUT, b"two\r\n"),
        RecordedItem(1.5, STDERR, b"oh\n"),
        RecordedItem(2.0, STDOUT, b"three"),
    ]
    assert (recording.agent, recording.protocol) == ("scripted", "lines")
    assert (recording.code, recording.signal, recording.end) == (4, None, 3.0)
    assert recording.is_two_way


def test_torn_journal_ends_as_killed(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    writer = JournalWriter(path, header())
    writer.append(printed(b"one\n")[0])
    writer.close()
    with path.open("ab") as file:
        file.write(b"O 99 500\nhalf")
    recording = load(path)
    assert [item.data for item in recording.items] == [b"one\n"]
    assert (recording.code, recording.signal) == (None, 9)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "does not exist"),
        ({}, "run.toml"),
        ({"run.toml": b"agent = 1"}, "exit.json"),
        ({"run.toml": b"= broken", "exit.json": b"{}"}, "is not a recording"),
        (b"hello", "neither a fixture folder nor a journal"),
        (b"H 0 2\n{}\n", "is not a recording"),
        (b"H x y\n", "is not a recording"),
        (b"", "neither a fixture folder nor a journal"),
    ],
)
def test_invalid_recording_is_reported(tmp_path: Path, content: Any, reason: str) -> None:
    path = tmp_path / "thing"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
        for name, data in content.items():
            (path / name).write_bytes(data)
    with pytest.raises(ValueError, match=reason):
        load(path)
