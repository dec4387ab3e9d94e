"""The runs of a service: the one place that starts, finds, controls and deletes them."""

import logging
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json_bytes
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.redaction import redact_text
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.commands import AnyCommand, execute_command
from agent_mux.run.derivation import codec_factory
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.runs.live import LiveRun, OutboxEntry, RunLifecycleObserver, now_ms, view_of
from agent_mux.service.runs.readers import (
    Batch,
    RunUpdate,
    live_batches,
    live_updates,
    open_journal,
    stored_batches,
    stored_updates,
)
from agent_mux.service.runs.recovery import Recovery, lost_values
from agent_mux.service.runs.requests import RunRequest, confined, request_of
from agent_mux.service.runs.write_behind import WriteBehindQueue
from agent_mux.service.store.runs import RunFilter, RunPosition, RunRow, RunStore
from agent_mux.service.views import RunView
from agent_mux.settings.allowed_directories import AllowedDirectories

MAX_RECENT_RUNS = 64
"""Ended runs whose handles stay in memory with their latest events: most readers come while a run is new."""
FLUSH_TIMEOUT = 5.0  # seconds to wait for an unavailable database when closing
WRITE_WAIT = 1.0  # seconds that a listing waits for recent changes to be written


class RunManager:
    """Every run of this instance, live or stored."""

    def __init__(  # noqa: PLR0913  # its collaborators
        self,
        mux: AgentMux,
        store: RunStore,
        tasks: anyio.abc.TaskGroup,
        journals: Path,
        roots: AllowedDirectories,
        *,
        observers: Sequence[RunLifecycleObserver] = (),
    ) -> None:
        """`tasks`: lives as long as the service.

        `journals`: where `mux` writes. `roots`: directories that runs may use.
        """
        self._mux = mux
        self._store = store
        self._tasks = tasks
        self._journals = journals
        self._observers = observers
        self._roots = roots
        self._make_codec = codec_factory(mux.adapters)
        self._write_queue = WriteBehindQueue(store)
        self._recovery = Recovery(journals, self._make_codec, self._write_queue, self._recovered_entries)
        self._locks = KeyedLocks()
        self._live: dict[str, LiveRun] = {}
        self._recent: OrderedDict[str, LiveRun] = OrderedDict()
        self._run_ended = anyio.Event()
        """Set when a run has ended, and then replaced."""
        self._new_interactions: deque[tuple[LiveRun, PendingInteraction]] = deque()
        self._interaction_added = anyio.Event()
        self._is_closing = False

    # -- opening and closing

    async def open(self) -> None:
        """Clean up after interrupted runs and start queued ones again.

        The outcomes of interrupted runs are recovered in the background. Raises UNAVAILABLE without a database.
        """
        rows = await self._store.unfinished()
        self._tasks.start_soon(self._write_queue.run)
        for row in await self._recovery.begin(rows):
            await self._restart(row)
        self._tasks.start_soon(self._recovery.run)
        self._tasks.start_soon(self._notify_interactions)
        self._tasks.start_soon(self._notify_queue_positions)

    async def close(self) -> None:
        """Stop: accept no runs, keep queued ones for the next start, abort the others within their grace periods.

        Outcomes are stored unless the database is unavailable; then the next start recovers them from the journals. A
        second call does nothing.
        """
        if self._is_closing:
            return
        self._is_closing = True
        to_abort = [live for live in self._live.values() if not (live.row.is_complete and live.handle.withdraw())]
        async with anyio.create_task_group() as tasks:
            for live in to_abort:
                tasks.start_soon(live.handle.abort)
        while self._live:
            await self._run_ended.wait()
        with anyio.move_on_after(FLUSH_TIMEOUT) as scope:
            await self._write_queue.flush()
        if scope.cancelled_caught:
            warning = (
                "the database is unavailable; the next start recovers the outcomes of the last runs from their journals"
            )
            logging.getLogger(LOGGER).warning(warning)

    def require_open(self) -> None:
        """Raise UNAVAILABLE while the service is shutting down."""
        if self._is_closing:
            raise AgentMuxError("UNAVAILABLE", "the service is shutting down; try again later")

    def _recovered_entries(self, row: RunRow, values: Mapping[str, Any]) -> Iterable[OutboxEntry]:
        """Return the entries of all observers for a run that a crash interrupted."""
        for name, value in values.items():
            setattr(row, name, value)
        view = view_of(row, full=False)
        return [entry for one in self._observers for entry in one.ended(row, view, {})]

    async def _restart(self, row: RunRow) -> None:
        try:
            request = request_of(msgspec.json.decode(row.request))
            options = confined({**request.options, "cwd": row.cwd}, self._roots)
            self._start(row, await self._plan({**options, "run_id": row.run_id}))
        except AgentMuxError as error:
            self._recovery.mark_lost(
                row, f"the server was stopped while the run was queued, and it cannot be started again: {error}"
            )

    # -- creating

    async def create(
        self, body_fields: Any, *, owner: str = "", idempotency_key: str | None = None
    ) -> tuple[RunView, bool]:
        """Start a run; return its view and whether it is new. A repeated idempotency key returns the existing run.

        Raises what `AgentMux.run` raises; VALIDATION_ERROR for a key of a different request; UNAVAILABLE.
        """
        self.require_open()
        request = request_of(body_fields)
        options = confined(request.options, self._roots)
        async with self._locks.hold((owner, idempotency_key or object())):
            if idempotency_key is not None:
                existing = await self._find_by_key(request, owner, idempotency_key)
                if existing is not None:
                    return existing, False
            planned = await self._plan(options)
            row = _new_row(request, planned, owner, idempotency_key)
            async with self._locks.hold(row.run_id):
                return await self._create(row, planned), True

    async def _plan(self, options: Mapping[str, Any]) -> RunPlan:
        """Plan a run with a journal, whatever its profile sets: its events are read from there."""
        return await to_thread.run_sync(partial(self._mux.plan, **options, journal=True))

    async def _create(self, row: RunRow, planned: RunPlan) -> RunView:
        """Insert the row, then start the run: every run that starts is stored.

        Its lock keeps readers waiting until then.
        """
        if self._journal_of(row.run_id).exists() or not await self._insert(row):
            raise ValidationError([FieldError("runId", row.run_id, "an id that no other run has")])
        try:
            live = self._start(row, planned)
        except BaseException:
            await self._discard_row(row.run_id)
            raise
        return live.view(full=True)

    async def _insert(self, row: RunRow) -> bool:
        try:
            return await self._store.add(row)
        except BaseException:  # the request fails, and whether the row exists is unknown
            self._write_queue.remove(row.run_id)
            raise

    async def _discard_row(self, run_id: str) -> None:
        self._write_queue.remove(run_id)
        await self._flush()

    async def _flush(self) -> None:
        with anyio.move_on_after(FLUSH_TIMEOUT, shield=True):
            await self._write_queue.flush()

    async def _find_by_key(self, request: RunRequest, owner: str, key: str) -> RunView | None:
        if self._write_queue.has_removals:  # one of these rows may have this key
            await self._flush()
        row = await self._store.find_by_key(owner, key)
        if row is None or self._write_queue.is_removing(row.run_id):
            return None
        if row.fingerprint != request.fingerprint:
            raise ValidationError([FieldError("Idempotency-Key", key, "a different key for each different request")])
        return await self.get(row.run_id)

    def _start(self, row: RunRow, planned: RunPlan) -> LiveRun:
        self.require_open()  # no await between this check and the start
        handle = self._mux.run(planned, owner=row.owner)
        live = self._live[row.run_id] = LiveRun(row, handle, self._write_queue.put, self._observers)
        handle.interaction.on_pending(lambda pending: self._on_interaction(live, pending))
        self._tasks.start_soon(self._supervise, live)
        return live

    def _on_interaction(self, live: LiveRun, pending: PendingInteraction) -> None:
        self._new_interactions.append((live, pending))
        self._interaction_added.set()

    async def _notify_interactions(self) -> None:
        """Notify observers of interactions a moment later, unless a policy has decided them by then."""
        while True:
            await self._interaction_added.wait()
            self._interaction_added = anyio.Event()
            while self._new_interactions:
                live, pending = self._new_interactions.popleft()
                if any(one.id == pending.id for one in live.handle.interaction.pending):
                    live.interaction_requested(pending)

    async def _supervise(self, live: LiveRun) -> None:
        has_result = True
        with anyio.CancelScope(shield=True):  # bounded, since the client ends the run; the outcome has to be stored
            try:
                result = await live.handle
                live.ended(result, await to_thread.run_sync(_file_size, result.journal))
            except AgentMuxError as error:  # the run was withdrawn, or there was an internal error
                has_result = False
                if not live.handle.is_withdrawn:
                    logging.getLogger(LOGGER).exception("run %s has no result", live.row.run_id)
                    self._write_queue.put(live.row.run_id, lost_values(live.row, str(error)))
                    await self._flush()
            except Exception:  # must not affect other runs; the next start recovers this one
                logging.getLogger(LOGGER).exception("cannot write the outcome of run %s", live.row.run_id)
        del self._live[live.row.run_id]
        if has_result:
            self._recent[live.row.run_id] = live
        while len(self._recent) > MAX_RECENT_RUNS and not self._write_queue.has(next(iter(self._recent))):
            self._recent.popitem(last=False)
        previous, self._run_ended = self._run_ended, anyio.Event()
        previous.set()

    # -- reading

    def find(self, run_id: str) -> LiveRun | None:
        """Return the run if this process has its handle: it is alive or ended recently."""
        return self._live.get(run_id) or self._recent.get(run_id)

    async def _find_live(self, run_id: str) -> LiveRun | None:
        """Return the same, after waiting for a run that is being created or recovered."""
        live = self.find(run_id)
        if live is None:
            async with self._locks.hold(run_id):
                live = self.find(run_id)
            await self._recovery.wait_recovered(run_id)
        return live

    async def get(self, run_id: str, *, full: bool = True) -> RunView:
        """Return one run. `full`: with its request and result, which may be long. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            return live.view(full=full)
        return view_of(await self._row_of(run_id), full=full)

    async def page(
        self, run_filter: RunFilter, *, after_position: RunPosition | None = None, limit: int
    ) -> list[RunView]:
        """Return up to `limit` runs that match the filter, latest first."""
        if run_filter.depends_on_state or self._write_queue.has_removals:
            with anyio.move_on_after(WRITE_WAIT):
                await self._write_queue.flush()
        rows = await self._store.page(run_filter, after_position=after_position, limit=limit)
        if await self._recovery.wait_recovered(*(row.run_id for row in rows)):
            rows = await self._store.page(run_filter, after_position=after_position, limit=limit)
        return [self._view(row) for row in rows if not self._write_queue.is_removing(row.run_id)]

    def _view(self, row: RunRow) -> RunView:
        live = self.find(row.run_id)
        return live.view(full=False) if live is not None else view_of(row, full=False)

    async def _row_of(self, run_id: str) -> RunRow:
        is_none = self._write_queue.is_removing(run_id)  # before the query: the removal may complete during it
        row = await self._store.get(run_id)
        if row is None or is_none:
            raise AgentMuxError("RUN_NOT_FOUND", f"no run {run_id}; list runs with GET /v1/runs")
        return row

    @property
    def alive(self) -> list[LiveRun]:
        """Runs that have not ended."""
        return list(self._live.values())

    # -- events

    async def batches(self, run_id: str, start: int) -> AsyncGenerator[Batch, None]:
        """Yield the events from a number on, until the run has ended. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            source = live_batches(live.handle, start)
        else:
            row = await self._row_of(run_id)
            if row.journal is None:
                return  # it never started
            source = stored_batches(self._journal_of(row.run_id), self._make_codec, start)
        async with aclosing(source) as batches:
            async for batch in batches:
                yield batch

    async def check_readable(self, run: RunView) -> None:
        """Check that the events of a run can be read. `run`: a current view of it. Raises RUN_NOT_FOUND."""
        if self.find(run.run_id) is None and isinstance(run.journal, str):
            await to_thread.run_sync(open_journal, self._journal_of(run.run_id), self._make_codec)

    async def updates(self, run_id: str, start: int) -> AsyncGenerator[RunUpdate, None]:
        """Yield the events with a view of the run at the start and after each change. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            source = live_updates(live, start)
        else:
            row = await self._row_of(run_id)
            source = stored_updates(view_of(row, full=False), self.batches(run_id, start))
        async with aclosing(source) as body_fields:
            async for one in body_fields:
                yield one

    async def _notify_queue_positions(self) -> None:
        while True:
            await self._mux.concurrency.changed.wait()
            for live in self.alive:
                if live.handle.state == "spawned":
                    live.notify_changed()

    async def result(self, run_id: str) -> bytes | None:
        """Return the `run_result` after the end; None for a deleted run, or one that the next server starts again."""
        live = await self._find_live(run_id)
        if live is not None and not live.handle.is_withdrawn:
            try:
                return to_json_bytes((await live.handle.result()).to_dict())
            except AgentMuxError:  # an internal error; its outcome is being stored
                while run_id in self._live:
                    await self._run_ended.wait()
        row = await self._store.get(run_id)
        return None if row is None or row.result is None else row.result.encode()

    # -- commands and deletion

    async def execute(self, run_id: str, command: AnyCommand) -> dict[str, Any]:
        """Execute a command. Raises RUN_NOT_FOUND, RUN_NOT_ACTIVE, and what the handle raises."""
        live = await self._find_live(run_id)
        if live is None:
            row = await self._row_of(run_id)
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} has ended ({row.state}); start a new one")
        try:
            return await execute_command(live.handle, command)
        finally:
            live.notify_changed()

    async def delete(self, run_id: str) -> None:
        """Delete an ended run with its journal. Raises INVALID_STATE_TRANSITION for a live one."""
        live = await self._find_live(run_id)
        row = await self._row_of(run_id)
        state = row.state if live is None else live.handle.state
        if run_id in self._live or state not in TERMINAL_STATES:
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {run_id} is {state}; abort it first")
        await self.delete_many([run_id])

    async def delete_many(self, run_ids: Sequence[str]) -> None:
        """Delete ended runs, their journals first: after a failure the rows remain and deletion can be repeated."""
        await to_thread.run_sync(_delete_journals, [self._journal_of(run_id) for run_id in run_ids])
        await self._store.remove(run_ids)
        for run_id in run_ids:
            self._write_queue.discard(run_id)
            self._recent.pop(run_id, None)

    def _journal_of(self, run_id: str) -> Path:
        return self._journals / f"{run_id}.journal"


def _new_row(request: RunRequest, planned: RunPlan, owner: str, idempotency_key: str | None) -> RunRow:
    options = planned.requested_options
    return RunRow(
        run_id=planned.run_id,
        created_at=now_ms(),
        agent=options.agent,
        model=options.model,
        owner=owner,
        idempotency_key=idempotency_key,
        fingerprint=request.fingerprint,
        request=request.stored_json,
        is_complete=request.is_complete,
        cwd=options.working_directory(),
        project_id=options.project_id,
        tags=tuple(map(redact_text, options.tags)),
    )


def _file_size(journal: str | None) -> int | None:
    try:
        return None if journal is None else Path(journal).stat().st_size
    except OSError:
        return None


def _delete_journals(journals: Sequence[Path]) -> None:
    for journal in journals:
        try:
            journal.unlink(missing_ok=True)
        except OSError as error:
            reason = f"cannot remove the journal {journal}: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", f"{reason}; fix that and delete the run again") from error


class KeyedLocks:
    """A lock per key, kept only while it is held or awaited."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, anyio.Lock] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncGenerator[None, None]:
        """Hold the lock of this key."""
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():  # a waiter takes it over directly
                self._locks.pop(key, None)
