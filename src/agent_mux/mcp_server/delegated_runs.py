"""The runs of one delegation server: started within its limits, found by their ids, ended together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio import to_thread
from msgspec import UNSET, UnsetType

from agent_mux._util.sanitize import one_line
from agent_mux.client import AgentMux
from agent_mux.compare.confinement import require_allowed_source
from agent_mux.compare.engine import ComparisonRun
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, CostEvent, TurnEndEvent, TurnStartEvent
from agent_mux.mcp_server.entries import changed_file, has_entry
from agent_mux.mcp_server.limits import DelegationBudget, DelegationLimits
from agent_mux.mcp_server.requests import CompareAgents, StartRun
from agent_mux.mcp_server.responses import LimitsInfo
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.options import ApprovalMode

MAX_FILES = 200  # changed files that are remembered for each run; the events contain all of them
MAX_PROMPT_SHOWN = 120  # characters of the prompt in the list of runs
TAG = "mcp-server"
"""A tag of every run that a delegation server starts."""


class DelegatedRun:
    """A run and what the server remembers about it: counts and names, but no output."""

    def __init__(self, handle: RunHandle, on_cost: Callable[[str, float], None]) -> None:
        """Observe the run from its first event. `on_cost` is called with its id and total cost in US dollars."""
        self.handle = handle
        self.prompt = ""
        """The beginning of the prompt."""
        self.cwd = ""
        self.approval_mode: ApprovalMode = "deny"
        self.is_kept_open = False
        self.is_trial = False
        """Whether a comparison started it."""
        self.event_count = 0
        """The number of events so far."""
        self.entries_end = 0
        """The number of events up to the last one that has an entry."""
        self.cursor = 0
        """The number of the first event that the client has not seen."""
        self.files: dict[str, None] = {}
        """The paths of changed files, in the order of their first change."""
        self.cost_usd: float | None = None
        """The cost so far, in US dollars; None while it is unknown."""
        self.is_over = False
        self._is_between_turns = False
        self._on_cost = on_cost
        self._changed = anyio.Event()
        handle.interaction.keep_open()
        handle.observe(self._observe)

    def _observe(self, event: AgentEvent) -> None:
        self.event_count += 1
        if has_entry(event):
            self.entries_end = self.event_count
        path = changed_file(event)
        if path is not None and len(self.files) < MAX_FILES:
            self.files[path] = None
        if isinstance(event, CostEvent) and event.cost.source != "unknown":
            self.cost_usd = event.cost.total_usd
            self._on_cost(self.handle.run_id, event.cost.total_usd)
        elif isinstance(event, TurnStartEvent | TurnEndEvent) and event.subagent_id is None:
            self._is_between_turns = isinstance(event, TurnEndEvent)
        self._wake()

    def finish(self) -> None:
        """Mark the run as over; its result is available."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    @property
    def is_idle(self) -> bool:
        """Whether a run that is kept open has finished its turn and waits for a further prompt.

        A run that is not kept open is about to end after its turn, and so is never idle.
        """
        return self.is_kept_open and self._is_between_turns and not self.is_over and not self.handle.is_busy

    @property
    def is_waiting(self) -> bool:
        """Whether the run is over, idle, or waits for an answer."""
        return self.is_over or self.is_idle or bool(self.handle.interaction.pending)

    async def wait_for_change(self, seconds: float) -> None:
        """Wait for the next event or the end of the run, at most for this time."""
        with anyio.move_on_after(seconds):
            await self._changed.wait()


class DelegatedComparisons:
    """The comparisons of one server."""

    def __init__(self) -> None:
        self._found: dict[str, ComparisonRun] = {}
        self._jobs: dict[str, int] = {}

    def add(self, run: ComparisonRun, jobs: int) -> None:
        """Remember a comparison that was started. `jobs`: the number of its concurrent runs."""
        self._found[run.id], self._jobs[run.id] = run, jobs

    @property
    def places_taken(self) -> int:
        """The number of concurrent runs that active comparisons may have."""
        return sum(self._jobs[run.id] for run in self._found.values() if not run.is_over)

    def get(self, comparison_id: str | UnsetType) -> ComparisonRun:
        """Return the comparison with this id, or the latest one. Raises VALIDATION_ERROR if there is none."""
        if comparison_id is UNSET and self._found:
            return list(self._found.values())[-1]
        run = None if comparison_id is UNSET else self._found.get(comparison_id)
        if run is None:
            raise AgentMuxError("VALIDATION_ERROR", "unknown comparison; compare_agents starts one and returns its id")
        return run


