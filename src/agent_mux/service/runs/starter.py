"""Starts runs and records how they end: new ones, and those that waited when an earlier server stopped."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.redaction import redact_text
from agent_mux.run.derivation import codec_factory
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.options import validate_options
from agent_mux.service.audit.entries import Actor
from agent_mux.service.audit.trail import OK, AuditTrail
from agent_mux.service.clock import now_ms
from agent_mux.service.known_secrets import KnownSecrets
from agent_mux.service.problems import RetryLaterError
from agent_mux.service.runs.incomplete import recorded_batches
from agent_mux.service.runs.interactions import InteractionNotifier
from agent_mux.service.runs.live import LiveRun, RunLifecycleObserver
from agent_mux.service.runs.locks import KeyedLocks
from agent_mux.service.runs.recovery import lost_values
from agent_mux.service.runs.registry import RunRegistry
from agent_mux.service.runs.requests import RunRequest, confined, request_of
from agent_mux.service.store.audit import insert_audit
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView
from agent_mux.settings.allowed_directories import AllowedDirectories


class RunStarter:
    """Starts runs until the service shuts down."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        mux: AgentMux,
        registry: RunRegistry,
        tasks: anyio.abc.TaskGroup,
        roots: AllowedDirectories,
        secrets: KnownSecrets,
        audit: AuditTrail,
        *,
        observers: Sequence[RunLifecycleObserver] = (),
    ) -> None:
        """`tasks`: lives as long as the service. `roots`: directories that runs may use. `secrets`: learns theirs."""
        self._mux = mux
        self._registry = registry
        self._tasks = tasks
        self._roots = roots
        self._secrets = secrets
        self._audit = audit
        self._observers = observers
        self._keys = KeyedLocks()
        self._interactions = InteractionNotifier()
        self._is_closing = False
        self._closing_reason = "the service is shutting down; try again later"
        self._drains_until: float | None = None

    # -- opening and closing

    def open(self) -> None:
        """Begin to notify observers and readers of live runs."""
        self._tasks.start_soon(self._interactions.run)
        self._tasks.start_soon(self._notify_queue_positions)

    async def _notify_queue_positions(self) -> None:
        while True:
            await self._mux.concurrency.changed.wait()
            for live in self._registry.alive:
                if live.handle.state == "spawned":
                    live.notify_changed()

    def require_open(self) -> None:
        """Raise UNAVAILABLE while the service is shutting down."""
        if self._is_closing:
            raise AgentMuxError("UNAVAILABLE", self._closing_reason)

    def require_accepting(self) -> None:
        """Raise UNAVAILABLE if no new runs are accepted: the service drains or is shutting down."""
        self.require_open()
        if self._drains_until is not None:
            remaining = self._drains_until - time.monotonic()
            raise RetryLaterError(
                "UNAVAILABLE",
                "the service is draining before it stops and accepts no new runs; try again after its restart, or use "
                "another instance",
                remaining,
            )

    async def drain(self, seconds: float) -> None:
        """Accept no new runs, keep queued ones for the next start, and wait until the others have ended.

        A queued run whose request has secrets cannot be stored: it may still start. The caller limits the wait to
        `seconds`, which clients are given as the time until a restart.
        """
        self._drains_until = time.monotonic() + seconds
        alive = self._registry.alive
        for live in alive:
            if live.row.is_complete:
                live.handle.withdraw()
        await self._registry.wait_released(*(live.row.run_id for live in alive))

    async def close(self) -> None:
        """Stop: accept no runs, keep queued ones for the next start, abort the others within their grace periods.

        Outcomes are stored unless the database is unavailable; then the next start recovers them from the journals. A
        second call does nothing.
        """
        if self._is_closing:
            return
        self._is_closing = True
        alive = self._registry.alive
        async with anyio.create_task_group() as tasks:
            for live in alive:
                if not (live.row.is_complete and live.handle.withdraw()):
                    tasks.start_soon(live.handle.abort)
        await self._registry.wait_released(*(live.row.run_id for live in alive))
        if not await self._registry.flush():
            warning = (
                "the database is unavailable; the next start recovers the outcomes of the last runs from their journals"
            )
            logging.getLogger(LOGGER).warning(warning)

    async def give_up(self, reason: str) -> None:
        """Stop because another server has taken over the runs: accept no more, and abort all.

        Their outcomes cannot be stored; the other server has ended these runs as `lost`. `reason`: the message of
        refused requests.
        """
        self._is_closing, self._closing_reason = True, reason
        async with anyio.create_task_group() as tasks:
            for live in self._registry.alive:
                tasks.start_soon(live.handle.abort)

    # -- creating

    async def create(
        self,
        body_fields: Any,
        *,
        owner: str = "",
        idempotency_key: str | None = None,
        actor: Actor | None = None,
        admit: Callable[[], None] = lambda: None,
    ) -> tuple[RunView, bool]:
        """Start a run; return its view and whether it is new. A repeated idempotency key returns the existing run.

        `actor`: who the audit trail names; None: the start is not recorded there. `admit`: called once for a valid
        request that starts a run; it may raise.

        Raises what `AgentMux.run` raises; VALIDATION_ERROR for a key of a different request; UNAVAILABLE.
        """
        self.require_open()
        request = request_of(body_fields)
        options = confined(request.options, self._roots)
        async with self._keys.hold((owner, idempotency_key or object())):
            if idempotency_key is not None:
                existing = await self._find_by_key(request, owner, idempotency_key)
                if existing is not None:
                    return existing, False
            self.require_accepting()
            plan = await self._plan(options)
            admit()
            row = _new_row(request, plan, owner, idempotency_key)
            async with self._registry.hold(row.run_id):
                return await self._create(row, plan, actor), True

    async def restart(self, row: RunRow) -> None:
        """Start a run again that waited when the server stopped. Raises what `create` raises.

        It is claimed first: from then on, no server before this one can start it.
        """
        if not await self._registry.take_over(row.run_id):
            raise AgentMuxError(
                "RUN_NOT_ACTIVE", "it was started or ended by another server; `amux runs show` shows its state"
            )
        request = request_of(msgspec.json.decode(row.request))
        options = confined({**request.options, "cwd": row.cwd}, self._roots)
        self._start(row, await self._plan({**options, "run_id": row.run_id}))

    async def _plan(self, options: Mapping[str, Any]) -> RunPlan:
        """Plan a run with a journal, whatever its profile sets: its events are read from there."""
        return await to_thread.run_sync(self._plan_blocking, {**options, "journal": True})

    def _plan_blocking(self, options: Mapping[str, Any]) -> RunPlan:
        resolved = self._mux.resolve_options(**options)
        validate_options(resolved.options)
        self._roots.check_named_files(resolved.options, self._mux.adapters, options.keys())
        return self._mux.plan(resolved)

    async def _create(self, row: RunRow, plan: RunPlan, actor: Actor | None) -> RunView:
        """Insert the row, then start the run: every run that starts is stored.

        Its lock keeps readers waiting until then.
        """
        entry = None
        if actor is not None:
            detail = {"agent": row.agent, "model": row.model, "cwd": row.cwd}
            entry = self._audit.entry(actor, "run.start", "run", row.run_id, detail, OK)
        recorded = () if entry is None else (insert_audit(entry),)
        if self._registry.journal_of(row.run_id).exists() or not await self._registry.insert(row, *recorded):
            raise ValidationError([FieldError("runId", row.run_id, "an id that no other run has")])
        try:
            live = self._start(row, plan)
        except BaseException as error:
            await self._registry.discard(row.run_id)
            if entry is not None:
                self._audit.finish(entry, error.code if isinstance(error, AgentMuxError) else "INTERNAL")
            raise
        return live.view(full=True)

    async def _find_by_key(self, request: RunRequest, owner: str, key: str) -> RunView | None:
        row = await self._registry.find_by_key(owner, key)
        if row is None:
            return None
        if row.fingerprint != request.fingerprint:
            raise ValidationError([FieldError("Idempotency-Key", key, "a different key for each different request")])
        return await self._registry.get(row.run_id)

    # -- running

    def _start(self, row: RunRow, plan: RunPlan) -> LiveRun:
        self.require_accepting()  # no await between this check and the start
        plan = replace(plan, claim=partial(self._registry.claim, row.run_id))
        handle = self._mux.run(plan, owner=row.owner)
        self._secrets.add_run(plan.options.env, plan.options.mcp_servers)
        live = LiveRun(row, handle, self._registry.record, self._observers)
        self._registry.add(live)
        self._interactions.watch(live)
        self._tasks.start_soon(self._supervise, live)
        return live

    async def _supervise(self, live: LiveRun) -> None:
        """Wait for the end of a run and record its outcome."""
        has_result = True
        with anyio.CancelScope(shield=True):  # bounded, since the client ends the run; the outcome has to be stored
            try:
                result = await live.handle
                size = await to_thread.run_sync(_file_size, result.journal)
                count = None if result.journal is not None else await to_thread.run_sync(self._count, live.row.run_id)
                live.ended(result, size, count)
            except AgentMuxError as error:  # the run was withdrawn, or there was an internal error
                has_result = False
                if not live.handle.is_withdrawn:
                    logging.getLogger(LOGGER).exception("run %s has no result", live.row.run_id)
                    self._registry.record(live.row.run_id, lost_values(live.row, str(error)))
                    await self._registry.flush()
            except Exception:  # must not affect other runs; the next start recovers this one
                logging.getLogger(LOGGER).exception("cannot write the outcome of run %s", live.row.run_id)
        self._registry.release(live, is_recorded=has_result)

    def _count(self, run_id: str) -> int | None:
        """Return how many events of a run whose journal ended early can be read later; None if none can."""
        path = self._registry.journal_of(run_id)
        batches = recorded_batches(run_id, path, codec_factory(self._mux.adapters))
        return sum(len(events) for _, events in batches) or None


def _new_row(request: RunRequest, plan: RunPlan, owner: str, idempotency_key: str | None) -> RunRow:
    options = plan.requested_options
    return RunRow(
        run_id=plan.run_id,
        created_at=now_ms(),
        agent=options.agent,
        model=options.model,
        owner=owner,
        idempotency_key=idempotency_key,
        fingerprint=request.fingerprint,
        request=request.stored_json,
        is_complete=request.is_complete,
        cwd=options.working_directory(),
        work_dir=plan.cwd,
        base_commit=None if plan.worktree is None else plan.worktree.base,
        project_id=None if options.project_id is None else redact_text(options.project_id),
        tags=tuple(map(redact_text, options.tags)),
    )


def _file_size(journal: str | None) -> int | None:
    try:
        return None if journal is None else Path(journal).stat().st_size
    except OSError:
        return None
