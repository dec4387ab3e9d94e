"""The events of a recording, as `amux parse` gives them: for the tests of every adapter."""

from typing import Any

from agent_mux.adapter import Adapter, Source
from agent_mux.events import AgentEvent
from agent_mux.parsing import Transcript, parse_transcript
from agent_mux.run.records import Exited
from agent_mux.testing.fixtures import Fixture


def parsed(adapter: Adapter, fixture: Fixture, protocol: str, run_id: str, **stream: Any) -> list[AgentEvent]:
    """Our side first, then what the agent printed: nothing says in what order they came."""
    streams = (
        (Source.STDIN, fixture.stdin),
        (Source.STDOUT, fixture.stdout_lines),
        (Source.STDERR, tuple(fixture.stderr.splitlines())),
    )
    transcript = Transcript(
        lines=tuple((source, line, 0) for source, lines in streams for line in lines),
        exited=Exited(code=fixture.exit.code, signal=fixture.exit.signal),
    )
    return list(
        parse_transcript(
            adapter, transcript, protocol=adapter.protocols[protocol], run_id=run_id, started_at=1, **stream
        )
    )
