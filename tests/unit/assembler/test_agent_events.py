"""Events that a program prints and the agent-events codec reads yield the same events again.

Excepted are run id and time, the ids of interactions, and what docs/reference/agent-protocol.md lists as lost.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from strategies import ENDINGS, RUN_ID, any_facts, contexts, plausible_runs
from test_properties import assemble

from agent_mux.assembler import Ending, ExitReason, StreamAssembler, StreamContext
from agent_mux.events import (
    AgentEvent,
    ErrorEvent,
    SessionEndEvent,
    SessionStartEvent,
    TurnEndEvent,
    encode_event,
    event_to_dict,
    is_terminal_event,
)
from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, CodecContext, Exit
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec

UNHURRIED = settings(suppress_health_check=list(HealthCheck))
PLACE = ("runId", "timestamp", "agent", "raw")
LOST = frozenset({"stream_fallback", "paused", "resumed"})


def read(events: Sequence[AgentEvent], context: StreamContext, ending: Ending) -> list[AgentEvent]:
    """Return the events of a program that printed these events."""
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events"))
    assembler = StreamAssembler(context)
    answered = last_turn_if_completed(events)
    for event in events:
        assembler.now = event.timestamp
        line = encode_event(event, accumulated=False)
        if isinstance(event, SessionStartEvent):  # no event has the turns before a session that was not resumed
            line = json.dumps({**json.loads(line), "priorTurns": turns_before(events)}).encode()
        if event is answered:  # it may have no other answer
            line = json.dumps({**json.loads(line), "structuredOutput": {}}).encode()
        steps = codec.receive(line, STDOUT)
        assert steps
        for step in steps:
            assert not isinstance(step, facts.Unknown), step
            assert isinstance(step, facts.Fact)
            assembler.receive(step)
    for step in codec.finish(Exit(0)):
        assert isinstance(step, facts.Fact)
        assembler.receive(step)
    assembler.end(ending)
    return assembler.drain()


def turns_before(events: Sequence[AgentEvent]) -> int:
    """Return the number of turns that the session had before the run."""
    in_run = sum(isinstance(event, TurnEndEvent) for event in events)
    return next((event.turn_count - in_run for event in events if isinstance(event, SessionEndEvent)), 0)


def last_turn_if_completed(events: Sequence[AgentEvent]) -> TurnEndEvent | None:
    """Return the end of the last turn if the run has no terminal event."""
    if any(map(is_terminal_event, events)):
        return None
    return next((event for event in reversed(events) if isinstance(event, TurnEndEvent)), None)


def plain(events: Sequence[AgentEvent]) -> list[dict[str, Any]]:
    """Return the events as dicts, without the fields that each run assigns anew."""
    ids: dict[str, int] = {}
    rows = []
    for event in events:
        fields = event_to_dict(event)
        for name in PLACE:
            fields.pop(name, None)
        if "interactionId" in fields:
            fields["interactionId"] = ids.setdefault(fields["interactionId"], len(ids))
        if event.type not in LOST:
            rows.append(fields)
    return rows


def fails_with_delegates(events: Sequence[AgentEvent]) -> bool:
    """Return whether a turn failed while its sub-agents were open, which moves the error before `turn_end`."""
    working: set[str] = set()
    before = ""
    for event in events:
        if event.type == "subagent_spawn":
            working.add(str(event.subagent_id))
        elif event.type in ("subagent_result", "subagent_error"):
            working.discard(str(event.subagent_id))
        if event.type == "error" and before == "turn_end" and working:
            return True
        before = event.type
    return False


@pytest.mark.slow
@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_events_read_back_from_a_program_are_the_same(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    assume(ending.cause != "spawn_error" or not sequence)
    events = assemble(context, sequence, ending)
    assume(not fails_with_delegates(events))
    assert plain(read(events, context, ending)) == plain(events)


TURN_WITHOUT_ANSWER = (
    {"type": "turn_start", "turnIndex": 0},
    {"type": "token_usage", "inputTokens": 3, "outputTokens": 5},
)
NO_ANSWER = {"type": "error", "code": "AGENT_CRASH", "message": "nothing came", "recoverable": True}
TURN_END = {"type": "turn_end", "turnIndex": 0}
NEXT_TURN = (
    {"type": "turn_start", "turnIndex": 1},
    {"type": "message_start"},
    {"type": "text_delta", "delta": "hi"},
    {"type": "message_stop", "text": "hi"},
    {"type": "turn_end", "turnIndex": 1},
    {"type": "session_end", "sessionId": "s", "turnCount": 2},
)


def run_program(*lines: dict[str, Any], interactive: bool = False) -> tuple[list[AgentEvent], ExitReason]:
    """Return the events of a program that printed these lines and exited, and how its run ended."""
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events", interactive=interactive))
    assembler = StreamAssembler(StreamContext(run_id=RUN_ID, agent="native", interactive=interactive))
    for line in ({"type": "session_start", "sessionId": "s", "resumed": False}, *lines):
        for step in codec.receive(json.dumps(line).encode(), STDOUT):
            assert isinstance(step, facts.Fact)
            assembler.receive(step)
    verdict = assembler.end(Ending(code=0))
    return assembler.drain(), verdict.exit_reason


@pytest.mark.parametrize("interactive", [True, False])
def test_error_of_a_program_for_a_turn_without_an_answer_appears_once(interactive: bool) -> None:
    order = (NO_ANSWER, TURN_END) if interactive else (TURN_END, NO_ANSWER)
    events, reason = run_program(*TURN_WITHOUT_ANSWER, *order, *NEXT_TURN, interactive=interactive)
    assert [event.message for event in events if isinstance(event, ErrorEvent)] == ["nothing came"]
    assert reason == "completed"


def test_program_that_ends_without_an_answer_has_failed() -> None:
    end = {"type": "session_end", "sessionId": "s", "turnCount": 1}
    events, reason = run_program(*TURN_WITHOUT_ANSWER, TURN_END, end)
    [error] = [event for event in events if isinstance(event, ErrorEvent)]
    assert (error.code, error.recoverable, reason) == ("EMPTY_ANSWER", False, "failed")
    _, reason = run_program(*TURN_WITHOUT_ANSWER, {**TURN_END, "structuredOutput": {}}, end)
    assert reason == "completed"
