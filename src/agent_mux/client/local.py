"""The local client: starts agents as processes on this machine and ends them. See docs/spec/run-api.md, section 1."""

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux._util import paths
from agent_mux._util.logs import LOGGER
from agent_mux.agents.hooks.files import has_hooks_file
from agent_mux.client.arguments import AgentMuxArguments
from agent_mux.client.base import LOCAL_DEFAULTS, Observers, notify_end, validate_defaults
from agent_mux.client.held_session import HeldSession
from agent_mux.client.namespaces import Namespaces
from agent_mux.client.opening import Openable
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import SessionStartEvent
from agent_mux.models.matching import model_notes
from agent_mux.process.reaper import Reaper
from agent_mux.run.base import RunState
from agent_mux.run.concurrency import ConcurrencyLimiter, parse_limits
from agent_mux.run.handle import RunHandle
from agent_mux.run.limits import with_limits
from agent_mux.run.log import append_to_index
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.run.runner import Runner
from agent_mux.sdk.checked_values import check_arguments
from agent_mux.sdk.option_fields import LocalDefaults, RunOptionFields
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.layers import fields_from_keywords, fields_from_options
from agent_mux.settings.resolver import OptionsResolver, ResolvedOptions

if TYPE_CHECKING:
    from agent_mux.agents.detection import Detector
    from agent_mux.client.attached import AttachedRun
    from agent_mux.client.comparisons import CandidateLike, ComparisonFields
    from agent_mux.client.session_names import NamedRun
    from agent_mux.compare.engine import ComparisonRun
    from agent_mux.compare.setup import ComparisonSetup

Observer = Callable[[RunHandle], Callable[[], None]]
"""A function that is called with each new run. It returns a function that is called when that run has ended."""


