"""The runs of a service: the one place that starts them, finds them and lets go of them."""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec
from anyio import to_thread
from ulid import ULID

from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.plain_json import to_json_bytes
from agent_mux.redaction import redact_text
from agent_mux.roots import Roots
from agent_mux.run.commands import AnyCommand, carry_out
from agent_mux.run.derive import codec_maker
from agent_mux.service.runs.confining import confined
from agent_mux.service.runs.keeper import Keeper
from agent_mux.service.runs.live import LiveRun, now_ms, view_of
from agent_mux.service.runs.reading import Batch, live_batches, stored_batches
from agent_mux.service.runs.recovery import lost_values, mended_values
from agent_mux.service.runs.requests import RunRequest, request_of
from agent_mux.service.store.runs import Place, RunFilter, RunRow, RunStore
from agent_mux.service.views import RunView
from agent_mux.telemetry.logs import LOGGER

KEPT_HANDLES = 64
"""Runs that are over whose latest events stay in memory: most readers come while a run is new."""


class Runs:
    """Every run of this instance, alive or remembered."""

    def __init__(
        self, mux: AgentMux, store: RunStore, tasks: anyio.abc.TaskGroup, journals: Path, roots: Roots
    ) -> None:
        """`tasks`: lives as long as the service. `journals`: where the client writes. `roots`: what runs may use."""
        self._mux = mux
        self._store = store
        self._tasks = tasks
        self._journals = journals
        self._roots = roots
        self._make_codec = codec_maker(mux.adapters)
        self._keeper = Keeper(store)
        self._live: dict[str, LiveRun] = {}
        self._recent: OrderedDict[str, LiveRun] = OrderedDict()
        self._is_closing = False

    # -- beginning and end

    async def open(self) -> None:
        """Find out what became of the runs of before, and begin to write. Raises UNAVAILABLE without a database."""
        for row in await self._store.unfinished():
            await self._recover(row)
        self._tasks.start_soon(self._keeper.run)

    async def close(self) -> None:
        """No new runs; those that are alive are aborted, each within its grace period, and remembered."""
        self._is_closing = True
        async with anyio.create_task_group() as tasks:
            for live in list(self._live.values()):
                tasks.start_soon(live.handle.abort)
        await self._keeper.flushed()

    def require_open(self) -> None:
        """Raises UNAVAILABLE when no new runs are taken any more."""
        if self._is_closing:
            raise AgentMuxError("UNAVAILABLE", "the service is shutting down; try again later, or elsewhere")

    async def _recover(self, row: RunRow) -> None:
        journal = self._journals / f"{row.run_id}.journal"
        if journal.exists():
            try:
                values = await to_thread.run_sync(mended_values, row.run_id, journal, self._make_codec)
            except (AgentMuxError, OSError) as error:
                values = lost_values(row, f"the server was killed, and the journal cannot be read: {error}")
            await self._store.change(row.run_id, values)
        elif row.is_complete:
            await self._begin_again(row)
        else:
            why = "the server was killed while the run waited for a place, and its secrets were not written down"
            await self._store.change(row.run_id, lost_values(row, f"{why}; ask for it again"))

    async def _begin_again(self, row: RunRow) -> None:
        request = request_of(msgspec.json.decode(row.request))
        try:
            said = confined({**request.said, "cwd": row.cwd}, self._roots)
            self._start(row, {**said, "run_id": row.run_id})
        except AgentMuxError as error:
            await self._store.change(row.run_id, lost_values(row, f"it could not begin any more: {error}"))

    # -- asking for one

    async def create(self, told: Any, *, owner: str = "", idempotency_key: str | None = None) -> tuple[RunView, bool]:
        """Start a run; True: it is new. With a key that was used before, it is the run of then, whatever became of it.

        Raises what `AgentMux.run` raises; VALIDATION_ERROR for a key that was used for something else; UNAVAILABLE.
        """
        self.require_open()
        request = request_of(told)
        said = confined(request.said, self._roots)
        if idempotency_key is not None:
            before = await self._asked_before(request, owner, idempotency_key)
            if before is not None:
                return before, False
        row = self._row(request, said, owner, idempotency_key)
        if not await self._store.add(row):
            return await self._taken(request, row)
        try:
            live = self._start(row, {**said, "run_id": row.run_id})
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._store.remove([row.run_id])
            raise
        return live.view(whole=True), True

    def _row(self, request: RunRequest, said: Mapping[str, Any], owner: str, idempotency_key: str | None) -> RunRow:
        options = self._mux.settled(**said).options
        return RunRow(
            run_id=options.run_id or str(ULID()),
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

    async def _asked_before(self, request: RunRequest, owner: str, key: str) -> RunView | None:
        row = await self._store.asked_before(owner, key)
        if row is None:
            return None
        if row.fingerprint != request.fingerprint:
            raise ValidationError([FieldError("Idempotency-Key", key, "a key of its own for each different request")])
        return await self.get(row.run_id)

    async def _taken(self, request: RunRequest, row: RunRow) -> tuple[RunView, bool]:
        """Somebody was faster, with the same key or the same id."""
        if row.idempotency_key is not None:
            before = await self._asked_before(request, row.owner, row.idempotency_key)
            if before is not None:
                return before, False
        raise ValidationError([FieldError("runId", row.run_id, "one that no other run has")])

    def _start(self, row: RunRow, said: Mapping[str, Any]) -> LiveRun:
        handle = self._mux.run(
            **said, journal=True, owner=row.owner
        )  # whatever a profile says: the events come from there
        live = self._live[row.run_id] = LiveRun(row, handle, self._keeper.put)
        self._tasks.start_soon(self._watch, live)
        return live

    async def _watch(self, live: LiveRun) -> None:
        with anyio.CancelScope(shield=True):  # its end is bounded: the client ends it, and it is to be remembered
            result = await live.handle
            try:
                size = await to_thread.run_sync(_size_of, result.journal)
                live.ended(result, size)
            except Exception:  # one run must not take down the others; the next start finds out what became of it
                logging.getLogger(LOGGER).exception("what became of run %s cannot be written", live.row.run_id)
        del self._live[live.row.run_id]
        self._recent[live.row.run_id] = live
        while len(self._recent) > KEPT_HANDLES and not self._keeper.has(next(iter(self._recent))):
            self._recent.popitem(last=False)

    # -- looking

    def find(self, run_id: str) -> LiveRun | None:
        """The run, if this process has it: alive, or over not long ago."""
        return self._live.get(run_id) or self._recent.get(run_id)

    async def get(self, run_id: str, *, whole: bool = True) -> RunView:
        """One run; `whole`: with its request and its result, which may be long. Raises RUN_NOT_FOUND."""
        live = self.find(run_id)
        if live is not None:
            return live.view(whole=whole)
        return view_of(await self._row_of(run_id), whole=whole)

    async def page(self, wanted: RunFilter, *, behind: Place | None = None, limit: int) -> list[RunView]:
        """Runs, the latest first."""
        rows = await self._store.page(wanted, behind=behind, limit=limit)
        return [self._view(row) for row in rows]

    def _view(self, row: RunRow) -> RunView:
        live = self.find(row.run_id)
        return live.view(whole=False) if live is not None else view_of(row, whole=False)

    async def _row_of(self, run_id: str) -> RunRow:
        row = await self._store.get(run_id)
        if row is None:
            raise AgentMuxError("RUN_NOT_FOUND", f"there is no run {run_id}; GET /v1/runs lists those there are")
        return row

    @property
    def alive(self) -> list[LiveRun]:
        """Those that are not over."""
        return list(self._live.values())

    # -- events

    async def batches(self, run_id: str, start: int) -> AsyncGenerator[Batch, None]:
        """The events from a number on, until the run is over. Raises RUN_NOT_FOUND."""
        live = self.find(run_id)
        if live is not None:
            source = live_batches(live.handle, start)
        else:
            row = await self._row_of(run_id)
            if row.journal is None:
                return  # it never began
            source = stored_batches(self._journals / f"{row.run_id}.journal", self._make_codec, start)
        async with aclosing(source) as batches:
            async for batch in batches:
                yield batch

    async def result(self, run_id: str) -> bytes:
        """The `run_result`, when the run is over. Raises RUN_NOT_FOUND."""
        live = self.find(run_id)
        if live is not None:
            return to_json_bytes((await live.handle.result()).to_dict())
        return ((await self._row_of(run_id)).result or "{}").encode()

    # -- telling

    async def tell(self, run_id: str, command: AnyCommand) -> dict[str, Any]:
        """Carry out a command. Raises RUN_NOT_FOUND, RUN_NOT_ACTIVE, and what the handle raises."""
        live = self.find(run_id)
        if live is None:
            row = await self._row_of(run_id)
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} is over ({row.state}); start a new one")
        return await carry_out(live.handle, command)

    async def delete(self, run_id: str) -> None:
        """Forget a run that is over, with its journal. Raises INVALID_STATE_TRANSITION for one that is alive."""
        if run_id in self._live:
            alive = f"run {run_id} is {self._live[run_id].handle.state}; abort it first"
            raise AgentMuxError("INVALID_STATE_TRANSITION", alive)
        await self.forget([await self._row_of(run_id)])

    async def forget(self, rows: list[RunRow]) -> None:
        """Runs that are over: the rows first, so that nobody finds half of one."""
        for row in rows:
            self._keeper.forget(row.run_id)
            self._recent.pop(row.run_id, None)
        await self._store.remove([row.run_id for row in rows])
        for row in rows:
            await to_thread.run_sync(_remove, self._journals / f"{row.run_id}.journal")


def _size_of(journal: str | None) -> int | None:
    try:
        return None if journal is None else Path(journal).stat().st_size
    except OSError:
        return None


def _remove(journal: Path) -> None:
    try:
        journal.unlink(missing_ok=True)
    except OSError as error:
        logging.getLogger(LOGGER).warning("the journal %s cannot be removed: %s", journal, error.strerror or error)
