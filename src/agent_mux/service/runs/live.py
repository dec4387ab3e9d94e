"""A run that this process started: its handle, its row, and the observers of its lifecycle.

Observers, such as metrics and webhooks, see the start, the interactions and the end of every run, not its events: they
cost nothing per event.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
from msgspec import UNSET, Raw, json
from sqlalchemy import Executable

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json, to_json_bytes
from agent_mux.events import BaseEvent
from agent_mux.run.base import TERMINAL_STATES, RunState
from agent_mux.run.commands import AnyCommand, execute_command
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView, pending_view, present
from agent_mux.worktrees.repositories import current_commit


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A statement to write in the same transaction as the change of a run that it reports (transactional outbox)."""

    statement: Executable
    """Has to be idempotent: it is repeated if the database fails while it is written."""
    written: Callable[[], None]
    """Called once it is in the database."""


class RunLifecycleObserver(Protocol):
    """Called synchronously, in the order of what happens. Must not block or raise."""

    def started(self, row: RunRow, view: RunView) -> Iterable[OutboxEntry]:
        """Handle the start of the run's agent."""

    def interaction_requested(self, row: RunRow, view: RunView, pending: PendingInteraction) -> Iterable[OutboxEntry]:
        """Handle an interaction that needs a person: neither a policy nor the approval mode decides it."""

    def ended(self, row: RunRow, view: RunView, events: Mapping[str, int]) -> Iterable[OutboxEntry]:
        """Handle the end of a run.

        `events`: number of events by type that this process has seen; empty for a run that a crash interrupted.
        """


Notification = Callable[[RunLifecycleObserver], Iterable[OutboxEntry]]
"""A call of one method of an observer."""


def collect_entries(observers: Iterable[RunLifecycleObserver], notify: Notification) -> list[OutboxEntry]:
    """Notify observers and return their entries. One that raises loses its own entries only: the change is recorded."""
    entries: list[OutboxEntry] = []
    for observer in observers:
        try:
            entries.extend(notify(observer))
        except Exception:  # an error of one observer must not affect the run, other runs and other observers
            logging.getLogger(LOGGER).exception("%s cannot handle a change of a run", type(observer).__name__)
    return entries


class RecordChange(Protocol):
    """Records a changed row, and what to write with it."""

    def __call__(self, run_id: str, values: Mapping[str, Any], entries: Iterable[OutboxEntry] = (), /) -> None:
        """Write these columns and entries soon."""


