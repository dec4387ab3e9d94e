"""`copilot --output-format json`: one run and its end."""

from typing import Any

import pytest
from copilot_transcript import SESSION, event, events_of, facts_from, gone, new_codec, recording
from tests.unit.adapters.codec_conversation import PROJECT, facts_of, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Close, Exit, Interrupt, Refuse, Send, SignalGroup, Source
from agent_mux_adapters.copilot.headless_codec import is_headless_line
from agent_mux_adapters.copilot.json_codec import is_json_line

PROMPT = event("user.message", messageId="u", content="go")
IDLE = event("assistant.idle")


def result(code: int = 0) -> dict[str, Any]:
    return {"type": "result", "timestamp": "t", "sessionId": SESSION, "exitCode": code, "usage": {}}


def test_the_session_is_known_by_the_last_line() -> None:
    assert facts_from(PROMPT, IDLE, result()) == [facts.TurnBegin(), facts.TurnDone(), facts.SessionKnown(SESSION)]
    [started] = [one for one in events_of("tools") if one.type == "session_start"]
    assert started.session_id  # type: ignore[union-attr]


def test_the_last_line_closes_a_turn_that_nothing_else_closed() -> None:
    assert facts_from(PROMPT, result())[-1] == facts.TurnDone()
    failed = facts_from(PROMPT, result(1))[-1]
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.message == "copilot exited with code 1"


@pytest.mark.parametrize("name", ["sigint_sleep", "sigint_slow", "sigterm_slow", "sigkill_sleep"])
def test_a_run_that_a_signal_ends_did_not_complete_whatever_its_exit_code(name: str) -> None:
    types = {one.type for one in events_of(name)}
    assert ("crash" if name == "sigkill_sleep" else "interrupted") in types
    assert recording(name).exit.code in (0, None)


def test_an_error_on_stderr_instead_of_a_start_is_the_failure() -> None:
    codec = new_codec("json")
    receive(codec, b"Error: No authentication information found.", source=Source.STDERR)
    receive(codec, b"Something else", source=Source.STDERR)
    [failed] = gone(codec, 1)
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "AUTH_ERROR"
    assert "auth_error" in {one.type for one in events_of("no_auth")}


def test_an_error_on_stderr_of_a_completed_run_is_no_failure() -> None:
    codec = new_codec("json")
    receive(codec, b"Error: No authentication information found.", source=Source.STDERR)
    receive(codec, PROMPT, IDLE)
    assert gone(codec, 1) == []
    assert facts_of(receive(new_codec("json"), b"a word")) == [facts.LogLine("a word")]


def test_facts_outside_of_turns_are_emitted_at_the_end() -> None:
    codec = new_codec("json")
    receive(codec, event("session.error", message="no more", errorType="quota"))
    receive(codec, event("session.compaction_complete", success=True, summaryContent="A summary."))
    assert gone(codec) == [
        facts.RecoverableError("RATE_LIMITED", "no more"),
        facts.Note("the context was compacted after the last turn: A summary."),
    ]


def test_it_takes_no_input() -> None:
    codec = new_codec("json")
    [refused] = codec.request(Send("x"))
    assert isinstance(refused, Refuse)
    assert refused.code == "STDIN_NOT_AVAILABLE"
    assert list(codec.request(Interrupt())) == [SignalGroup(2)]
    assert list(codec.request(Close())) == []


def test_it_is_started_with_its_prompt() -> None:
    codec = new_codec("json", prompt="x")
    assert list(codec.start()) == []
    assert list(codec.finish(Exit(code=0))) == []


def test_a_retry_streams_again_what_was_cut() -> None:
    texts = [one.text for one in events_of("drop") if one.type == "message_stop"]  # type: ignore[union-attr]
    assert len(texts) == 6
    assert len([one for one in events_of("drop") if one.type == "retry"]) == 5


# -- recognition of the protocol


def test_lines_are_recognized_by_protocol() -> None:
    assert is_json_line(event("session.start"))
    assert is_json_line(result())
    assert not is_json_line({"type": "result"})
    headless = [
        {"method": "session.event", "params": {"sessionId": SESSION, "event": {}}},
        {"method": "session.lifecycle", "params": {"type": "session.created"}},
        {"id": 1, "result": {"protocolVersion": 3, "taskKinds": []}},
        {"id": 2, "result": {"workspacePath": PROJECT, "mode": "x"}},
    ]
    assert all(map(is_headless_line, headless))
    assert not any(map(is_json_line, headless))
    assert not is_headless_line({"method": "session/update", "params": {}})
