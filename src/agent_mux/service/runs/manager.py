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
from agent_mux.service.runs.live import Entry, LiveRun, RunObserver, now_ms, view_of
from agent_mux.service.runs.readers import Batch, Seen, live_batches, opened, seen_of, seen_of_stored, stored_batches
from agent_mux.service.runs.recovery import Recovery, lost_values
from agent_mux.service.runs.requests import RunRequest, confined, request_of
from agent_mux.service.runs.write_behind import Keeper
from agent_mux.service.store.runs import Place, RunFilter, RunRow, RunStore
from agent_mux.service.views import RunView
from agent_mux.settings.allowed_directories import Roots

KEPT_HANDLES = 64
"""Runs that are over whose latest events stay in memory: most readers come while a run is new."""
FLUSH_WITHIN = 5.0  # seconds at the end for a database that is away
WRITTEN_WITHIN = 1.0  # seconds that a listing waits for what just happened to be written


class Runs:
    """Every run of this instance, alive or remembered."""

    def __init__(  # noqa: PLR0913  # what it is made of
        self,
        mux: AgentMux,
        store: RunStore,
        tasks: anyio.abc.TaskGroup,
        journals: Path,
        roots: Roots,
        *,
        observers: Sequence[RunObserver] = (),
    ) -> None:
        """`tasks`: lives as long as the service. `journals`: where the client writes. `roots`: what runs may use."""
        self._mux = mux
        self._store = store
        self._tasks = tasks
        self._journals = journals
        self._observers = observers
        self._roots = roots
        self._make_codec = codec_maker(mux.adapters)
        self._keeper = Keeper(store)
        self._recovery = Recovery(journals, self._make_codec, self._keeper, self._ended_before)
        self._turns = Turns()
        self._live: dict[str, LiveRun] = {}
        self._recent: OrderedDict[str, LiveRun] = OrderedDict()
        self._left = anyio.Event()
        """Set when a run is over; the next one has another."""
        self._questions: deque[tuple[LiveRun, PendingInteraction]] = deque()
        self._asked = anyio.Event()
        self._is_closing = False

    # -- beginning and end

    async def open(self) -> None:
        """End what is left of the runs of before, and begin those again that waited; the rest is found out meanwhile.

        Raises UNAVAILABLE without a database.
        """
        rows = await self._store.unfinished()
        self._tasks.start_soon(self._keeper.run)
        for row in await self._recovery.begin(rows):
            await self._begin_again(row)
        self._tasks.start_soon(self._recovery.run)
        self._tasks.start_soon(self._tell_of_questions)
        self._tasks.start_soon(self._tell_of_positions)

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
            await self._left.wait()
        with anyio.move_on_after(FLUSH_WITHIN) as scope:
            await self._keeper.caught_up()
        if scope.cancelled_caught:
            late = (
                "the database is away: what became of the last runs will be read from their journals at the next start"
            )
            logging.getLogger(LOGGER).warning(late)

    def require_open(self) -> None:
        """Raises UNAVAILABLE when no new runs are taken any more."""
        if self._is_closing:
            raise AgentMuxError("UNAVAILABLE", "the service is shutting down; try again later, or elsewhere")

    def _ended_before(self, row: RunRow, values: Mapping[str, Any]) -> Iterable[Entry]:
        """A run of before a crash is over: what observers have to say of it."""
        for name, value in values.items():
            setattr(row, name, value)
        view = view_of(row, whole=False)
        return [entry for one in self._observers for entry in one.ended(row, view, {})]

    async def _begin_again(self, row: RunRow) -> None:
        try:
            request = request_of(msgspec.json.decode(row.request))
            said = confined({**request.said, "cwd": row.cwd}, self._roots)
            self._begin(row, await self._planned({**said, "run_id": row.run_id}))
        except AgentMuxError as error:
            self._recovery.lose(row, f"the server was stopped while it waited, and it cannot begin any more: {error}")

    # -- asking for one

    async def create(self, told: Any, *, owner: str = "", idempotency_key: str | None = None) -> tuple[RunView, bool]:
        """Start a run; True: it is new. With a key that was used before, it is the run of then, whatever became of it.

        Raises what `AgentMux.run` raises; VALIDATION_ERROR for a key that was used for something else; UNAVAILABLE.
        """
        self.require_open()
        request = request_of(told)
        said = confined(request.said, self._roots)
        async with self._turns.of((owner, idempotency_key or object())):
            if idempotency_key is not None:
                before = await self._asked_before(request, owner, idempotency_key)
                if before is not None:
                    return before, False
            planned = await self._planned(said)
            row = _row(request, planned, owner, idempotency_key)
            async with self._turns.of(row.run_id):
                return await self._created(row, planned), True

    async def _planned(self, said: Mapping[str, Any]) -> PlannedRun:
        """With a journal, whatever a profile says: the events come from there."""
        return await to_thread.run_sync(partial(self._mux.planned, **said, journal=True))

    async def _created(self, row: RunRow, planned: PlannedRun) -> RunView:
        """The row first: what begins is remembered. Until it has begun, nobody else looks at it."""
        if self._journal_of(row.run_id).exists() or not await self._added(row):
            raise ValidationError([FieldError("runId", row.run_id, "one that no other run has")])
        try:
            live = self._begin(row, planned)
        except BaseException:
            await self._take_back(row.run_id)
            raise
        return live.view(whole=True)

    async def _added(self, row: RunRow) -> bool:
        try:
            return await self._store.add(row)
        except BaseException:  # whoever asked is told that nothing began, and nobody knows whether the row is there
            self._keeper.remove(row.run_id)
            raise

    async def _take_back(self, run_id: str) -> None:
        self._keeper.remove(run_id)
        await self._caught_up()

    async def _caught_up(self) -> None:
        with anyio.move_on_after(FLUSH_WITHIN, shield=True):
            await self._keeper.caught_up()

    async def _asked_before(self, request: RunRequest, owner: str, key: str) -> RunView | None:
        if self._keeper.has_removals:  # one of them may have this key
            await self._caught_up()
        row = await self._store.asked_before(owner, key)
        if row is None or self._keeper.is_removing(row.run_id):
            return None
        if row.fingerprint != request.fingerprint:
            raise ValidationError([FieldError("Idempotency-Key", key, "a key of its own for each different request")])
        return await self.get(row.run_id)

    def _begin(self, row: RunRow, planned: PlannedRun) -> LiveRun:
        self.require_open()  # nothing may come between this and the start
        handle = self._mux.run(planned, owner=row.owner)
        live = self._live[row.run_id] = LiveRun(row, handle, self._keeper.put, self._observers)
        handle.interaction.on_pending(lambda pending: self._ask(live, pending))
        self._tasks.start_soon(self._watch, live)
        return live

    def _ask(self, live: LiveRun, pending: PendingInteraction) -> None:
        self._questions.append((live, pending))
        self._asked.set()

    async def _tell_of_questions(self) -> None:
        """What is asked is looked at a moment later: then whoever decides without a person has decided."""
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            while self._questions:
                live, pending = self._questions.popleft()
                if any(one.id == pending.id for one in live.handle.interaction.pending):
                    live.waits(pending)

    async def _watch(self, live: LiveRun) -> None:
        is_whole = True
        with anyio.CancelScope(shield=True):  # its end is bounded: the client ends it, and it is to be remembered
            try:
                result = await live.handle
                live.ended(result, await to_thread.run_sync(_size_of, result.journal))
            except AgentMuxError as error:  # it was taken back, or there is an error of ours
                is_whole = False
                if not live.handle.is_withdrawn:
                    logging.getLogger(LOGGER).exception("run %s has no result", live.row.run_id)
                    self._keeper.put(live.row.run_id, lost_values(live.row, str(error)))
                    await self._caught_up()
            except Exception:  # one run must not take down the others; the next start finds out what became of it
                logging.getLogger(LOGGER).exception("what became of run %s cannot be written", live.row.run_id)
        del self._live[live.row.run_id]
        if is_whole:
            self._recent[live.row.run_id] = live
        while len(self._recent) > KEPT_HANDLES and not self._keeper.has(next(iter(self._recent))):
            self._recent.popitem(last=False)
        left, self._left = self._left, anyio.Event()
        left.set()

    # -- looking

    def find(self, run_id: str) -> LiveRun | None:
        """The run, if this process has it: alive, or over not long ago."""
        return self._live.get(run_id) or self._recent.get(run_id)

    async def _found(self, run_id: str) -> LiveRun | None:
        """The same, once it has begun, and once it is known what became of it."""
        live = self.find(run_id)
        if live is None:
            async with self._turns.of(run_id):
                live = self.find(run_id)
            await self._recovery.known(run_id)
        return live

    async def get(self, run_id: str, *, whole: bool = True) -> RunView:
        """One run; `whole`: with its request and its result, which may be long. Raises RUN_NOT_FOUND."""
        live = await self._found(run_id)
        if live is not None:
            return live.view(whole=whole)
        return view_of(await self._row_of(run_id), whole=whole)

    async def page(self, wanted: RunFilter, *, behind: Place | None = None, limit: int) -> list[RunView]:
        """Runs, the latest first."""
        if wanted.is_of_state or self._keeper.has_removals:
            with anyio.move_on_after(WRITTEN_WITHIN):
                await self._keeper.caught_up()
        rows = await self._store.page(wanted, behind=behind, limit=limit)
        if await self._recovery.known(*(row.run_id for row in rows)):
            rows = await self._store.page(wanted, behind=behind, limit=limit)
        return [self._view(row) for row in rows if not self._keeper.is_removing(row.run_id)]

    def _view(self, row: RunRow) -> RunView:
        live = self.find(row.run_id)
        return live.view(whole=False) if live is not None else view_of(row, whole=False)

    async def _row_of(self, run_id: str) -> RunRow:
        is_none = self._keeper.is_removing(run_id)  # looked at first: it may be gone when the row comes
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
        live = await self._found(run_id)
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
            await to_thread.run_sync(opened, self._journal_of(run.run_id), self._make_codec)

    async def seen(self, run_id: str, start: int) -> AsyncGenerator[Seen, None]:
        """The same, and how the run is: at once, and whenever it changed. Raises RUN_NOT_FOUND."""
        live = await self._found(run_id)
        if live is not None:
            source = seen_of(live, start)
        else:
            row = await self._row_of(run_id)
            source = seen_of_stored(view_of(row, whole=False), self.batches(run_id, start))
        async with aclosing(source) as told:
            async for one in told:
                yield one

    async def _tell_of_positions(self) -> None:
        while True:
            await self._mux.places.changed.wait()
            for live in self.alive:
                if live.handle.state == "spawned":
                    live.tell_of_news()

    async def result(self, run_id: str) -> bytes | None:
        """The `run_result`, when it is over. None: it was forgotten, or begins with the next start of the server."""
        live = await self._found(run_id)
        if live is not None and not live.handle.is_withdrawn:
            try:
                return to_json_bytes((await live.handle.result()).to_dict())
            except AgentMuxError:  # an error of ours; what is known of it is written
                while run_id in self._live:
                    await self._left.wait()
        row = await self._store.get(run_id)
        return None if row is None or row.result is None else row.result.encode()

    # -- telling

    async def tell(self, run_id: str, command: AnyCommand) -> dict[str, Any]:
        """Carry out a command. Raises RUN_NOT_FOUND, RUN_NOT_ACTIVE, and what the handle raises."""
        live = await self._found(run_id)
        if live is None:
            row = await self._row_of(run_id)
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} is over ({row.state}); start a new one")
        try:
            return await carry_out(live.handle, command)
        finally:
            live.tell_of_news()

    async def delete(self, run_id: str) -> None:
        """Forget a run that is over, with its journal. Raises INVALID_STATE_TRANSITION for one that is alive."""
        live = await self._found(run_id)
        row = await self._row_of(run_id)
        state = row.state if live is None else live.handle.state
        if run_id in self._live or state not in TERMINAL:
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {run_id} is {state}; abort it first")
        await self.forget([run_id])

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Runs that are over. The journals first: what is left when that fails is found again, and can be repeated."""
        await to_thread.run_sync(_remove, [self._journal_of(run_id) for run_id in run_ids])
        await self._store.remove(run_ids)
        for run_id in run_ids:
            self._keeper.forget(run_id)
            self._recent.pop(run_id, None)

    def _journal_of(self, run_id: str) -> Path:
        return self._journals / f"{run_id}.journal"


def _row(request: RunRequest, planned: PlannedRun, owner: str, idempotency_key: str | None) -> RunRow:
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


def _size_of(journal: str | None) -> int | None:
    try:
        return None if journal is None else Path(journal).stat().st_size
    except OSError:
        return None


def _remove(journals: Sequence[Path]) -> None:
    for journal in journals:
        try:
            journal.unlink(missing_ok=True)
        except OSError as error:
            kept = f"the journal {journal} cannot be removed: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", f"{kept}; make that possible, and delete the run again") from error


class Turns:
    """Locks that are there as long as somebody has or wants them."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, anyio.Lock] = {}

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncGenerator[None, None]:
        """Be the only one with this key."""
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():  # it is handed over directly to the next one who waits
                self._locks.pop(key, None)
