"""One trial: attempts of an agent in workspaces of their own, then the checks in a fresh checkout.

A trial has one attempt, and a further one after each that is excluded (network, rate limit, ...), as far as the
comparison allows. A fact is written to the ledger before the next step begins.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack

import anyio
from anyio import to_thread
from msgspec import structs

from agent_evaluation.outcomes import INFRA_CAUSES, JudgedCheck, RunEnd, TrialCause, TrialOutcome, cause_of, judge
from agent_mux._util.ulids import new_ulid
from agent_mux.compare.candidates import NULL, ORACLE, Candidate
from agent_mux.compare.frozen_start import FrozenStart, Workspace
from agent_mux.compare.judging import TrialJudge
from agent_mux.compare.ledger import AnyFact, AttemptEnded, AttemptStarted, TrialEnded
from agent_mux.compare.observation import RunObserver, end_of, excerpt_of, usage_of
from agent_mux.compare.places import Places
from agent_mux.compare.records import CheckResult, RunUsage, StoredPatch, Trial, TrialAttempt
from agent_mux.compare.request import ComparisonRequest
from agent_mux.compare.surroundings import Surroundings
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle
from agent_mux.run.plan import RunPlan
from agent_mux.run.result import RunResult
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.option_fields import RunOptionFields
from agent_mux.sdk.registry import AdapterRegistry

RETRIED: frozenset[TrialCause] = frozenset({"network", "rate_limited", "lost", "internal"})
"""Causes after which a trial is attempted again; the others would only happen again."""
RETRY_DELAY = 2.0  # seconds before the second attempt; doubles with each further one


class RunClient(Protocol):
    """The part of a client that a comparison uses."""

    adapters: AdapterRegistry

    def plan(self, /, **fields: Unpack[RunOptionFields]) -> RunPlan:
        """Plan a run, as `AgentMux.plan`. Blocks."""
        ...

    def run(self, plan: RunPlan, /) -> RunHandle:
        """Start a planned run, as `AgentMux.run`."""
        ...


@dataclass(slots=True)
class Evidence:
    """What an attempt left behind, for its outcome and for the checks."""

    end: RunEnd
    detail: str = ""
    result: RunResult | None = None
    observer: RunObserver = field(default_factory=RunObserver)
    is_isolated: bool | None = None
    left_running: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialContext:
    """What all trials of a comparison share."""

    starter: RunClient
    request: ComparisonRequest
    candidates: Mapping[str, Candidate]
    environments: Mapping[str, Mapping[str, str]]
    """The environment of the agent by the name of the candidate, without what trials add."""
    start: FrozenStart
    places: Places
    judge: TrialJudge
    append: Callable[[AnyFact], None]
    """Appends a fact to the ledger; blocks."""
    on_run: Callable[[str, RunHandle], None]
    """Called with the id of a trial and the handle of its run, before the run has any event."""
    later: Callable[[Callable[[], None]], None]
    """Calls a function in a thread while other trials work; the comparison waits for it before its end."""
    stopping: anyio.Event
    """Set when no further attempt may start."""

    def is_wanted(self) -> bool:
        """Return whether the comparison continues; polled by threads."""
        return not self.stopping.is_set()


class TrialRunner:
    """Runs trials to their outcomes."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context

    async def run(self, trial: Trial) -> Trial:
        """Run a trial, which may have attempts already, until it has an outcome. Returns it.

        Raises:
            AgentMuxError: ABORTED if the comparison was stopped; CONFIG_ERROR if the ledger cannot be written.
        """
        last = len(trial.attempts) + self._context.request.attempts
        while True:
            number = len(trial.attempts) + 1
            async with self._workspace() as workspace:
                attempt, evidence = await self._attempt(trial, number, workspace)
                tree = await to_thread.run_sync(workspace.snapshot)
                has_changes = tree != self._context.start.record.tree
                end = structs.replace(evidence.end, has_changes=has_changes)
                trial = structs.replace(trial, attempts=(*trial.attempts, attempt))
                if self._context.stopping.is_set():
                    await self._append(AttemptEnded(at=now(), trial=trial.id, attempt=_ended(attempt, end, evidence)))
                    raise AgentMuxError("ABORTED", f"trial {trial.id} was stopped")
                if cause_of(end) in RETRIED and number < last:
                    trial = _with_last(trial, _ended(attempt, end, evidence))
                    await self._append(AttemptEnded(at=now(), trial=trial.id, attempt=trial.attempts[-1]))
                else:
                    return await self._finish(trial, end, evidence, workspace, tree)
            await self._pause(RETRY_DELAY * 2 ** (number - 1))

    @asynccontextmanager
    async def _workspace(self) -> AsyncIterator[Workspace]:
        context = self._context
        path = context.places.new_workspace()
        workspace = await to_thread.run_sync(context.start.make_workspace, path, context.is_wanted)
        try:
            yield workspace
        finally:
            if not context.request.keep_workspaces:
                context.later(workspace.remove)

    async def _attempt(self, trial: Trial, number: int, workspace: Workspace) -> tuple[TrialAttempt, Evidence]:
        candidate = self._context.candidates[trial.candidate]
        attempt = TrialAttempt(number=number, run_id=new_ulid(), started_at=now())
        if candidate.kind == NULL:
            await self._append(AttemptStarted(at=now(), trial=trial.id, attempt=attempt))
            return attempt, Evidence(RunEnd(exit_reason="completed"))
        if candidate.kind == ORACLE:
            await self._append(AttemptStarted(at=now(), trial=trial.id, attempt=attempt))
            return attempt, await to_thread.run_sync(self._apply_oracle, candidate, workspace)
        return await self._run_agent(trial, attempt, candidate, workspace)

    def _apply_oracle(self, candidate: Candidate, workspace: Workspace) -> Evidence:
        assert candidate.patch is not None  # noqa: S101  # checked with the candidate
        try:
            workspace.apply(candidate.patch)
        except AgentMuxError as error:
            return Evidence(RunEnd(exit_reason="crashed", error_code="VALIDATION_ERROR"), detail=error.message)
        return Evidence(RunEnd(exit_reason="completed"))

    async def _run_agent(
        self, trial: Trial, attempt: TrialAttempt, candidate: Candidate, workspace: Workspace
    ) -> tuple[TrialAttempt, Evidence]:
        context = self._context
        journal = context.places.journal(trial.id, attempt.number)
        attempt = structs.replace(attempt, journal=str(journal.relative_to(context.places.folder)))
        await self._append(AttemptStarted(at=now(), trial=trial.id, attempt=attempt))
        fields = run_fields(context.request, candidate)
        adapter = context.starter.adapters.get(fields["agent"])
        async with self._surroundings(adapter, candidate.name) as surroundings:
            try:
                trial_fields = _trial_fields(fields, attempt, workspace, journal, surroundings.environ)
                plan = await to_thread.run_sync(partial(context.starter.plan, **trial_fields))
                plan = context.places.isolate(plan, workspace.path)
                run = context.starter.run(plan)
            except AgentMuxError as error:
                return attempt, Evidence(RunEnd(exit_reason="crashed", error_code=error.code), detail=error.message)
            evidence = Evidence(RunEnd(exit_reason="aborted"), is_isolated=context.places.is_isolated)
            evidence.observer.watch(run)
            context.on_run(trial.id, run)
            result = await self.result_of(run)
        evidence.result, evidence.left_running = result, run.left_running
        evidence.end = end_of(result, has_changes=True)
        evidence.detail = "" if result.error is None else result.error.message
        return attempt, evidence

    @asynccontextmanager
    async def _surroundings(self, adapter: Adapter, candidate: str) -> AsyncIterator[Surroundings]:
        """Create the surroundings of a trial and remove them at the end, both in threads."""
        context = self._context
        own = context.places.surroundings(adapter, context.environments[candidate])
        found = await to_thread.run_sync(own.__enter__)
        try:
            yield found
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(own.__exit__, None, None, None)

    async def result_of(self, run: RunHandle) -> RunResult:
        """Wait for the end of a run; abort it when the comparison is stopped or cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._abort_when_stopping, run)
            try:
                result = await run.result()
            finally:
                tasks.cancel_scope.cancel()
        return result

    async def _abort_when_stopping(self, run: RunHandle) -> None:
        try:
            await self._context.stopping.wait()
        finally:
            if run.state not in TERMINAL_STATES:
                with anyio.CancelScope(shield=True), contextlib.suppress(AgentMuxError):
                    await run.abort()
                    await run.result()

    async def _finish(self, trial: Trial, end: RunEnd, evidence: Evidence, workspace: Workspace, tree: str) -> Trial:
        """Store the patch, run the checks, and record the outcome."""
        context = self._context
        patch = await to_thread.run_sync(self._store_patch, trial, workspace, tree)
        checks: tuple[CheckResult, ...] = ()
        notes = list(evidence.notes)
        tampered = list(context.judge.tampered(patch))
        if cause_of(end) not in INFRA_CAUSES and context.judge.has_checks:
            judged = await to_thread.run_sync(context.judge.judge, tree, patch, evidence.result, context.is_wanted)
            checks = judged.checks
            notes += judged.notes
            tampered += judged.tampered
        outcome = judge(end, [_judged(check) for check in checks], evidence.detail)
        attempt = _ended(trial.attempts[-1], end, evidence, outcome)
        observer = evidence.observer
        finished = structs.replace(
            _with_last(trial, attempt),
            outcome=outcome,
            checks=checks,
            patch=patch,
            tampered=tuple(sorted(tampered)),
            accesses=context.places.accesses(observer.calls, workspace.path),
            is_isolated=evidence.is_isolated,
            survivors=tuple(evidence.left_running),
            notes=(*notes, *observer.warnings),
            workspace=str(workspace.path) if context.request.keep_workspaces else None,
        )
        await self._append(TrialEnded(at=now(), trial=finished))
        return finished

    def _store_patch(self, trial: Trial, workspace: Workspace, tree: str) -> StoredPatch | None:
        if tree == self._context.start.record.tree:
            return None
        target = self._context.places.patch(trial.id)
        return workspace.write_patch(target, str(target.relative_to(self._context.places.folder)), tree)

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._context.stopping.wait()
        if self._context.stopping.is_set():
            raise AgentMuxError("ABORTED", "the comparison was stopped")

    async def _append(self, fact: AnyFact) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._context.append, fact)


def run_fields(request: ComparisonRequest, candidate: Candidate) -> dict[str, Any]:
    """Return the options of a candidate's runs, as keywords of `AgentMux.plan`, without those of a single trial."""
    env = {**request.options.get("env", {}), **candidate.options.get("env", {})}
    return {**request.options, **candidate.options, "prompt": request.prompt, **({"env": env} if env else {})}


def _trial_fields(
    fields: Mapping[str, Any], attempt: TrialAttempt, workspace: Workspace, journal: Path, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the options of one run. Variables that the caller sets override those of the trial."""
    return {
        **fields,
        "cwd": str(workspace.cwd),
        "run_id": attempt.run_id,
        "journal": str(journal),
        "track_changes": False,
        "env": {**environ, **fields.get("env", {})},
    }


def now() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _ended(attempt: TrialAttempt, end: RunEnd, evidence: Evidence, outcome: TrialOutcome | None = None) -> TrialAttempt:
    result = evidence.result
    return structs.replace(
        attempt,
        ended_at=now(),
        outcome=outcome or judge(end, (), evidence.detail),
        usage=RunUsage() if result is None else usage_of(result),
        tools=tuple(evidence.observer.tools),
        text="" if result is None else excerpt_of(result),
    )


def _with_last(trial: Trial, attempt: TrialAttempt) -> Trial:
    return structs.replace(trial, attempts=(*trial.attempts[:-1], attempt))


def _judged(check: CheckResult) -> JudgedCheck:
    return JudgedCheck(name=check.name, status=check.status, is_flaky=check.is_flaky)
