"""The runs of a service: the one place that starts them, finds them and lets go of them.

One at a time for each key: what is done to one run, or under one idempotency key, waits for nothing else."""

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
from agent_mux.client.local import PlannedRun
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.redaction import redact_text
from agent_mux.run.base import TERMINAL
from agent_mux.run.commands import AnyCommand, carry_out
from agent_mux.run.derivation import codec_maker
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
from agent_mux.settings.allowed_directories import Roots

MAX_RECENT_RUNS = 64
"""Runs that are over whose latest events stay in memory: most readers come while a run is new."""
FLUSH_TIMEOUT = 5.0  # seconds at the end for a database that is away
WRITE_WAIT = 1.0  # seconds that a listing waits for what just happened to be written


class RunManager:
    """Every run of this instance, alive or remembered."""

    def __init__(  # noqa: PLR0913  # what it is made of
        self,
        mux: AgentMux,
        store: RunStore,
        tasks: anyio.abc.TaskGroup,
        journals: Path,
        roots: Roots,
        *,
        observers: Sequence[RunLifecycleObserver] = (),
    ) -> None:
        """`tasks`: lives as long as the service. `journals`: where the client writes. `roots`: what runs may use."""
        self._mux = mux
        self._store = store
        self._tasks = tasks
        self._journals = journals
        self._observers = observers
        self._roots = roots
        self._make_codec = codec_maker(mux.adapters)
        self._write_queue = WriteBehindQueue(store)
        self._recovery = Recovery(journals, self._make_codec, self._write_queue, self._recovered_entries)
        self._locks = KeyedLocks()
        self._live: dict[str, LiveRun] = {}
        self._recent: OrderedDict[str, LiveRun] = OrderedDict()
        self._run_ended = anyio.Event()
        """Set when a run is over; the next one has another."""
        self._new_interactions: deque[tuple[LiveRun, PendingInteraction]] = deque()
        self._interaction_added = anyio.Event()
        self._is_closing = False

    # -- beginning and end

    async def open(self) -> None:
        """End what is left of the runs of before, and begin those again that waited; the rest is found out meanwhile.

        Raises UNAVAILABLE without a database.
        """
        rows = await self._store.unfinished()
        self._tasks.start_soon(self._write_queue.run)
        for row in await self._recovery.begin(rows):
            await self._restart(row)
        self._tasks.start_soon(self._recovery.run)
        self._tasks.start_soon(self._notify_interactions)
        self._tasks.start_soon(self._notify_queue_positions)

    async def close(self) -> None:
        """No new runs. Those that wait stay asked for; those that work are aborted, each within its grace period.

        What came of them is written, unless the database is away: then the next start finds it in the journals. Twice
        is once.
        """
        if self._is_closing:
            return
        self._is_closing = True
        working = [live for live in self._live.values() if not (live.row.is_complete and live.handle.withdraw())]
        async with anyio.create_task_group() as tasks:
            for live in working:
                tasks.start_soon(live.handle.abort)
        while self._live:
            await self._run_ended.wait()
        with anyio.move_on_after(FLUSH_TIMEOUT) as scope:
            await self._write_queue.flush()
        if scope.cancelled_caught:
            late = (
                "the database is away: what became of the last runs will be read from their journals at the next start"
            )
            logging.getLogger(LOGGER).warning(late)

    def require_open(self) -> None:
        """Raises UNAVAILABLE when no new runs are taken any more."""
        if self._is_closing:
            raise AgentMuxError("UNAVAILABLE", "the service is shutting down; try again later, or elsewhere")

    def _recovered_entries(self, row: RunRow, values: Mapping[str, Any]) -> Iterable[OutboxEntry]:
        """A run of before a crash is over: what observers have to say of it."""
        for name, value in values.items():
            setattr(row, name, value)
        view = view_of(row, full=False)
        return [entry for one in self._observers for entry in one.ended(row, view, {})]

    async def _restart(self, row: RunRow) -> None:
        try:
            request = request_of(msgspec.json.decode(row.request))
            said = confined({**request.said, "cwd": row.cwd}, self._roots)
            self._start(row, await self._plan({**said, "run_id": row.run_id}))
        except AgentMuxError as error:
            self._recovery.mark_lost(
                row, f"the server was stopped while it waited, and it cannot begin any more: {error}"
            )

    # -- asking for one

    async def create(
        self, payload: Any, *, owner: str = "", idempotency_key: str | None = None
    ) -> tuple[RunView, bool]:
        """Start a run; True: it is new. With a key that was used before, it is the run of then, whatever became of it.

        Raises what `AgentMux.run` raises; VALIDATION_ERROR for a key that was used for something else; UNAVAILABLE.
        """
        self.require_open()
        request = request_of(payload)
        said = confined(request.said, self._roots)
        async with self._locks.hold((owner, idempotency_key or object())):
            if idempotency_key is not None:
                before = await self._find_by_key(request, owner, idempotency_key)
                if before is not None:
                    return before, False
            planned = await self._plan(said)
            row = _new_row(request, planned, owner, idempotency_key)
            async with self._locks.hold(row.run_id):
                return await self._create(row, planned), True

    async def _plan(self, said: Mapping[str, Any]) -> PlannedRun:
        """With a journal, whatever a profile says: the events come from there."""
        return await to_thread.run_sync(partial(self._mux.planned, **said, journal=True))

    async def _create(self, row: RunRow, planned: PlannedRun) -> RunView:
        """The row first: what begins is remembered. Until it has begun, nobody else looks at it."""
        if self._journal_of(row.run_id).exists() or not await self._insert(row):
            raise ValidationError([FieldError("runId", row.run_id, "one that no other run has")])
        try:
            live = self._start(row, planned)
        except BaseException:
            await self._discard_row(row.run_id)
            raise
        return live.view(full=True)

    async def _insert(self, row: RunRow) -> bool:
        try:
            return await self._store.add(row)
        except BaseException:  # whoever asked is told that nothing began, and nobody knows whether the row is there
            self._write_queue.remove(row.run_id)
            raise

    async def _discard_row(self, run_id: str) -> None:
        self._write_queue.remove(run_id)
        await self._flush()

    async def _flush(self) -> None:
        with anyio.move_on_after(FLUSH_TIMEOUT, shield=True):
            await self._write_queue.flush()

    async def _find_by_key(self, request: RunRequest, owner: str, key: str) -> RunView | None:
        if self._write_queue.has_removals:  # one of them may have this key
            await self._flush()
        row = await self._store.find_by_key(owner, key)
        if row is None or self._write_queue.is_removing(row.run_id):
            return None
        if row.fingerprint != request.fingerprint:
            raise ValidationError([FieldError("Idempotency-Key", key, "a key of its own for each different request")])
        return await self.get(row.run_id)

    def _start(self, row: RunRow, planned: PlannedRun) -> LiveRun:
        self.require_open()  # nothing may come between this and the start
        handle = self._mux.run(planned, owner=row.owner)
        live = self._live[row.run_id] = LiveRun(row, handle, self._write_queue.put, self._observers)
        handle.interaction.on_pending(lambda pending: self._on_interaction(live, pending))
        self._tasks.start_soon(self._supervise, live)
        return live

    def _on_interaction(self, live: LiveRun, pending: PendingInteraction) -> None:
        self._new_interactions.append((live, pending))
        self._interaction_added.set()

    async def _notify_interactions(self) -> None:
        """What is asked is looked at a moment later: then whoever decides without a person has decided."""
        while True:
            await self._interaction_added.wait()
            self._interaction_added = anyio.Event()
            while self._new_interactions:
                live, pending = self._new_interactions.popleft()
                if any(one.id == pending.id for one in live.handle.interaction.pending):
                    live.interaction_requested(pending)

    async def _supervise(self, live: LiveRun) -> None:
        is_whole = True
        with anyio.CancelScope(shield=True):  # its end is bounded: the client ends it, and it is to be remembered
            try:
                result = await live.handle
                live.ended(result, await to_thread.run_sync(_file_size, result.journal))
            except AgentMuxError as error:  # it was taken back, or there is an error of ours
                is_whole = False
                if not live.handle.is_withdrawn:
                    logging.getLogger(LOGGER).exception("run %s has no result", live.row.run_id)
                    self._write_queue.put(live.row.run_id, lost_values(live.row, str(error)))
                    await self._flush()
            except Exception:  # one run must not take down the others; the next start finds out what became of it
                logging.getLogger(LOGGER).exception("what became of run %s cannot be written", live.row.run_id)
        del self._live[live.row.run_id]
        if is_whole:
            self._recent[live.row.run_id] = live
        while len(self._recent) > MAX_RECENT_RUNS and not self._write_queue.has(next(iter(self._recent))):
            self._recent.popitem(last=False)
        left, self._run_ended = self._run_ended, anyio.Event()
        left.set()

    # -- looking

    def find(self, run_id: str) -> LiveRun | None:
        """The run, if this process has it: alive, or over not long ago."""
        return self._live.get(run_id) or self._recent.get(run_id)

    async def _find_live(self, run_id: str) -> LiveRun | None:
        """The same, once it has begun, and once it is known what became of it."""
        live = self.find(run_id)
        if live is None:
            async with self._locks.hold(run_id):
                live = self.find(run_id)
            await self._recovery.wait_recovered(run_id)
        return live

    async def get(self, run_id: str, *, full: bool = True) -> RunView:
        """One run; `whole`: with its request and its result, which may be long. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            return live.view(full=full)
        return view_of(await self._row_of(run_id), full=full)

    async def page(self, wanted: RunFilter, *, after_position: RunPosition | None = None, limit: int) -> list[RunView]:
        """Runs, the latest first."""
        if wanted.depends_on_state or self._write_queue.has_removals:
            with anyio.move_on_after(WRITE_WAIT):
                await self._write_queue.flush()
        rows = await self._store.page(wanted, after_position=after_position, limit=limit)
        if await self._recovery.wait_recovered(*(row.run_id for row in rows)):
            rows = await self._store.page(wanted, after_position=after_position, limit=limit)
        return [self._view(row) for row in rows if not self._write_queue.is_removing(row.run_id)]

    def _view(self, row: RunRow) -> RunView:
        live = self.find(row.run_id)
        return live.view(full=False) if live is not None else view_of(row, full=False)

    async def _row_of(self, run_id: str) -> RunRow:
        is_none = self._write_queue.is_removing(run_id)  # looked at first: it may be gone when the row comes
        row = await self._store.get(run_id)
        if row is None or is_none:
            raise AgentMuxError("RUN_NOT_FOUND", f"there is no run {run_id}; GET /v1/runs lists those there are")
        return row

    @property
    def alive(self) -> list[LiveRun]:
        """Those that are not over."""
        return list(self._live.values())

    # -- events

    async def batches(self, run_id: str, start: int) -> AsyncGenerator[Batch, None]:
        """The events from a number on, until the run is over. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            source = live_batches(live.handle, start)
        else:
            row = await self._row_of(run_id)
            if row.journal is None:
                return  # it never began
            source = stored_batches(self._journal_of(row.run_id), self._make_codec, start)
        async with aclosing(source) as batches:
            async for batch in batches:
                yield batch

    async def check_readable(self, run: RunView) -> None:
        """Raises RUN_NOT_FOUND when its journal cannot be read any more. `run`: what `get` has just told of it."""
        if self.find(run.run_id) is None and isinstance(run.journal, str):
            await to_thread.run_sync(open_journal, self._journal_of(run.run_id), self._make_codec)

    async def updates(self, run_id: str, start: int) -> AsyncGenerator[RunUpdate, None]:
        """The same, and how the run is: at once, and whenever it changed. Raises RUN_NOT_FOUND."""
        live = await self._find_live(run_id)
        if live is not None:
            source = live_updates(live, start)
        else:
            row = await self._row_of(run_id)
            source = stored_updates(view_of(row, full=False), self.batches(run_id, start))
        async with aclosing(source) as payload:
            async for one in payload:
                yield one

    async def _notify_queue_positions(self) -> None:
        while True:
            await self._mux.places.changed.wait()
            for live in self.alive:
                if live.handle.state == "spawned":
                    live.notify_changed()

    async def result(self, run_id: str) -> bytes | None:
        """The `run_result`, when it is over. None: it was forgotten, or begins with the next start of the server."""
        live = await self._find_live(run_id)
        if live is not None and not live.handle.is_withdrawn:
            try:
                return to_json_bytes((await live.handle.result()).to_dict())
            except AgentMuxError:  # an error of ours; what is known of it is written
                while run_id in self._live:
                    await self._run_ended.wait()
        row = await self._store.get(run_id)
        return None if row is None or row.result is None else row.result.encode()

    # -- telling

    async def execute(self, run_id: str, command: AnyCommand) -> dict[str, Any]:
        """Carry out a command. Raises RUN_NOT_FOUND, RUN_NOT_ACTIVE, and what the handle raises."""
        live = await self._find_live(run_id)
        if live is None:
            row = await self._row_of(run_id)
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} is over ({row.state}); start a new one")
        try:
            return await carry_out(live.handle, command)
        finally:
            live.notify_changed()

    async def delete(self, run_id: str) -> None:
        """Forget a run that is over, with its journal. Raises INVALID_STATE_TRANSITION for one that is alive."""
        live = await self._find_live(run_id)
        row = await self._row_of(run_id)
        state = row.state if live is None else live.handle.state
        if run_id in self._live or state not in TERMINAL:
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {run_id} is {state}; abort it first")
        await self.forget([run_id])

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Runs that are over. The journals first: what is left when that fails is found again, and can be repeated."""
        await to_thread.run_sync(_delete_journals, [self._journal_of(run_id) for run_id in run_ids])
        await self._store.remove(run_ids)
        for run_id in run_ids:
            self._write_queue.discard(run_id)
            self._recent.pop(run_id, None)

    def _journal_of(self, run_id: str) -> Path:
        return self._journals / f"{run_id}.journal"


def _new_row(request: RunRequest, planned: PlannedRun, owner: str, idempotency_key: str | None) -> RunRow:
    options = planned.settled.options
    return RunRow(
        run_id=planned.plan.run_id,
        created_at=now_ms(),
        agent=options.agent,
        model=options.model,
        owner=owner,
        idempotency_key=idempotency_key,
        fingerprint=request.fingerprint,
        request=request.remembered,
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
            kept = f"the journal {journal} cannot be removed: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", f"{kept}; make that possible, and delete the run again") from error


class KeyedLocks:
    """Locks that are there as long as somebody has or wants them."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, anyio.Lock] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncGenerator[None, None]:
        """Be the only one with this key."""
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():  # it is handed over directly to the next one who waits
                self._locks.pop(key, None)
