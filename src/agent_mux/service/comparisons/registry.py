"""The comparisons of a service: started, resumed, stopped, applied, deleted.

A comparison that a killed server left behind is `interrupted`: nothing is started again without a request, since
variables of agents are not stored, and since its trials cost money.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc
import msgspec
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux._util.ulids import new_ulid
from agent_mux.client import AgentMux
from agent_mux.compare.applying import AppliedTrial
from agent_mux.compare.engine import ComparisonRun
from agent_mux.compare.judge_runs import is_judge_run
from agent_mux.compare.ledger import TrialEnded
from agent_mux.compare.preparing import prepare, prepare_resumption
from agent_mux.compare.request import ComparisonRequest
from agent_mux.compare.setup import ComparisonSetup
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle
from agent_mux.service.audit.entries import Actor
from agent_mux.service.audit.trail import AuditTrail
from agent_mux.service.comparisons.requests import (
    ComparisonBody,
    ConfinedStarter,
    check_stored,
    comparison_request,
    planned_runs,
    runs_left,
)
from agent_mux.service.comparisons.store import ComparisonStore, Requester
from agent_mux.service.known_secrets import KnownSecrets
from agent_mux.service.runs.locks import KeyedLocks
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.worktrees.removal import remove_directory

Admit = Callable[[int], None]
"""Called with the number of runs that a comparison starts; it may raise."""


class ComparisonObserver(Protocol):
    """Counts what comparisons do."""

    def trial_ended(self, agent: str, verdict: str) -> None:
        """Count a trial with an outcome."""
        ...

    def comparison_ended(self, status: str) -> None:
        """Count a comparison that is over."""
        ...


class LiveComparison:
    """A comparison that this process carries out."""

    def __init__(self, run: ComparisonRun, observer: ComparisonObserver) -> None:
        self.run = run
        self._observer = observer
        self.over = anyio.Event()
        self._changed: anyio.Event | None = None
        run.on_run(self._watch)

    def _watch(self, _: str, handle: RunHandle) -> None:
        handle.interaction.keep_open()
        handle.observe(lambda _: self._notify())
        handle.on_state(lambda _: self._notify())

    @property
    def changed(self) -> anyio.Event:
        """An event that is set at the next fact or event. Get it before reading: each change replaces it."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def execute(self, known: Collection[str]) -> AgentMuxError | None:
        """Carry the comparison out. Returns why it failed. `known`: the trials that have an outcome already."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, known)
            await self.run.execute()
        try:
            await self.run.result()
        except AgentMuxError as error:
            self._observer.comparison_ended("failed")
            return error
        self._observer.comparison_ended(self.run.comparison.status)
        return None

    async def _follow(self, known: Collection[str]) -> None:
        """Notify readers of facts. `known`: the trials that had an outcome before this process."""
        agents = {one.name: one.agent or one.kind for one in self.run.comparison.plan.candidates}
        async for fact in self.run.facts():
            if isinstance(fact, TrialEnded) and fact.trial.id not in known and fact.trial.outcome is not None:
                self._observer.trial_ended(agents[fact.trial.candidate], fact.trial.outcome.verdict)
            self._notify()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and all its records are written."""
        return self.over.is_set()

    def end(self) -> None:
        """Mark the comparison as over, for its readers."""
        self.over.set()
        self._notify()

    def handle_of(self, name: str) -> RunHandle | None:
        """Return the run of an active trial, or an active run of the judge by its name."""
        handle = self.run.runs.get(name)
        return None if handle is None or handle.state in TERMINAL_STATES else handle

    @property
    def judge_run(self) -> tuple[str, RunHandle] | None:
        """The active run of the judge with its name: it compares one pair at a time."""
        names = (name for name in self.run.runs if is_judge_run(name))
        return next(((name, handle) for name in names if (handle := self.handle_of(name)) is not None), None)


