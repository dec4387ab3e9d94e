"""Events that a program prints and the agent-events codec reads yield the same events again.

Excepted are run id and time, the ids of interactions, and what docs/reference/agent-protocol.md lists as lost.
"""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from strategies import ENDINGS, any_facts, contexts, plausible_runs
from test_properties import assemble

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events import (
    AgentEvent,
    SessionEndEvent,
    SessionStartEvent,
    TurnEndEvent,
    encode_event,
    event_to_dict,
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
    for event in events:
        assembler.now = event.timestamp
        line = encode_event(event, accumulated=False)
        if isinstance(event, SessionStartEvent):  # no event has the turns before a session that was not resumed
            line = json.dumps({**json.loads(line), "priorTurns": turns_before(events)}).encode()
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


def has_unanswered_turns(events: Sequence[AgentEvent]) -> bool:
    """Return whether a turn was failed because it has no answer although tokens were produced.

    Whoever reads events decides that for itself, also for a turn that was broken off, or that failed for this reason.
    """
    return any(event.type == "error" and "ended the turn without an answer" in event.message for event in events)


@UNHURRIED
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_events_read_back_from_a_program_are_the_same(
    context: StreamContext, sequence: list[facts.Fact], ending: Ending
) -> None:
    assume(ending.cause != "spawn_error" or not sequence)
    events = assemble(context, sequence, ending)
    assume(not fails_with_delegates(events))
    found = read(events, context, ending)
    assume(not has_unanswered_turns(found))
    assert plain(found) == plain(events)
