"""What the assembler prints, read as the native output of a program, gives the same events again.

What may differ is in `without`: run id and time, the ids of interactions, and what docs/reference/agent-protocol.md
lists as lost.
"""

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from strategies import ENDINGS, any_facts, contexts, plausible_runs
from test_properties import assemble

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events import AgentEvent, encode_event, event_to_dict
from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, CodecContext, Exit
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec

EXAMPLES = int(os.environ.get("AGENT_MUX_EXAMPLES", "100"))
THOROUGH = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
PLACE = ("runId", "timestamp", "agent", "raw")
LOST = frozenset({"stream_fallback", "paused", "resumed"})


def read(events: Sequence[AgentEvent], context: StreamContext, ending: Ending) -> list[AgentEvent]:
    """The events of a program that printed these."""
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events"))
    assembler = StreamAssembler(context)
    told: list[AgentEvent] = []
    for event in events:
        assembler.now = event.timestamp
        steps = codec.receive(encode_event(event, accumulated=False), STDOUT)
        assert steps
        for step in steps:
            assert not isinstance(step, facts.Unknown), step
            assert isinstance(step, facts.Fact)
            assembler.receive(step)
    for step in codec.finish(Exit(0)):
        assert isinstance(step, facts.Fact)
        assembler.receive(step)
    assembler.end(ending)
    return told + assembler.drain()


def plain(events: Sequence[AgentEvent]) -> list[dict[str, Any]]:
    """The events without what is the mux's own."""
    ids: dict[str, int] = {}
    told = []
    for event in events:
        fields = event_to_dict(event)
        for name in PLACE:
            fields.pop(name, None)
        if "interactionId" in fields:
            fields["interactionId"] = ids.setdefault(fields["interactionId"], len(ids))
        if event.type not in LOST:
            told.append(fields)
    return told


def fails_with_delegates(events: Sequence[AgentEvent]) -> bool:
    """A turn failed, sub-agents of it still work, and another turn begins: then the error moves before `turn_end`."""
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


@THOROUGH
@given(contexts(), plausible_runs() | any_facts(), ENDINGS)
def test_events_that_are_read_as_a_program_s_are_the_same(
    context: StreamContext, told: list[facts.Fact], ending: Ending
) -> None:
    assume(ending.cause != "spawn_error" or not told)
    events = assemble(context, told, ending)
    assume(not fails_with_delegates(events))
    assert plain(read(events, context, ending)) == plain(events)