class LiveRun:
    """One run, from its start until its handle is released."""

    def __init__(
        self,
        row: RunRow,
        handle: RunHandle,
        record_change: RecordChange,
        observers: Sequence[RunLifecycleObserver] = (),
    ) -> None:
        self.row = row
        self.handle = handle
        self._record_change = record_change
        self._observers = observers
        self.event_counts: Counter[str] = Counter()
        """Number of events by type so far."""
        self._revision = 0
        self._snapshot_key: object = None
        self._changed: anyio.Event | None = None
        self._result: RunResult | None = None
        handle.interaction.keep_open()
        handle.observe(self._on_event)
        handle.on_state(self._on_state)

    def _on_event(self, event: BaseEvent) -> None:
        self.event_counts[event.type] += 1
        self.notify_changed()

    @property
    def changed(self) -> anyio.Event:
        """An event that is set at the next change. Get it before reading the state: each change replaces it."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def notify_changed(self) -> None:
        """Wake everybody who waits for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _on_state(self, state: RunState) -> None:
        if state in TERMINAL_STATES:  # recorded together with the result
            return
        if self.row.started_at is None:
            base = self.row.base_commit or current_commit(Path(self.row.work_dir or self.row.cwd))
            started = {"state": state, "started_at": self.handle.header.started_at, "base_commit": base}
            self._change(started, lambda observer: observer.started(self.row, self._summary))
        else:
            self._change({"state": state})

    def _change(self, values: dict[str, Any], entries_of: Notification = lambda _: ()) -> None:
        for name, value in values.items():
            if name != "result":  # it may be long, and the handle holds it
                setattr(self.row, name, value)
        self._record_change(self.row.run_id, values, collect_entries(self._observers, entries_of))
        self.notify_changed()

    @property
    def _summary(self) -> RunView:
        return self.view(full=False, is_shown=False)

    async def execute(self, command: AnyCommand) -> dict[str, Any]:
        """Execute a command. Raises what the handle raises."""
        try:
            return await execute_command(self.handle, command)
        finally:
            self.notify_changed()

    def interaction_requested(self, pending: PendingInteraction) -> None:
        """Notify observers that the agent waits for a person."""

        def notify(observer: RunLifecycleObserver) -> Iterable[OutboxEntry]:
            entries = list(observer.interaction_requested(self.row, self._summary, pending))
            if entries:  # a webhook receives it
                self.handle.interaction.seen.add(pending.id)
            return entries

        self._change({}, notify)

    def ended(self, result: RunResult, journal_bytes: int | None, event_count: int | None = None) -> None:
        """Record the result and notify observers of the end.

        `event_count`: number of events that readers will get, if that is not the number of all events.
        """
        self._result = result
        self._change(
            {
                **ended_values(result),
                "state": self.handle.state,
                "ended_at": self.handle.header.started_at + result.duration_ms,
                "event_count": self.handle.event_count if event_count is None else event_count,
                "event_types": to_json(self.event_counts),
                "journal_bytes": journal_bytes,
            },
            lambda observer: observer.ended(self.row, self._summary, self.event_counts),
        )

    def view(self, *, full: bool, is_shown: bool = True) -> RunView:
        """Return the current view.

        Args:
            full: With the request and the result.
            is_shown: Whether a client gets it, and so sees the pending interactions.
        """
        handle = self.handle
        view = view_of(self.row, full=full)
        view.state, view.event_count = handle.state, handle.event_count
        view.model, view.session_id = present(handle.model), present(handle.session_id)
        view.journal = present(handle.journal)
        if full and self._result is not None:
            view.result = Raw(to_json_bytes(self._result.to_dict()))
        if not self.row.is_over:
            view.is_busy = handle.is_busy
            pending = handle.interaction.pending if is_shown else handle.interaction.peek()
            view.pending = [pending_view(one) for one in pending]
            view.queue_position = present(handle.queue_position)
        key = _snapshot_key(view)
        if key != self._snapshot_key:  # larger than the revisions of earlier server processes
            self._snapshot_key, self._revision = key, max(self._revision + 1, time.time_ns() // 1000)
        view.revision = self._revision
        return view


def ended_values(result: RunResult) -> dict[str, Any]:
    """Return the columns that a result determines."""
    cost = result.cost
    return {
        "exit_reason": result.exit_reason,
        "model": result.model,
        "session_id": result.session_id,
        "turn_count": result.turn_count,
        "duration_ms": result.duration_ms,
        "cost_usd": None if cost is None or cost.source == "unknown" else cost.total_usd,
        "error_code": None if result.error is None else result.error.code,
        "failed_on": " ".join(result.failed_on) or None,
        "result": to_json(result.to_dict()),
        "journal": result.journal,
    }


def view_of(row: RunRow, *, full: bool) -> RunView:
    """Return the view of a stored run. `full`: with the request and the result."""
    return RunView(
        run_id=row.run_id,
        agent=row.agent,
        model=present(row.model),
        session_id=present(row.session_id),
        state=row.state,
        exit_reason=present(row.exit_reason),
        created_at=row.created_at,
        started_at=present(row.started_at),
        ended_at=present(row.ended_at),
        duration_ms=present(row.duration_ms),
        cwd=row.cwd,
        owner=row.owner or UNSET,
        project_id=present(row.project_id),
        tags=list(row.tags) or UNSET,
        event_count=present(row.event_count),
        turn_count=present(row.turn_count),
        cost_usd=present(row.cost_usd),
        error_code=present(row.error_code),
        failed_on=row.failed_on.split() if row.failed_on else UNSET,  # type: ignore[arg-type]  # as `ended_values` writes
        journal=present(row.journal),
        event_types=json.decode(row.event_types) if full and row.event_types else UNSET,
        request=Raw(row.request.encode()) if full else UNSET,
        result=Raw(row.result.encode()) if full and row.result is not None else UNSET,
    )


def _snapshot_key(view: RunView) -> object:
    """Return what a new revision depends on."""
    pending = [observer.id for observer in view.pending] if view.pending else []
    return view.state, view.queue_position, view.is_busy, pending, view.model, view.session_id, view.journal
