"""The client: where runs are started and where they end. Source: run API, section 1."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux._util import paths
from agent_mux._util.logs import LOGGER
from agent_mux.agents.detection import Detector
from agent_mux.client.defaults import OWN, checked_defaults
from agent_mux.client.namespaces import Namespaces
from agent_mux.client.observers import Observers, tell_of_end
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.models.matching import model_notes
from agent_mux.process.reaper import Reaper
from agent_mux.run.concurrency import ConcurrencyLimiter, parse_limits
from agent_mux.run.handle import RunHandle
from agent_mux.run.hooks import RunHooks, execute_with_hooks
from agent_mux.run.log import append_to_index
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.run.runner import Runner
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.defaults import Defaults, ResolvedOptions
from agent_mux.settings.resolution import said_by, said_in


class PlannedRun(NamedTuple):
    """A run that can be started."""

    settled: ResolvedOptions
    plan: RunPlan
    hooks: RunHooks | None


Observer = Callable[[RunHandle], Callable[[], None]]
"""Is told of a run, and returns what is to be called at its end."""


class AgentMux(Namespaces):
    """Starts runs and ends them: leaving the block ends whatever still runs, within its grace period.

    Making a client does no I/O. Several may live in one process.
    """

    def __init__(  # noqa: PLR0913  # one for each thing that only a client has
        self,
        *,
        default_agent: str | None = None,
        default_model: str | None = None,
        config_dir: str | Path | None = None,
        project_config_dir: str | Path | None = None,
        adapters: AdapterRegistry | None = None,
        max_concurrent_runs: int | None = None,
        max_concurrent_runs_per_agent: int | Mapping[str, int] | None = None,
        queue_limit: int | None = None,
        **defaults: Any,
    ) -> None:
        """Take the defaults for every run.

        Args:
            default_agent: The agent of runs that name none.
            default_model: The model of runs that name none.
            config_dir: Instead of `~/.agent-mux` (or `$AGENT_MUX_CONFIG_DIR`).
            project_config_dir: The `.agent-mux` of the project (or the directory that has it), instead of
                `$AGENT_MUX_PROJECT_DIR` and of looking upwards from where a run works.
            adapters: Instead of those of the entry points.
            max_concurrent_runs: How many agents work at a time; further runs wait. They begin in the order in which
                they were started, the owners of runs in turn (see `run`). None: all at once.
            max_concurrent_runs_per_agent: The same for each agent, or for some by name or alias. A run whose agent has
                no room is passed over, and keeps its turn.
            queue_limit: How many runs may wait; one more is LIMIT_EXCEEDED. None: any number.
            **defaults: `approval_mode`, `timeout`, `inactivity_timeout` (seconds), `stream`, `debug`,
                `event_buffer_size`, `journal`, `retry_policy`, `hooks`: as in `RunOptions`. They go before what the
                files say (`config.json` of the project and the global one), and after the profile and the call.

        Raises:
            ValidationError: A default that is unknown or out of range.
        """
        said = checked_defaults(defaults, OWN)
        self._config_dir = Path(config_dir) if config_dir is not None else paths.config_dir()
        self._project_config_dir = None if project_config_dir is None else Path(project_config_dir)
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        self._defaults = Defaults(
            {**said, "agent": default_agent, "model": default_model},
            self.adapters,
            config_dir=self._config_dir,
            project_config_dir=self._project_config_dir,
        )
        self.detector = Detector(self.adapters)
        self._reaper = Reaper()
        self.places = ConcurrencyLimiter(
            parse_limits(max_concurrent_runs, max_concurrent_runs_per_agent, queue_limit, self.adapters)
        )
        """How many runs work and wait, and when that changes."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._live: set[RunHandle] = set()
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
            for run in self._live:
                run._runner.stop("abort")  # noqa: SLF001  # the handle is this module's own kind
            return await tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if group.exceptions != (error,):
                raise
            return False  # what the block raised goes on as it was, not as a group of one
        finally:
            self._reaper.close()

    def run(
        self, options: RunOptions | ResolvedOptions | PlannedRun | None = None, /, *, owner: str = "", **fields: Any
    ) -> RunHandle:
        """Start a run and return at once.

        Args:
            options: The options, or give them one by one as keywords. Of options that are given whole, those count as
                said that are not as they are by default; what `settled` or `planned` returned is taken as it is.
            owner: Whose run it is: while runs wait, their owners are served in turn. It is no option, as no profile and
                no request should choose whose turn it takes.
            **fields: Fields of `RunOptions`; all of them count as said, but for None. `agent` may be left out when
                somebody names a default: the client, a profile or a file.

        Raises:
            ValidationError: Options that cannot work, every bad field named.
            CapabilityError: The agent cannot do what was asked.
            AgentMuxError: AGENT_NOT_FOUND, AGENT_NOT_INSTALLED; PROFILE_NOT_FOUND; CONFIG_ERROR for a file of ours
                that cannot be used; LIMIT_EXCEEDED when as many runs wait as may; RUN_NOT_ACTIVE outside of the
                client's block.
        """
        if self._tasks is None:
            raise AgentMuxError("RUN_NOT_ACTIVE", "start runs inside of `async with AgentMux() as mux:`")
        settled, plan, hooks = options if isinstance(options, PlannedRun) else self.planned(options, **fields)
        if any(run.run_id == plan.run_id for run in self._live):
            raise ValidationError([FieldError("run_id", plan.run_id, "one that no living run has")])
        place = self.places.enter(plan.adapter.agent, owner)
        handle = RunHandle(Runner(plan, self._reaper, place, hooks))
        self._live.add(handle)
        for warning in settled.warnings:
            handle._runner.recorder.note(warning)  # noqa: SLF001  # the handle is this module's own kind
        endings = self._observers.tell(handle, handle._runner.recorder.note)  # noqa: SLF001
        self._tasks.start_soon(self._execute, handle, settled, endings, name=f"run {plan.run_id}")
        return handle

    async def start(
        self, options: RunOptions | ResolvedOptions | None = None, /, *, owner: str = "", **fields: Any
    ) -> RunHandle:
        """As `run`, while the event loop does other things: files are read, and git may be asked, in a thread."""
        planned = await to_thread.run_sync(partial(self.planned, options, **fields))
        return self.run(planned, owner=owner)

    def planned(self, options: RunOptions | ResolvedOptions | None = None, /, **fields: Any) -> "PlannedRun":
        """Everything about a run that can be decided before it is started. Blocking; for `run`, once. Raises as it."""
        settled = self._settled(options, fields)
        return PlannedRun(settled, *self._plan(settled.options))

    def _plan(self, options: RunOptions) -> tuple[RunPlan, RunHooks | None]:
        own = self._config_dir
        plan = plan_run(options, self.adapters.get, self.journals, worktrees=own / "worktrees", model_notes=model_notes)
        if options.hooks is False:
            return plan, None
        from agent_mux.client.hook_selection import hooks_of, planned_to_ask  # noqa: PLC0415  # most runs have none

        hooks = hooks_of(plan, own, self._project_config_dir)
        if hooks is not None and hooks.can_deny_tools:
            plan = planned_to_ask(plan, self.adapters.get, own)
        return plan, hooks

    @property
    def journals(self) -> Path:
        """Where the recordings of runs are that name no place of their own: `<run id>.journal`."""
        return self._config_dir / "runs"

    def settled(self, options: RunOptions | None = None, /, **fields: Any) -> ResolvedOptions:
        """What `run` would do with this: all options, and who said each. Blocking; starts nothing.

        Raises as `run` does for what the files say; the options themselves are checked when they are run.
        """
        return self._settled(options, fields)

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with each run that is started from now on, before anything happens in it.

        What it returns is called when the run is over, however it ends. Returns the function that stops it. One that
        raises harms no run.
        """
        return self._observers.add(observer)

    async def _execute(
        self, handle: RunHandle, settled: ResolvedOptions, endings: Sequence[Callable[[], None]]
    ) -> None:
        runner = handle._runner  # noqa: SLF001  # the handle is this module's own kind
        try:
            await (runner.execute() if runner.hooks is None else execute_with_hooks(runner, runner.hooks))
        except Exception:  # an error of ours in one run: awaiting that run raises INTERNAL, and other runs go on
            logging.getLogger(LOGGER).exception("run %s cannot be carried out", handle.run_id)
        finally:
            self._live.discard(handle)
            tell_of_end(endings, handle.run_id)
            if runner.result is not None and settled.index is not None:
                await append_to_index(settled.index, runner.plan, handle.header.started_at, runner.result)

    def _settled(self, options: RunOptions | ResolvedOptions | None, fields: Mapping[str, Any]) -> ResolvedOptions:
        if options is None:
            return self._defaults.settle(said_in(fields))
        if fields:
            raise TypeError("give either RunOptions or keywords, not both")
        return options if isinstance(options, ResolvedOptions) else self._defaults.settle(said_by(options))