class ComparisonRegistry:
    """Every comparison of this service, active or stored."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts that it connects
        self,
        mux: AgentMux,
        directory: Path,
        tasks: anyio.abc.TaskGroup,
        roots: AllowedDirectories,
        secrets: KnownSecrets,
        audit: AuditTrail,
        require_accepting: Callable[[], None],
        observer: ComparisonObserver,
    ) -> None:
        """`directory`: the service's own. `require_accepting`: raises UNAVAILABLE while no new runs are accepted."""
        self._mux = mux
        self._directory = directory
        self._tasks = tasks
        self._roots = roots
        self._secrets = secrets
        self._audit = audit
        self._require_accepting = require_accepting
        self._observer = observer
        self._is_closing = False
        self._locks = KeyedLocks()
        self._applying = anyio.CapacityLimiter(1)
        self._live: dict[str, LiveComparison] = {}
        self.store = ComparisonStore(directory)

    # -- starting

    async def create(
        self, body: ComparisonBody, *, idempotency_key: str | None, actor: Actor, admit: Admit
    ) -> tuple[str, bool]:
        """Start a comparison. Returns its id and whether it is new; a repeated key returns the existing one.

        Raises what `AgentMux.compare` raises; VALIDATION_ERROR for paths outside of the roots, and for a key of a
        different request; UNAVAILABLE.
        """
        fingerprint = hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()
        async with self._locks.hold((actor.name, idempotency_key or object())):
            if idempotency_key is not None:
                found = await to_thread.run_sync(self.store.find_by_key, actor.name, idempotency_key)
                if found is not None:
                    _require_same(found[1], fingerprint, idempotency_key)
                    return found[0], False
            self._require_accepting()
            request = await to_thread.run_sync(comparison_request, body, self._roots, self._directory)
            requester = Requester(owner=actor.name, idempotency_key=idempotency_key, fingerprint=fingerprint)
            return await self._start(request, requester, actor, admit), True

    async def _start(self, request: ComparisonRequest, requester: Requester, actor: Actor, admit: Admit) -> str:
        comparison_id = new_ulid()
        detail = {
            "cwd": str(request.cwd),
            "candidates": ", ".join(one.name for one in request.candidates),
            "runs": planned_runs(request),
            "checks": len(request.checks),
        }
        self._learn_secrets(request.options, *(one.options for one in request.candidates))
        async with self._audit.recorded(actor, "comparison.start", "comparison", comparison_id, **detail):
            starter = self._starter(requester.owner)
            setup = await to_thread.run_sync(prepare, request, starter, self._directory, comparison_id)
            try:
                await to_thread.run_sync(self.store.set_requester, comparison_id, requester)
                self._require_accepting()
                admit(planned_runs(request))  # no await between this and the start
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(_discard, setup)
                raise
            self._execute(setup)
        return comparison_id

    async def resume(self, comparison_id: str, *, env: Mapping[str, str], actor: Actor, admit: Admit) -> None:
        """Run the trials that a comparison has left.

        Raises NOT_FOUND; INVALID_STATE_TRANSITION if it is active or has no trials left; VALIDATION_ERROR if variables
        are missing or the roots have changed; what `create` raises.
        """
        async with self._locks.hold(comparison_id):
            stored = await to_thread.run_sync(self.store.get, comparison_id)
            if stored.record.status != "interrupted":
                step = "start a new one" if stored.record.status == "ended" else "stop it, or wait for its end"
                why = f"comparison {comparison_id} is {stored.record.status} and cannot be resumed; {step}"
                raise AgentMuxError("INVALID_STATE_TRANSITION", why)
            self._require_accepting()
            await to_thread.run_sync(check_stored, stored.record.plan, self._roots, self._directory)
            self._learn_secrets({"env": env})
            async with self._audit.recorded(actor, "comparison.resume", "comparison", comparison_id):
                folder = self.store.folder(comparison_id).path
                starter = self._starter(stored.requester.owner)
                setup = await to_thread.run_sync(prepare_resumption, folder, starter, self._directory, env)
                try:
                    await to_thread.run_sync(self.store.set_failure, comparison_id, None)
                    self._require_accepting()
                    admit(runs_left(stored.record))  # no await between this and the start
                except BaseException:
                    setup.folder.close()
                    raise
                self._execute(setup, [trial.id for trial in stored.record.trials if trial.outcome is not None])

    def _starter(self, owner: str) -> ConfinedStarter:
        return ConfinedStarter(self._mux, self._roots, self._secrets, owner)

    def _learn_secrets(self, *options: Mapping[str, Any]) -> None:
        for one in options:
            self._secrets.add_run(one.get("env", {}), ())

    def _execute(self, setup: ComparisonSetup, known: Collection[str] = ()) -> None:
        live = LiveComparison(ComparisonRun(setup), self._observer)
        self._live[live.run.id] = live
        self._tasks.start_soon(self._carry_out, live, known, name=f"comparison {live.run.id}")

    async def _carry_out(self, live: LiveComparison, known: Collection[str]) -> None:
        try:
            error = await live.execute(known)
            if error is not None:
                logging.getLogger(LOGGER).warning("comparison %s failed: %s", live.run.id, error)
                await to_thread.run_sync(self.store.set_failure, live.run.id, error)
        except Exception:  # must not affect runs and other comparisons
            logging.getLogger(LOGGER).exception("comparison %s failed", live.run.id)
        finally:
            del self._live[live.run.id]
            live.end()

    # -- active comparisons

    @property
    def active(self) -> list[LiveComparison]:
        """The comparisons that this process carries out."""
        return list(self._live.values())

    def live(self, comparison_id: str) -> LiveComparison | None:
        """Return a comparison that this process carries out."""
        return self._live.get(comparison_id)

    async def handle_of(self, comparison_id: str, trial: str) -> RunHandle:
        """Return the run of an active trial, or an active run of the judge. Raises NOT_FOUND; RUN_NOT_ACTIVE."""
        live = self.live(comparison_id)
        handle = None if live is None else live.handle_of(trial)
        if handle is None:
            await to_thread.run_sync(self.store.trial, comparison_id, trial)
            why = f"trial {trial} of comparison {comparison_id} has no active run; GET the trial for its state"
            raise AgentMuxError("RUN_NOT_ACTIVE", why)
        return handle

    async def stop(self, comparison_id: str, *, actor: Actor) -> None:
        """Abort the active trials of a comparison and return when it is over. Raises NOT_FOUND.

        A comparison that is not active stays as it is.
        """
        await to_thread.run_sync(self.store.folder, comparison_id)
        async with self._audit.recorded(actor, "comparison.stop", "comparison", comparison_id):
            live = self.live(comparison_id)
            if live is not None:
                live.run.stop()
                await live.over.wait()

    async def wait_over(self) -> None:
        """Wait until no comparison is active."""
        for live in self.active:
            await live.over.wait()

    def stop_all(self) -> None:
        """Stop all comparisons, within the grace periods of their runs. They can be resumed."""
        self._is_closing = True
        for live in self.active:
            live.run.stop()

    async def close(self) -> None:
        """Stop all comparisons, and return when they are over."""
        self.stop_all()
        await self.wait_over()

    def kill(self) -> None:
        """Kill the runs of all comparisons."""
        for live in self.active:
            for handle in live.run.runs.values():
                if handle.state not in TERMINAL_STATES:
                    handle.kill()

    # -- stored comparisons

    async def apply(self, comparison_id: str, trial: str, *, has_checks: bool, actor: Actor) -> AppliedTrial:
        """Make the changes of a trial in the directory that was compared on, and run the checks again.

        Raises NOT_FOUND; FORBIDDEN if the directory is outside of the roots; INVALID_STATE_TRANSITION if the changes
        conflict; CONFIG_ERROR.
        """
        record, found = await to_thread.run_sync(self.store.trial, comparison_id, trial)
        if record.start is not None and not self._roots.contains(record.start.source):
            outside = f"{record.start.source} is outside of the roots of the service"
            raise AgentMuxError("FORBIDDEN", f"{outside}; allow it with `amux serve --root DIRECTORY`")
        call = partial(
            self.store.comparisons.apply,
            found.id,
            comparison_id,
            has_checks=has_checks,
            is_wanted=lambda: not self._is_closing,
        )
        async with self._audit.recorded(actor, "comparison.apply", "comparison", comparison_id, trial=found.id):
            with anyio.CancelScope(shield=True):  # a client that leaves must not leave half of the changes
                applied = await to_thread.run_sync(call, limiter=self._applying)
        return applied

    async def delete(self, comparison_id: str, *, actor: Actor) -> None:
        """Delete a comparison with all its records. Raises NOT_FOUND; INVALID_STATE_TRANSITION for an active one."""
        async with self._locks.hold(comparison_id):
            await to_thread.run_sync(self.store.folder, comparison_id)
            async with self._audit.recorded(actor, "comparison.delete", "comparison", comparison_id):
                if comparison_id in self._live:
                    why = f"comparison {comparison_id} is active; POST /v1/comparisons/{comparison_id}/stop first"
                    raise AgentMuxError("INVALID_STATE_TRANSITION", why)
                await to_thread.run_sync(self.store.comparisons.remove, comparison_id)


def _require_same(requester: Requester, fingerprint: str, key: str) -> None:
    if requester.fingerprint != fingerprint:
        raise ValidationError([FieldError("Idempotency-Key", key, "a different key for each different request")])


def _discard(setup: ComparisonSetup) -> None:
    """Remove the folder of a comparison that was not started."""
    setup.folder.close()
    remove_directory(setup.folder.path)
