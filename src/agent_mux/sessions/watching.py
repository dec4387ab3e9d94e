"""A session that goes on: its events, as the agent stores them."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from agent_mux.events import AgentEvent
from agent_mux.sessions.events import SessionEvents
from agent_mux.sessions.library import Known
from agent_mux.sessions.store import Cursor

LOOK_EVERY = 0.2  # seconds between two looks at the file
BESIDE = ("", "-wal")
"""What is behind the name of a file that may change instead of it: databases write into a log first."""


async def watch(known: Known, cursor: Cursor, *, from_start: bool = True) -> AsyncIterator[AgentEvent]:
    """The events of a session: those that are there, and then the others as they come. Ends with its consumer.

    Nobody is told by a store that a session is over: it can go on at any time, with whoever resumes it.

    Args:
        known: Which session.
        cursor: At its beginning.
        from_start: Begin with what is there already, or else with what comes next.
    """
    events = SessionEvents(known.adapter, known.made.summary)
    seen = None
    is_news = from_start
    while True:
        state = await anyio.to_thread.run_sync(_state_of, known.found.path)
        if state != seen:
            seen = state
            for event in await anyio.to_thread.run_sync(lambda: list(events.read(cursor))):
                if is_news:
                    yield event
            is_news = True
        await anyio.sleep(LOOK_EVERY)


def _state_of(path: Path) -> tuple[tuple[int, int], ...]:
    """Sizes and times. Raises `OSError` when the file is gone."""
    found = [path.stat()]
    for suffix in BESIDE[1:]:
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            found.append(beside.stat())
    return tuple((status.st_size, status.st_mtime_ns) for status in found)
