"""Every line of every recording is understood, and what comes of it is lawful and true to the script."""

from collections.abc import Mapping
from typing import Any

import pytest
from claude_recordings import ADAPTER, NAMES, events_of, new_codec, recorded_facts, recording
from tests.unit.adapters.codec_conversation import receive

from agent_mux import contract
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source
from agent_mux_adapters.claude import CAPABILITIES

NOT_STREAM_JSON = {"2.1.330/text_output"}
CUT_OFF_TEXTS = {"err_drop_always", "err_drop_midstream", "err_drop_tooluse", "err_sse_overloaded",
                 "err_sse_overloaded_always", "interrupt_text", "interrupt_then_continue", "refusal"}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_line_emits_facts_and_none_is_unknown(name: str) -> None:
    codec = new_codec()
    for line in recording(name).stdout_lines:
        steps = receive(codec, line)
        assert steps
        assert not [step for step in steps if isinstance(step, facts.Unknown)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_STREAM_JSON])
def test_no_recorded_line_is_a_log_line(name: str) -> None:
    assert not [fact for fact in recorded_facts(name) if isinstance(fact, facts.LogLine)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inside", [False, True], ids=["", "with sub-agents"])
def test_event_stream_conforms(name: str, *, inside: bool) -> None:
    assert contract.validate(events_of(name, include_subagent_events=inside)) == []


@pytest.mark.parametrize("name", NAMES)
def test_stdin_of_a_recording_emits_no_events(name: str) -> None:
    codec = new_codec()
    for line in recording(name).stdin:
        assert not [step for step in receive(codec, line, source=Source.STDIN) if not isinstance(step, facts.Ignored)]


def _texts(script: Mapping[str, Any]) -> list[str]:
    steps = [step for step in script.get("steps", []) if not step.get("first") and not step.get("is_aux")]
    return [block["text"] for step in steps for block in step.get("blocks", []) if block["type"] == "text"]


def _messages(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if event.type == "message_stop"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.rpartition("/")[2] not in CUT_OFF_TEXTS])
def test_messages_are_neither_repeated_nor_invented(name: str) -> None:
    scripted, messages = _texts(recording(name).script), _messages(events_of(name))
    known = [text for text in messages if text in scripted]
    assert all(known.count(text) <= scripted.count(text) for text in known)


@pytest.mark.parametrize("name", ["tool_bash", "tool_files", "unicode_big_output", "thinking", "stdin_multi_turn"])
def test_all_scripted_text_is_emitted(name: str) -> None:
    scripted = [text for text in _texts(recording(name).script) if text]
    assert _messages(events_of(name)) == scripted


def test_what_the_recordings_emit_is_what_the_capabilities_claim() -> None:
    assert {event.type for name in NAMES for event in events_of(name)} == CAPABILITIES.emits


def test_each_recording_is_recognised_by_one_of_its_lines() -> None:
    import json

    for name in NAMES:
        lines = [json.loads(line) for line in recording(name).stdout_lines if line.startswith(b"{")]
        sniffs = [protocol.sniff for protocol in ADAPTER.protocols.values()]
        assert not lines or any(sniff(line) for line in lines for sniff in sniffs), name


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "system", "subtype": "init", "session_id": "x", "apiKeySource": "login", "model": "other"},
        {"type": "result", "sessionId": "x", "exitCode": 0, "usage": {}},
        {"method": "turn/started", "params": {}},
        {},
    ],
)
def test_lines_of_other_agents_are_not_recognised(foreign: dict[str, Any]) -> None:
    assert not any(protocol.sniff(foreign) for protocol in ADAPTER.protocols.values())
