"""Run a comparison: freeze the start, run the checks on it, run the trials, and record every fact.

`ComparisonRun` is the handle; `AgentMux.compare` and `AgentMux.resume_comparison` return one.
"""

import logging
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio import to_thread
from msgspec import structs

from agent_evaluation.outcomes import TrialOutcome
from agent_mux._util.logs import LOGGER
from agent_mux.compare.fact_feed import FactFeed
from agent_mux.compare.frozen_start import FrozenStart
from agent_mux.compare.judge_runs import PairJudge
from agent_mux.compare.judging import TrialJudge
from agent_mux.compare.ledger import (
    START,
    AnyFact,
    Begun,
    Calibrated,
    Ended,
    Noted,
    TrialEnded,
    derive,
)
from agent_mux.compare.records import Comparison, StartRecord, Trial
from agent_mux.compare.schedule import Schedule, hopeless_candidates
from agent_mux.compare.setup import ComparisonSetup
from agent_mux.compare.trials import TrialContext, TrialRunner, now
from agent_mux.errors import AgentMuxError
from agent_mux.run.handle import RunHandle

CALIBRATION_ROUNDS = 2
"""How often the checks run on the untouched start: a check that flips between the rounds is flaky."""


class ComparisonRun:
    """The handle of a comparison that runs in this process: watch it, control its runs, await its result."""

    def __init__(self, setup: ComparisonSetup) -> None:
        self._setup = setup
        self._feed = FactFeed(setup.folder)
        self._start: StartRecord | None = None
        self._done = anyio.Event()
        self._stopping = anyio.Event()
        self._error: BaseException | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._observers: list[Callable[[str, RunHandle], None]] = []
        self.runs: dict[str, RunHandle] = {}
        """The handles of the latest runs by id of their trial: answer, steer or abort them there.

        Those of a judge are named `judge:FIRST:SECOND`, after the trials that they compare.
        """

    @property
    def id(self) -> str:
        """Id of the comparison: a ULID, which is also the name of its folder."""
        return self._setup.plan.id

    @property
    def folder(self) -> Path:
        """The folder with all its records."""
        return self._setup.folder.path

    @property
    def comparison(self) -> Comparison:
        """Everything that is known about it now."""
        return derive(self._setup.plan, self._start, self._feed.facts, is_active=not self._done.is_set())

    @property
    def is_over(self) -> bool:
        """Whether it has ended in this process."""
        return self._done.is_set()

    @property
    def recorded(self) -> Sequence[AnyFact]:
        """The facts of the ledger so far; those of earlier processes are read when the comparison begins."""
        return self._feed.facts

    def on_run(self, observer: Callable[[str, RunHandle], None]) -> None:
        """Call `observer` with the name (see `runs`) and the handle of each run, before the run has any event."""
        self._observers.append(observer)

    async def facts(self, start: int = 0) -> AsyncIterator[AnyFact]:
        """Yield the facts of the ledger from number `start`, as they are recorded, until the comparison has ended."""
        async for fact in self._feed.read(start):
            yield fact

    def __await__(self) -> Generator[Any, Any, Comparison]:
        return self.result().__await__()

    async def result(self) -> Comparison:
        """Wait for the end and return the comparison.

        Raises:
            AgentMuxError: The comparison failed: the start cannot be frozen, a check cannot run, the
                ledger cannot be written. What was recorded stays in the folder.
        """
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self.comparison

    async def wait(self) -> None:
        """Wait for the end, whatever it is."""
        await self._done.wait()

    def stop(self) -> None:
        """Abort the active trials and start no further one. The comparison can be resumed."""
        self._stopping.set()

    async def execute(self) -> None:
        """Run the comparison to its end or until `stop`. The client calls this once."""
        setup = self._setup
        try:
            await self._feed.open()
            await self._feed.append(Begun(at=now(), is_resumed=setup.is_resumed))
            await self._carry_out()
        except AgentMuxError as error:
            self._error = None if error.code == "ABORTED" and self._stopping.is_set() else error
        except Exception as error:  # a bug of ours: awaiting it raises, and other work of the client continues
            logging.getLogger(LOGGER).exception("comparison %s failed with an internal error", self.id)
            self._error = AgentMuxError("INTERNAL", f"comparison {self.id}: {error!r}")
        finally:
            self._stopping.set()
            with anyio.CancelScope(shield=True):
                await self._end()
            self._done.set()
            self._feed.end()

    async def _carry_out(self) -> None:
        setup, request = self._setup, self._setup.request
        await to_thread.run_sync(setup.places.clean, self.comparison.kept_workspaces)
        start = await to_thread.run_sync(self._freeze)
        self._start = start.record
        await to_thread.run_sync(self._require_patches, start)
        await self._hide(Path(start.record.source))
        await self._note_sharing()
        judge = TrialJudge(request, start, setup.places, setup.environ)
        await self._calibrate(judge)
        context = TrialContext(
            starter=setup.starter,
            request=request,
            candidates={candidate.name: candidate for candidate in request.candidates},
            environments=setup.environments,
            start=start,
            places=setup.places,
            judge=judge,
            append=self._feed.append_blocking,
            on_run=self._on_run,
            later=self._later,
            stopping=self._stopping,
        )
        runner = TrialRunner(context)
        await self._run_trials(runner)
        if request.judge is not None:
            variables = request.options.get("env")
            judging = PairJudge(
                request.judge,
                setup.starter,
                setup.places,
                self._feed.append,
                runner.result_of,
                self._on_run,
                variables,
            )
            await judging.run(self.comparison, self._is_wanted)

    def _freeze(self) -> FrozenStart:
        setup, request = self._setup, self._setup.request
        if (setup.folder.path / START).exists():
            return FrozenStart.open(setup.folder.path, setup.environ)
        return FrozenStart.freeze(
            request.cwd,
            setup.folder.path,
            setup.environ,
            carry_changes=request.carry_changes,
            setup=request.setup_command,
            is_wanted=self._is_wanted,
        )

    def _require_patches(self, start: FrozenStart) -> None:
        """Raise CONFIG_ERROR unless the patches of all oracles apply to the start."""
        for candidate in self._setup.request.candidates:
            if candidate.patch is not None:
                try:
                    start.require_patch(candidate.patch)
                except AgentMuxError as error:
                    reason = error.message.rpartition("error: ")[2]
                    why = f"candidate {candidate.name}: its patch does not apply to the start: {reason}"
                    raise AgentMuxError("CONFIG_ERROR", f"{why}; make it with git diff from the same files") from error

    async def _hide(self, source: Path) -> None:
        """Hide places with solutions from agents; record a note where that is not possible."""
        setup = self._setup
        reason = await to_thread.run_sync(setup.places.hide, source, setup.solutions, setup.needed)
        if reason is not None and any(one.kind == "agent" for one in setup.request.candidates):
            await self._note(f"not isolated: agents can read the source and other trials ({reason})")

    async def _note_sharing(self) -> None:
        if self._setup.sharing:
            names = ", ".join(self._setup.sharing)
            await self._note(f"all trials use the user's configuration directory: no variable moves it for {names}")

    async def _note(self, text: str) -> None:
        """Record a note, once, however often the comparison is resumed."""
        if text not in self.comparison.notes:
            await self._feed.append(Noted(at=now(), text=text))

    def _is_wanted(self) -> bool:
        return not self._stopping.is_set()

    async def _calibrate(self, judge: TrialJudge) -> None:
        """Run the checks on the untouched start, twice. Raises CONFIG_ERROR if one of them cannot run at all."""
        known = self.comparison.calibration
        if judge.has_checks:
            for _ in range(len(known), CALIBRATION_ROUNDS):
                results = await to_thread.run_sync(judge.calibrate, self._is_wanted)
                broken = [check for check in results if check.status == "error"]
                if broken:
                    first = broken[0]
                    raise AgentMuxError("CONFIG_ERROR", f"the check {first.name} cannot run: {first.detail}")
                await self._feed.append(Calibrated(at=now(), checks=results))
        judge.learn(self.comparison.calibration)

    async def _run_trials(self, runner: TrialRunner) -> None:
        setup = self._setup
        known = {trial.id: trial for trial in self.comparison.trials}
        request = setup.request
        schedule = Schedule(
            [known[name] for name in setup.plan.order],
            setup.lanes,
            jobs=request.jobs,
            jobs_per_agent=request.jobs_per_agent,
            jobs_per_credential=request.jobs_per_credential,
            pause_after=request.pause_after,
        )
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while not schedule.is_done and not self._stopping.is_set():
                changed = self._feed.changed
                while (trial := schedule.next()) is not None:
                    tasks.start_soon(self._run_trial, runner, schedule, trial, name=f"trial {trial.id}")
                await self._wait(changed)
            if self._stopping.is_set():
                return

    async def _wait(self, changed: anyio.Event) -> None:
        """Wait for a change, or for the stop."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_after, self._stopping, tasks.cancel_scope)
            await changed.wait()
            tasks.cancel_scope.cancel()

    async def _run_trial(self, runner: TrialRunner, schedule: Schedule, trial: Trial) -> None:
        try:
            finished = await runner.run(trial)
        except AgentMuxError as error:
            if error.code == "ABORTED":
                return
            self._error = self._error or error
            self._stopping.set()
            return
        assert finished.outcome is not None  # noqa: S101  # that is what `run` returns
        paused = schedule.end(trial, finished.outcome)
        if paused is not None:
            left = [one.id for one in schedule.waiting if self._setup.lanes[one.candidate].credential == paused]
            if left:
                why = f"{self._setup.request.pause_after} rate limits in a row with the same credentials ({paused})"
                await self._feed.append(
                    Noted(at=now(), text=f"{why}: {len(left)} trials were not started; resume the comparison later")
                )
        if self._setup.request.stop_early:
            await self._skip_hopeless(schedule)
        self._feed.announce()

    def _later(self, function: Callable[[], None]) -> None:
        assert self._tasks is not None  # noqa: S101  # only trials call this
        self._tasks.start_soon(self._carry_out_later, function)

    async def _carry_out_later(self, function: Callable[[], None]) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(function)
        except AgentMuxError as error:
            self._error = self._error or error
            self._stopping.set()

    async def _skip_hopeless(self, schedule: Schedule) -> None:
        outcome = TrialOutcome(
            verdict="infra", cause="aborted", detail="not started: the candidate could no longer win (stop_early)"
        )
        for name in sorted(hopeless_candidates(self.comparison.trials)):
            for trial in schedule.drop(name):
                await self._feed.append(TrialEnded(at=now(), trial=structs.replace(trial, outcome=outcome)))

    def _on_run(self, name: str, run: RunHandle) -> None:
        self.runs[name] = run
        for observer in self._observers:
            observer(name, run)

    async def _end(self) -> None:
        """Record the end and release the folder."""
        is_complete = all(trial.outcome is not None for trial in self.comparison.trials)
        try:
            problem = str(self._error.message) if isinstance(self._error, AgentMuxError) else ""
            status = "ended" if is_complete else "interrupted"
            await self._feed.append(Ended(at=now(), status=status, problem=problem))
        except AgentMuxError as error:
            self._error = self._error or error
        try:
            await to_thread.run_sync(self._setup.places.close)
        except AgentMuxError as error:  # the next start removes it
            logging.getLogger(LOGGER).warning("comparison %s: %s", self.id, error)
        await to_thread.run_sync(self._setup.folder.close)


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