class DelegatedRuns:
    """Starts and finds the runs of one server. No method waits."""

    def __init__(self, mux: AgentMux, limits: DelegationLimits, tasks: anyio.abc.TaskGroup) -> None:
        """Start without runs.

        Args:
            mux: The client that starts the runs.
            limits: The limits of the server.
            tasks: A task group inside of the client's block, which aborts runs when the budget is exceeded.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND for an agent of the limits that is not registered.
        """
        self.mux = mux
        self.limits = limits
        self._allowed = {mux.adapters.get(name).agent for name in limits.agents}
        self._budget = DelegationBudget(limits.max_cost_usd)
        self._tasks = tasks
        self._runs: dict[str, DelegatedRun] = {}
        self._started = 0
        """The number of runs that were started, or that comparisons will start."""
        self.comparisons = DelegatedComparisons()
        mux.on_run(self._add)

    def _add(self, handle: RunHandle) -> Callable[[], None]:
        self._runs[handle.run_id] = run = DelegatedRun(handle, self._record_cost)
        return run.finish

    def _record_cost(self, run_id: str, total_usd: float) -> None:
        self._budget.record(run_id, total_usd)
        if self._budget.is_exceeded:
            for run in self.active:
                self._tasks.start_soon(run.handle.abort)

    @property
    def all(self) -> list[DelegatedRun]:
        """All runs, in the order in which they were started."""
        return list(self._runs.values())

    @property
    def active(self) -> list[DelegatedRun]:
        """The runs that have not ended."""
        return [run for run in self._runs.values() if not run.is_over]

    def get(self, run_id: str | UnsetType) -> DelegatedRun:
        """Return the run with this id, or the latest run if no id is given.

        Raises VALIDATION_ERROR if the id is unknown or no run has been started.
        """
        if run_id is UNSET:
            if not self._runs:
                raise AgentMuxError("VALIDATION_ERROR", "no run has been started yet; start_run starts one")
            return self.all[-1]
        run = self._runs.get(run_id)
        if run is None:
            raise AgentMuxError("VALIDATION_ERROR", f"unknown run {run_id[:64]!r}; list_runs lists all runs")
        return run

    def allowed_agents(self) -> list[str]:
        """Return the registered names of the agents that may be started.

        Agents that need a command are excluded, because a model must not choose the program that is started.
        """
        names = [name for name in self.mux.adapters.names() if not self._allowed or name in self._allowed]
        need_command = {adapter.agent for adapter in self.mux.adapters if adapter.needs_command}
        return [name for name in names if name not in need_command]

    def limits_info(self) -> LimitsInfo:
        """Return the limits, and what remains of them."""
        limits = self.limits
        return LimitsInfo(
            roots=[str(root) for root in limits.roots.directories],
            depth=limits.depth,
            max_depth=limits.max_depth,
            runs_left=0 if limits.is_deepest else max(limits.max_runs_total - self._started, 0),
            places_free=max(limits.max_runs - self._places_taken, 0),
            timeout_ms=round(limits.timeout * 1000),
            approval_modes=list(limits.modes),
            cost_left_usd=self._budget.remaining,
        )

    def start(self, request: StartRun) -> DelegatedRun:
        """Start a run. It does not await, so a cancelled call has either started the run completely or not at all.

        Raises:
            AgentMuxError: BUDGET_EXCEEDED, CAPABILITY_ERROR, AGENT_NOT_FOUND or VALIDATION_ERROR for a request that the
                limits do not allow; also the errors of `AgentMux.run`.
        """
        self._require_budget()
        options = self._options(request)
        resolved = self.mux.resolve_options(**options)
        requested = [name for name, value in options.items() if value is not None]
        self.limits.roots.check_named_files(resolved.options, self.mux.adapters, requested)
        run = self._runs[self.mux.run(resolved).run_id]
        self._started += 1
        run.prompt = one_line(request.prompt, MAX_PROMPT_SHOWN)
        run.cwd, run.approval_mode = options["cwd"], options["approval_mode"]
        run.is_kept_open = request.keep_open
        return run

    async def compare(self, request: CompareAgents) -> ComparisonRun:
        """Start a comparison, completely or not at all. Its trials are runs of this server, with its limits.

        Raises:
            AgentMuxError: As `start`; CAPABILITY_ERROR for commands of checks, which run without an approval, unless
                the server approves everything; also the errors of `AgentMux.compare`.
        """
        limits, planned = self.limits, len(request.candidates) * request.trials
        if request.checks and limits.approvals != "yolo":
            refused = "commands of checks run without approval, and this server does not approve everything"
            raise AgentMuxError("CAPABILITY_ERROR", f"{refused}: omit `checks`, and judge the patches yourself")
        directory = limits.roots.directory(None if request.cwd is UNSET else request.cwd)
        candidates = [self._candidate(text, request.prompt, directory) for text in request.candidates]
        await to_thread.run_sync(require_allowed_source, directory, limits.roots, self.mux.journals.parent)
        self._require_budget(planned)
        jobs = min(planned, limits.max_runs - self._places_taken)
        options = self._common_options(request)
        self._started += planned
        try:
            with anyio.CancelScope(shield=True):
                run = await self.mux.compare(
                    request.prompt,
                    candidates=candidates,
                    checks=request.checks,
                    trials=request.trials,
                    cwd=directory,
                    jobs=jobs,
                    attempts=1,
                    options=options,
                )
        except BaseException:
            self._started -= planned
            raise

        def describe(_: str, handle: RunHandle) -> None:
            trial = self._runs[handle.run_id]
            trial.prompt, trial.cwd = one_line(request.prompt, MAX_PROMPT_SHOWN), str(directory)
            trial.approval_mode, trial.is_trial = options["approval_mode"], True

        run.on_run(describe)
        self.comparisons.add(run, jobs)
        return run

    def _candidate(self, text: str, prompt: str, directory: Path) -> dict[str, Any]:
        name, _, model = text.partition(":")
        adapter = self.mux.adapters.get(name)
        self._require_allowed(adapter.agent)
        candidate = {"agent": adapter.agent, **({"model": model} if model else {})}
        resolved = self.mux.resolve_options(prompt=prompt, cwd=str(directory), **candidate)  # type: ignore[arg-type]
        self.limits.roots.check_named_files(resolved.options, self.mux.adapters, ["prompt", *candidate])
        return candidate

    @property
    def _places_taken(self) -> int:
        """The number of runs that are active, and that active comparisons may start at any time."""
        return sum(not run.is_trial for run in self.active) + self.comparisons.places_taken

    def _require_budget(self, count: int = 1) -> None:
        """Raise BUDGET_EXCEEDED when depth, number of runs or cost are exhausted. `count`: the runs to start."""
        limits = self.limits
        if limits.is_deepest:
            too_deep = f"the task is already delegated (depth {limits.depth} of {limits.max_depth}): do it yourself"
            raise AgentMuxError("BUDGET_EXCEEDED", too_deep)
        left = max(limits.max_runs_total - self._started, 0)
        if not left:
            raise AgentMuxError("BUDGET_EXCEEDED", f"all {limits.max_runs_total} runs of this server have been started")
        if left < count:
            raise AgentMuxError(
                "BUDGET_EXCEEDED", f"{count} runs are more than the {left} that are left; request fewer"
            )
        if self._budget.is_exhausted:
            spent = f"the budget is spent: {self._budget.total:.4f} of {limits.max_cost_usd:g} USD"
            raise AgentMuxError("BUDGET_EXCEEDED", spent)
        if self._places_taken >= limits.max_runs:
            busy = f"the maximum of {limits.max_runs} active runs is reached; wait for one (watch_run) or stop one"
            raise AgentMuxError("BUDGET_EXCEEDED", busy, recoverable=True)

    def _options(self, request: StartRun) -> dict[str, Any]:
        agent = self.mux.adapters.get(request.agent).agent
        self._require_allowed(agent)
        options = self._common_options(request)
        requested_cost = None if request.max_cost_usd is UNSET else request.max_cost_usd
        costs = [cost for cost in (requested_cost, options["max_cost_usd"]) if cost is not None]
        return {
            **options,
            "agent": agent,
            "prompt": request.prompt,
            "cwd": str(self._directory(request)),
            "model": None if request.model is UNSET else request.model,
            "max_cost_usd": min(costs, default=None),
            "interactive": request.keep_open,
            "session_id": self._session_to_continue(request, agent),
        }

    def _common_options(self, request: StartRun | CompareAgents) -> dict[str, Any]:
        """Return the options that apply the limits of the server to a run."""
        limits, remaining = self.limits, self._budget.remaining
        return {
            "approval_mode": limits.approval_mode(None if request.approval_mode is UNSET else request.approval_mode),
            "timeout": limits.timeout
            if request.timeout_ms is UNSET
            else min(request.timeout_ms / 1000, limits.timeout),
            "max_cost_usd": remaining,
            "env": limits.inherited_by_runs(remaining).environment(),
            "tags": (TAG,),
        }

    def _require_allowed(self, agent: str) -> None:
        allowed = self.allowed_agents()
        if agent not in allowed:
            refused = f"this server may not start {agent!r}; it may start {', '.join(allowed)}"
            raise AgentMuxError("AGENT_NOT_FOUND", refused)

    def _directory(self, request: StartRun) -> Path:
        if request.cwd is UNSET and request.continue_run is not UNSET:
            return self.limits.roots.directory(self.get(request.continue_run).cwd)
        return self.limits.roots.directory(None if request.cwd is UNSET else request.cwd)

    def _session_to_continue(self, request: StartRun, agent: str) -> str | None:
        if request.continue_run is UNSET:
            return None
        previous = self.get(request.continue_run)
        if not previous.is_over:
            active = f"run {previous.handle.run_id} is still active: use send_prompt"
            raise AgentMuxError("VALIDATION_ERROR", active)
        if previous.handle.agent != agent or previous.handle.session_id is None:
            other = f"the session of run {previous.handle.run_id} belongs to {previous.handle.agent}: use that agent"
            raise AgentMuxError("VALIDATION_ERROR", other)
        return previous.handle.session_id

    def kill_all(self) -> None:
        """Kill all active runs at once, without a grace period."""
        for run in self.active:
            run.handle.kill()
