"""Telling everybody here what happens in a remote run: readers, callbacks, and the result at the end."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_mux._util.logs import LOGGER
from agent_mux.client.remote.reading import Catching, RemoteReader
from agent_mux.events import AgentEvent, DebugEvent, SessionEndEvent
from agent_mux.run.readers import EventWindow, Listeners
from agent_mux.run.result import ResultBuilder, RunResult

MOST_ASIDES = 100
"""Warnings of our own among the events; further ones are only logged."""


class Telling:
    """The events of one run, as far as they have come."""

    def __init__(self, run_id: str, agent: str, *, size: int, collect: bool) -> None:
        """`size`: of the events that are kept for readers. `collect`: keep all for the result."""
        self._run_id, self._agent = run_id, agent
        self._window = EventWindow(size, self._loss)
        self._builder = ResultBuilder(collect=collect, bounded=True)
        self._now = time.time_ns() // 1_000_000
        """Of the last event, by the clock of the service."""
        self._told = 0
        self._early: list[str] = []
        self._is_ended = False
        self.asides: list[tuple[int, AgentEvent]] = []
        self.listeners = Listeners(self.warn)

    @property
    def count(self) -> int:
        """The number of events so far, ours included."""
        return self._window.end

    def read(self, start: int, catch_up: Callable[[], Catching | None]) -> RemoteReader:
        """The events from number `start`. `catch_up`: for a reader that falls behind."""
        return RemoteReader(self._window, catch_up, start)

    def tell(self, events: Sequence[AgentEvent]) -> None:
        """Events of the service, in order."""
        if self._early:  # nothing comes before the first event
            self._show_told(events[:1])
            early, self._early, events = self._early, [], events[1:]
            for message in early:
                self.warn(message)
        self._show_told(events)

    def _show_told(self, events: Sequence[AgentEvent]) -> None:
        if events:
            self._told += len(events)
            self._now = events[-1].timestamp
            self._is_ended = self._is_ended or isinstance(events[-1], SessionEndEvent)
            self._show(events)

    def warn(self, message: str) -> None:
        """A warning of our own among the events; the service knows nothing of it."""
        if self._is_ended or len(self.asides) >= MOST_ASIDES:
            logging.getLogger(LOGGER).warning("run %s: %s", self._run_id, message)
            return
        if not self._told:
            self._early.append(message)
            return
        event = self._warning(message)
        self.asides.append((self._told, event))
        self._show([event])

    def _show(self, events: Sequence[AgentEvent]) -> None:
        self._builder.observe(events)
        self._window.append(events)
        self.listeners.call(events)

    def _loss(self, count: int) -> AgentEvent:
        return self._warning(f"{count} events were lost: this reader was too slow, and the service cannot be asked")

    def _warning(self, message: str) -> DebugEvent:
        return DebugEvent(self._run_id, self._agent, self._now, "warn", message)

    def close(self) -> None:
        """No more events."""
        if self._early:  # there was not even a first one
            self._show([self._warning(message) for message in self._early])
        self._window.close()

    def result(self, told: Mapping[str, Any], derive: Callable[[], Sequence[AgentEvent]]) -> RunResult:
        """What the run came to. `derive` asks the service for the messages, when they were too long to keep."""
        return RunResult.from_dict(told, texts=self._builder.texts(derive), events=self._builder.events)
