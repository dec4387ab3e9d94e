"""Who is told of the life of every run: metrics, webhooks. Not of its events: nothing here costs anything for each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Executable

from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written in the same transaction as the change of a run that it tells of: both are there, or none."""

    statement: Executable
    """It may be written twice, if the database went away while it was: it has to be the same then as once."""
    written: Callable[[], None]
    """Is called when it is in the database."""


class RunObserver(Protocol):
    """Is called at once, in the order of what happens. It must not block or raise."""

    def started(self, row: RunRow, view: RunView) -> Iterable[Entry]:
        """Its agent was started: it waits no more."""

    def waits(self, row: RunRow, view: RunView, pending: PendingInteraction) -> Iterable[Entry]:
        """Its agent needs a person: neither a policy nor the approval mode has an answer."""

    def ended(self, row: RunRow, view: RunView, events: Mapping[str, int]) -> Iterable[Entry]:
        """It is over. `events`: how many of each type this process has seen; none of a run of before a crash."""
