"""Parsing transcripts: plain output, wrapped lines of both directions, and detection of the protocol."""

import json
from pathlib import Path

import pytest

from agent_mux import AgentMuxError, validate
from agent_mux.run.transcripts import detect_protocol, parse_transcript, read_transcript
from agent_mux.sdk.codec import Source
from agent_mux.sdk.registry import AdapterRegistry

FIXTURES = Path(__file__).parents[3] / "fixtures"


def test_plain_lines_are_standard_output() -> None:
    transcript = read_transcript(b'{"type":"a"}\r\n\nnoise\n{"type":"b"}')
    assert [(source, line) for source, line, _ in transcript.lines] == [
        (Source.STDOUT, b'{"type":"a"}'),
        (Source.STDOUT, b"noise"),
        (Source.STDOUT, b'{"type":"b"}'),
    ]


def test_wrapped_lines_have_direction_and_time() -> None:
    lines = [
        {"t": 0.5, "dir": "->", "msg": {"id": 1}},
        {"t": 1.25, "dir": "<-", "msg": '{"id":1}'},
        {"t": 2, "dir": "<!", "msg": "oops"},
    ]
    transcript = read_transcript("\n".join(map(json.dumps, lines)).encode())
    assert transcript.lines == (
        (Source.STDIN, b'{"id":1}', 500_000),
        (Source.STDOUT, b'{"id":1}', 1_250_000),
        (Source.STDERR, b"oops", 2_000_000),
    )


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"{}", b"[1]\n2\n"])
def test_transcript_of_no_protocol_raises_parse_error(data: bytes) -> None:
    adapter = AdapterRegistry().get("claude")
    with pytest.raises(AgentMuxError, match="no line of this transcript") as caught:
        detect_protocol(adapter, read_transcript(data))
    assert caught.value.code == "PARSE_ERROR"


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_empty_transcript_yields_a_truncated_session(data: bytes) -> None:
    events = list(parse_transcript(AdapterRegistry().get("claude"), read_transcript(data)))
    assert [event.type for event in events] == ["session_start", "error", "session_end"]


@pytest.mark.parametrize(
    ("agent", "folder", "protocol"),
    [
        ("claude", "claude/2.1.330/tool_bash", "stream-json"),
        ("codex", "codex/0.169.0/exec_ok", "exec-json"),
        ("codex", "codex/0.169.0/as_exec", "app-server"),
    ],
)
def test_protocol_is_detected_from_the_lines(agent: str, folder: str, protocol: str) -> None:
    adapter = AdapterRegistry().get(agent)
    transcript = read_transcript((FIXTURES / folder / "stdout.jsonl").read_bytes())
    assert detect_protocol(adapter, transcript).name.startswith(protocol)
    events = list(parse_transcript(adapter, transcript))
    assert validate(events) == []
    assert events[-1].type == "session_end"
