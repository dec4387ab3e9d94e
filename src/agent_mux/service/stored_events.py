"""The events of a stored session on their way to one reader: made as they are taken, some at a time."""

from collections.abc import AsyncGenerator, Generator
from itertools import islice

import anyio

from agent_mux.events import AgentEvent, encode_event
from agent_mux.service.encoding import Frame
from agent_mux.service.service import Service, in_thread
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter

AT_ONCE = 256
"""Events that are made at once, in a thread."""


def opened(sessions: Sessions, session: str, wanted: SessionFilter) -> Generator[AgentEvent]:
    """Find a session now, and read it when its events are taken. Raises as `Sessions.find` does."""
    known = sessions.find(session, wanted)
    return (event for event in sessions.events_of(known))


async def event_chunks(
    service: Service, events: Generator[AgentEvent], frame: Frame, *, accumulated: bool
) -> AsyncGenerator[bytes, None]:
    """What is sent."""
    start = 0
    try:
        while chunk := await in_thread(service, _taken, events):
            lines = (encode_event(event, accumulated=accumulated) for event in chunk)
            yield b"".join(frame(number, line) for number, line in enumerate(lines, start))
            start += len(chunk)
    finally:
        with anyio.CancelScope(shield=True):  # a file is open in it
            await in_thread(service, events.close)


def _taken(events: Generator[AgentEvent]) -> list[AgentEvent]:
    return list(islice(events, AT_ONCE))