class AgentMux(Namespaces, Openable):
    """A client that runs agents as processes on this machine.

    Use it as an asynchronous context manager: leaving the block aborts every run that is still active, waits for its
    processes to end, and then returns. Creating a client performs no I/O. A process may have several clients.

    Example:
        async with AgentMux() as mux:
            result = await mux.run(agent="claude", prompt="fix the failing test", approval_mode="yolo")
    """

    def __init__(  # noqa: PLR0913  # one for each thing that only a client has
        self,
        *,
        default_agent: str | None = None,
        default_model: str | None = None,
        config_dir: str | Path | None = None,
        project_config_dir: str | Path | None = None,
        adapters: AdapterRegistry | None = None,
        base_dir: str | Path | None = None,
        max_concurrent_runs: int | None = None,
        max_concurrent_runs_per_agent: int | Mapping[str, int] | None = None,
        queue_limit: int | None = None,
        control_sockets: bool = True,
        **defaults: Unpack[LocalDefaults],
    ) -> None:
        """Create a client. All arguments are optional.

        Args:
            default_agent: The agent of runs that name none.
            default_model: The model of runs that name none.
            config_dir: The global directory of agent-mux. Default: `$AGENT_MUX_CONFIG_DIR`, else `~/.agent-mux`.
            project_config_dir: The project's `.agent-mux` directory, or the directory that contains it. Default:
                `$AGENT_MUX_PROJECT_DIR`, else a search upwards from each run's working directory.
            adapters: The adapters to use. Default: those that installed packages register as entry points.
            base_dir: The directory at which relative paths in the options of calls start. Default: the current one, at
                the time of the call.
            max_concurrent_runs: The maximum number of agents that work at the same time. Further runs wait in a queue,
                in the order in which they were started; owners (see `run`) are served in turn. None: unlimited.
            max_concurrent_runs_per_agent: The same maximum for each agent, or a mapping from names or aliases of agents
                to their maximum. A run whose agent is at its maximum does not delay runs of other agents, and keeps its
                position in the queue.
            queue_limit: The maximum number of waiting runs; starting one more raises LIMIT_EXCEEDED. None: unlimited.
            control_sockets: Whether other processes of this user can watch and control the runs (`amux runs`).
            **defaults: Default options of every run, as in `RunOptions`: `approval_mode`, `timeout`,
                `inactivity_timeout` (seconds), `stream`, `debug`, `event_buffer_size`, `max_text_bytes`, `journal`,
                `retry_policy`, `hooks`. They override the configuration files (`config.json`, of the project and
                global); the profile and the options of a run override them.

        Raises:
            ValidationError: A default or a limit is unknown or out of range.
        """
        own = {"default_agent": default_agent, "default_model": default_model, "config_dir": config_dir,
               "project_config_dir": project_config_dir, "control_sockets": control_sockets}  # fmt: skip
        check_arguments(own, AgentMuxArguments)
        given = validate_defaults(defaults, LOCAL_DEFAULTS, AgentMuxArguments.__annotations__)
        self._config_dir = Path(config_dir) if config_dir is not None else paths.config_dir()
        self._project_config_dir = None if project_config_dir is None else Path(project_config_dir)
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        """The adapters of the agents that this client can run."""
        self._defaults = OptionsResolver(
            {**given, "agent": default_agent, "model": default_model},
            self.adapters,
            config_dir=self._config_dir,
            project_config_dir=self._project_config_dir,
            base_dir=None if base_dir is None else Path(base_dir).absolute(),
        )
        self._detector: Detector | None = None
        self._reaper = Reaper()
        self.concurrency = ConcurrencyLimiter(
            parse_limits(max_concurrent_runs, max_concurrent_runs_per_agent, queue_limit, self.adapters)
        )
        """The numbers of working and waiting runs, and an event that is set when they change."""
        self._has_sockets = control_sockets
        self._tasks: anyio.abc.TaskGroup | None = None
        self._live: set[RunHandle] = set()
        self._attached: dict[AttachedRun, anyio.CancelScope] = {}
        self._comparisons: set[ComparisonRun] = set()
        self._served: set[Runner] = set()
        """The active runs that have a control socket."""
        self._observers: Observers[RunHandle] = Observers()

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        assert tasks is not None  # noqa: S101  # __aenter__ made it
        try:
            for comparison in self._comparisons:
                comparison.stop()
            for run in self._live:
                run._runner.stop("abort")  # noqa: SLF001  # RunHandle belongs to this client
            for scope in self._attached.values():
                scope.cancel()
            return await tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if group.exceptions != (error,):
                raise
            return False  # re-raise what the block raised without wrapping it in a group
        finally:
            self._reaper.close()

    def run(
        self,
        options: RunOptions | ResolvedOptions | RunPlan | None = None,
        /,
        *,
        owner: str = "",
        **fields: Unpack[RunOptionFields],
    ) -> RunHandle:
        """Start a run and return its handle at once.

        The agent works whether or not the handle is awaited; leaving the client aborts it. A handle that was never
        awaited, read or controlled warns (`RuntimeWarning`) when it is released.

        Reading files and detecting git may block the event loop for a moment; `start` does this in a thread.

        Args:
            options: All options of the run, instead of keywords. Fields of a `RunOptions` that differ from their
                defaults override the client's defaults and the configuration. A result of `resolve_options` or `plan`
                is used unchanged.
            owner: The name of the user or token on whose behalf the run is started. Owners of waiting runs are served
                in turn. It is not an option of the run, because no profile and no request may choose it.
            **fields: Fields of `RunOptions`; None means "not given". `agent` may be omitted if the client, a profile or
                a configuration file names a default.

        Raises:
            ValidationError: Options are invalid; the error names every invalid field.
            CapabilityError: The agent does not support a requested option.
            AgentMuxError: AGENT_NOT_FOUND; AGENT_NOT_INSTALLED; PROFILE_NOT_FOUND; CONFIG_ERROR when one of our own
                files cannot be used; LIMIT_EXCEEDED when the queue is full; INVALID_STATE_TRANSITION while another
                run uses the session name; RUN_NOT_ACTIVE outside of the client's `async with` block, or without a
                running event loop.
            TypeError: Both `options` and `fields` are given.
        """
        if self._tasks is None:
            inside = "start runs inside of `async with AgentMux() as mux:`"
            raise AgentMuxError("RUN_NOT_ACTIVE", f"{inside}; in a notebook, use `mux = await AgentMux().open()`")
        _require_event_loop()
        plan = options if isinstance(options, RunPlan) else self.plan(options, **fields)
        if any(run.run_id == plan.run_id for run in self._live):
            raise ValidationError([FieldError("run_id", plan.run_id, "an id that no active run has")])
        held = HeldSession(plan.adapter.agent, plan.run_id, self._config_dir)
        with ExitStack() as undo:
            named = self._reserve_session_name(plan)
            if named is not None:
                undo.callback(named.release)
            undo.callback(held.release)
            if plan.options.session_id is not None:
                held.hold(plan.options.session_id)
            slot = self.concurrency.enter(plan.adapter.agent, owner)
            reserved = undo.pop_all()
        runner = Runner(plan, self._reaper, slot)
        handle = RunHandle(runner)
        self._live.add(handle)
        listeners, state = runner.core.recorder.listeners, runner.core.state
        listeners.on(SessionStartEvent.type, held.hold_begun)
        if named is not None:
            listeners.on(SessionStartEvent.type, named.store)
        state.on_change(partial(_end_session_with_run, named, held, runner))
        note = runner.core.recorder.note
        for warning in plan.resolved.warnings if plan.resolved is not None else ():
            note(warning)
        on_end = self._observers.notify_start(handle, note)
        if self._has_sockets:
            state.on_change(partial(self._serve_when_running, runner, self._tasks))
        self._tasks.start_soon(self._execute, handle, runner, on_end, reserved, name=f"run {plan.run_id}")
        return handle

    def _reserve_session_name(self, plan: RunPlan) -> "NamedRun | None":
        """Reserve the name of the session of a run. Raises INVALID_STATE_TRANSITION while another run uses it."""
        if plan.resolved is None or plan.resolved.options.session_name is None:
            return None
        from agent_mux.client.session_names import NamedRun  # noqa: PLC0415  # most runs have none

        return NamedRun(plan.resolved.options, plan.adapter.agent, plan.run_id, self._config_dir)

    def _serve_when_running(self, runner: Runner, tasks: anyio.abc.TaskGroup, state: RunState) -> None:
        """Create the control socket of a run once its agent was started, so that the agent does not wait for it."""
        if state == "running" and runner not in self._served:
            from agent_mux.control.server import serve_run  # noqa: PLC0415  # the agent starts before this import

            self._served.add(runner)
            handle = RunHandle(runner, is_internal=True)
            tasks.start_soon(serve_run, handle, self._config_dir, name=f"control socket of {handle.run_id}")

    async def attach(self, run: str | None = None, /, **fields: Any) -> "AttachedRun":
        """Return a handle of a run of this machine, active or over, in whatever process it works.

        Leaving the block keeps the run. The handle has all events from the first one, and the result.

        Args:
            run: The id of the run or a unique prefix of it; default: the latest run.
            **fields: `on_approval_request`, `on_input_required`, `collect_events`, `event_buffer_size`, as in
                `RunOptions`.

        Raises:
            ValidationError: A field is unknown or out of range, or the prefix is not unique.
            AgentMuxError: RUN_NOT_FOUND; UNAVAILABLE when the run is active but cannot be reached; RUN_NOT_ACTIVE
                outside of the client's `async with` block.
        """
        from agent_mux.client.attached import attach  # noqa: PLC0415  # most programs only start runs

        if self._tasks is None:
            raise AgentMuxError("RUN_NOT_ACTIVE", "attach to runs inside of `async with AgentMux() as mux:`")
        handle = await attach(self.runs, self.adapters, run, fields, self._spawn)
        scope = self._attached[handle] = anyio.CancelScope()
        self._tasks.start_soon(self._follow, handle, scope, name=f"attached run {handle.run_id}")
        return handle

    def _spawn(self, function: Callable[[], Any]) -> None:
        if self._tasks is None:
            raise AgentMuxError("UNAVAILABLE", "the client is closed")
        self._tasks.start_soon(function)

    async def _follow(self, handle: "AttachedRun", scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await handle.follow()
        finally:
            del self._attached[handle]

    async def compare(
        self,
        prompt: str,
        /,
        *,
        candidates: "Sequence[CandidateLike]",
        **rules: "Unpack[ComparisonFields]",
    ) -> "ComparisonRun":
        """Run several candidates on one task, each in its own copy of the same start, and judge them with checks.

        Returns its handle once every candidate is known to be able to run. Leaving the client's block stops the
        comparison; it can be resumed.

        Args:
            prompt: The task.
            candidates: `"claude"`, `"codex:gpt-5.2"`, `"gemini,trials=3"`, `"null"`, `"oracle:fix.patch"`, mappings
                with options of a run (and `name`, `trials`), or `Candidate` objects.
            **rules: Checks, trials, limits and options for all runs: fields of `ComparisonRequest`.

        Raises:
            ValidationError: A candidate, a check or a rule is invalid.
            AgentMuxError: A candidate cannot run (the errors of `run`); CONFIG_ERROR if nothing can be recorded;
                RUN_NOT_ACTIVE outside of the client's `async with` block.
        """
        from agent_mux.client.comparisons import make_request  # noqa: PLC0415  # most programs compare nothing
        from agent_mux.compare.preparing import prepare  # noqa: PLC0415

        self._require_open("compare")
        request = make_request(prompt, candidates, rules)
        return self._execute_comparison(await to_thread.run_sync(partial(prepare, request, self, self._config_dir)))

    async def resume_comparison(
        self,
        comparison: str | None = None,
        /,
        *,
        env: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> "ComparisonRun":
        """Run the trials that a comparison has left. Returns its handle.

        Args:
            comparison: The id of the comparison or the beginning of it; default: the latest one.
            env: Variables for the agents, if the comparison had some: they are not stored. `CANDIDATE:NAME` is one of
                a single candidate.
            options: Options of runs that the plan does not store: functions, and MCP servers with variables, headers or
                a URL. `CANDIDATE:NAME` is one of a single candidate.

        Raises:
            ValidationError: Variables or options are missing; the error names them.
            AgentMuxError: NOT_FOUND; INVALID_STATE_TRANSITION if it is active in another process; as `compare`.
        """
        from agent_mux.compare.preparing import prepare_resumption  # noqa: PLC0415  # most programs compare nothing

        self._require_open("resume_comparison")
        folder = await to_thread.run_sync(self.comparisons.folder, comparison)
        setup = await to_thread.run_sync(partial(prepare_resumption, folder, self, self._config_dir, env, options))
        return self._execute_comparison(setup)

    def _execute_comparison(self, setup: "ComparisonSetup") -> "ComparisonRun":
        from agent_mux.compare.engine import ComparisonRun  # noqa: PLC0415  # most programs compare nothing

        tasks = self._require_open("compare")
        run = ComparisonRun(setup)
        self._comparisons.add(run)

        async def execute() -> None:
            try:
                await run.execute()
            finally:
                self._comparisons.discard(run)

        tasks.start_soon(execute, name=f"comparison {run.id}")
        return run

    def _require_open(self, what: str) -> anyio.abc.TaskGroup:
        if self._tasks is None:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"call {what} inside of `async with AgentMux() as mux:`")
        return self._tasks

    async def start(
        self,
        options: RunOptions | ResolvedOptions | None = None,
        /,
        *,
        owner: str = "",
        **fields: Unpack[RunOptionFields],
    ) -> RunHandle:
        """Start a run without blocking the event loop: plan it in a thread, then start it. See `run`."""
        planned = await to_thread.run_sync(partial(self.plan, options, **fields))
        return self.run(planned, owner=owner)

    def plan(
        self, options: RunOptions | ResolvedOptions | None = None, /, **fields: Unpack[RunOptionFields]
    ) -> RunPlan:
        """Resolve, validate and plan a run without starting it. `run` accepts the result, once.

        Blocking. Takes the options of `run` and raises its errors, except LIMIT_EXCEEDED, INVALID_STATE_TRANSITION and
        RUN_NOT_ACTIVE.
        """
        resolved = self._resolve(options, fields)
        wanted = resolved.options
        if wanted.session_name is not None:
            from agent_mux.client.session_names import with_named_session  # noqa: PLC0415  # most runs have none

            wanted = with_named_session(wanted, self.adapters, self._config_dir)
        plan = replace(self._plan_with_hooks(wanted), resolved=resolved)
        if not plan.options.fallback or plan.options.interactive:
            return with_limits(plan, resolved.sources)
        from agent_mux.client.fallbacks import with_fallbacks  # noqa: PLC0415  # most runs have none

        return with_limits(with_fallbacks(plan, self.adapters, self._plan_with_hooks), resolved.sources)

    def _plan_with_hooks(self, options: RunOptions) -> RunPlan:
        config_dir = self._config_dir
        plan = plan_run(
            options, self.adapters.get, self.journals, worktrees=config_dir / "worktrees", model_notes=model_notes
        )
        if options.hooks is False or not self._may_have_hooks(options):
            return plan
        from agent_mux.client.hook_selection import (  # noqa: PLC0415  # most runs have none
            plan_with_approvals,
            select_hooks,
        )

        hooks = select_hooks(plan, config_dir, self._project_config_dir)
        if hooks is not None and hooks.can_deny_tools:
            plan = plan_with_approvals(plan, self.adapters.get, config_dir)
        return replace(plan, hooks=hooks)

    def _may_have_hooks(self, options: RunOptions) -> bool:
        """Return whether the run has functions as hooks, or a file of hooks exists for its directory."""
        own, named = self._config_dir, self._project_config_dir
        return isinstance(options.hooks, Mapping) or has_hooks_file(Path(options.working_directory()), own, named)

    @property
    def detector(self) -> "Detector":
        """Detects which agents are installed, and in which versions."""
        from agent_mux.agents.detection import Detector  # noqa: PLC0415  # a run does without

        self._detector = self._detector or Detector(self.adapters)
        return self._detector

    @property
    def journals(self) -> Path:
        """The directory of recordings whose path no option names. File names are `<run id>.journal`."""
        return self._config_dir / "runs"

    def resolve_options(
        self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]
    ) -> ResolvedOptions:
        """Return the options that `run` would use for these arguments, and the source of each. Start nothing.

        Blocking: it reads profiles and configuration files. Raises the errors of `run` that concern those files. The
        options themselves are validated when they are run or planned.
        """
        return self._resolve(options, fields)

    def settled(self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]) -> ResolvedOptions:
        """Return `resolve_options(...)`. Deprecated: use that name."""
        warnings.warn("`settled` is deprecated; use `resolve_options`", DeprecationWarning, stacklevel=2)
        return self._resolve(options, fields)

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with the handle of each run that starts from now on, before the run has any event.

        The function that `observer` returns is called when the run has ended, for whatever reason. An exception in
        either is reported as a warning of the run or in the log, and does not affect the run.

        Returns:
            The function that removes the observer.
        """
        return self._observers.add(observer)

    async def _execute(
        self, handle: RunHandle, runner: Runner, on_end: Sequence[Callable[[], None]], reserved: ExitStack
    ) -> None:
        try:
            await runner.execute()
        except Exception:  # a bug of ours in one run: awaiting it raises INTERNAL, and the other runs continue
            logging.getLogger(LOGGER).exception("run %s failed with an internal error", handle.run_id)
        finally:
            self._live.discard(handle)
            self._served.discard(runner)
            runner.core.state.forget_callbacks()
            notify_end(on_end, handle.run_id)
            reserved.close()
            result, resolved = runner.lifecycle.result, runner.plan.resolved
            if result is not None and resolved is not None and resolved.index is not None:
                await append_to_index(resolved.index, runner.plan, handle.header.started_at, result)

    def _resolve(self, options: RunOptions | ResolvedOptions | None, fields: Mapping[str, Any]) -> ResolvedOptions:
        if options is None:
            return self._defaults.resolve(fields_from_keywords(fields))
        if fields:
            raise TypeError("give either RunOptions or keywords, not both")
        return options if isinstance(options, ResolvedOptions) else self._defaults.resolve(fields_from_options(options))


def _end_session_with_run(named: "NamedRun | None", held: HeldSession, runner: Runner, _state: RunState) -> None:
    if runner.lifecycle.result is not None:
        held.release()
        if named is not None:
            named.end(runner.lifecycle.result)


def _require_event_loop() -> None:
    """Raise `AgentMuxError` unless the caller runs in an event loop: a cell without `await` has none in IPython."""
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:
        message = "no event loop runs here; start the run with `await mux.start(...)`, or use BlockingAgentMux"
        raise AgentMuxError("RUN_NOT_ACTIVE", message) from None
