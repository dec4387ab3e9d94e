"""A session that goes on: its events, as the agent stores them."""

from collections import deque
from pathlib import Path
from typing import Self

import anyio

from agent_mux.events import AgentEvent
from agent_mux.sdk.session_databases import LOG
from agent_mux.sdk.sessions import Cursor
from agent_mux.sessions.events import SessionEvents
from agent_mux.sessions.library import Known

LOOK_EVERY = 0.2  # seconds between two looks at the file


class Watcher:
    """The events of a session: those that are there, and then the others as they come.

    It has no end: no store tells that a session is over, and whoever resumes it can go on at any time. An iterator and
    not a generator: it may be dropped at any point.
    """

    def __init__(self, known: Known, cursor: Cursor, *, from_start: bool = True) -> None:
        """`cursor`: at its beginning. `from_start`: with what is there already, or else with what comes next."""
        self._path = known.found.path
        self._cursor = cursor
        self._events = SessionEvents(known.adapter, known.made.summary)
        self._waiting: deque[AgentEvent] = deque()
        self._is_news = from_start
        self._seen: tuple[tuple[int, int], ...] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        """The next event. Raises `OSError` when the file is gone, `UnreadableError` when it is no session any more."""
        while not self._waiting:
            state = await anyio.to_thread.run_sync(_state_of, self._path)
            if state == self._seen:
                await anyio.sleep(LOOK_EVERY)
                continue
            events = await anyio.to_thread.run_sync(self._read)
            self._seen = state
            if self._is_news:
                self._waiting.extend(events)
            self._is_news = True
        return self._waiting.popleft()

    def _read(self) -> list[AgentEvent]:
        return list(self._events.read(self._cursor))


def _state_of(path: Path) -> tuple[tuple[int, int], ...]:
    log = path.with_name(path.name + LOG)
    found = [path.stat(), *([log.stat()] if log.exists() else [])]
    return tuple((status.st_size, status.st_mtime_ns) for status in found)
