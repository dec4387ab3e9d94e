"""Every golden of every agent, printed by a program in the agent events protocol, yields the same events.

Not compared: run ids, the agent's name, times, ids of interactions, and the losses that the protocol's page lists.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events import AgentEvent, Rebuilder, encode_event, event_to_dict
from agent_mux.events.run import CrashEvent
from agent_mux.sdk.codec import STDOUT, CodecContext, Exit
from agent_mux.sdk.facts import Fact, Unknown
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec

FIXTURES = Path(__file__).parents[2] / "fixtures"
AGENTS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
RUN_FIELDS = ("runId", "agent", "timestamp", "raw")
LOST = frozenset({"stream_fallback", "paused", "resumed"})


def goldens(agent: str) -> list[Path]:
    return sorted((FIXTURES / agent).glob("**/events.jsonl"))


def read_as_printed(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Return the events of a program that prints these events and then exits as their agent did."""
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events"))
    asked = any(event.type == "approval_request" for event in events)
    context = StreamContext(run_id=events[0].run_id, agent="native", include_subagent_events=True, show_requests=asked)
    assembler = StreamAssembler(context)
    emitted: list[Any] = []
    for event in events:
        assembler.now = event.timestamp
        emitted += codec.receive(encode_event(event, accumulated=False), STDOUT)
        for step in emitted:
            assert isinstance(step, Fact), step
            assert not isinstance(step, Unknown), step
            assembler.receive(step)
        emitted.clear()
    for step in codec.finish(Exit(0)):
        assembler.receive(step)  # type: ignore[arg-type]
    assembler.end(_ending(events))
    return assembler.drain()


def _ending(events: Sequence[AgentEvent]) -> Ending:
    crash = next((event for event in events if isinstance(event, CrashEvent)), None)
    if crash is None:
        return Ending(code=0)
    is_signal = crash.exit_code < 0
    return Ending(
        code=None if is_signal else crash.exit_code,
        signal=-crash.exit_code if is_signal else None,
        stderr=crash.stderr,
    )


def comparable(events: Sequence[AgentEvent]) -> list[dict[str, Any]]:
    ids: dict[str, int] = {}
    is_fork = any(event.type == "session_fork" for event in events)
    emitted = []
    for event in events:
        fields = {name: value for name, value in event_to_dict(event).items() if name not in RUN_FIELDS}
        if "interactionId" in fields:
            fields["interactionId"] = ids.setdefault(fields["interactionId"], len(ids))
        if event.type == "session_end" and is_fork:
            del fields["turnCount"]
        if event.type not in LOST:
            emitted.append(fields)
    return emitted


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_printed_events_are_read_back_unchanged(agent: str) -> None:
    paths = goldens(agent)
    assert paths
    for path in paths:
        rebuilder = Rebuilder()
        events: list[Any] = [rebuilder.decode(line) for line in path.read_bytes().splitlines()]
        again = read_as_printed(events)
        assert comparable(again) == comparable(events), path
        assert validate(again) == [], path
