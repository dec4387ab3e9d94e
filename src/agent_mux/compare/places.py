"""Where a comparison keeps its files, and what an agent in a workspace can reach and has for itself."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_mux._util.files import make_directory
from agent_mux.compare.isolation import Isolation, IsolationMode, places_to_hide
from agent_mux.compare.ledger import COMPARISONS
from agent_mux.compare.outside_accesses import outside_accesses
from agent_mux.compare.records import OutsideAccess
from agent_mux.compare.surroundings import Surroundings, trial_surroundings
from agent_mux.compare.working_files import WorkingFiles, remove_abandoned
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths


class Places:
    """The folder and the workspaces of one comparison. All methods block."""

    def __init__(self, config_dir: Path, identifier: str, confine: IsolationMode) -> None:
        """Name the places; nothing is created. `confine`: whether agents are kept from places with solutions."""
        self.folder = config_dir / COMPARISONS / identifier
        self._config_dir = config_dir
        self._working = WorkingFiles(config_dir, identifier)
        self._confine: IsolationMode = confine
        self._isolation = Isolation("off", (), ())

    def hide(self, source: Path, solutions: Sequence[Path], needed: Sequence[Path]) -> str | None:
        """Hide solutions and the other trials from the agents of this comparison. Returns why that is not possible.

        Args:
            source: The directory that was frozen.
            solutions: Files and directories elsewhere that show a solution: hidden checks, patches of oracles.
            needed: Programs and directories that agents need.

        Raises:
            AgentMuxError: VALIDATION_ERROR if hiding is required and not possible.
        """
        hidden = (*places_to_hide(self.folder, self._working.workspaces, source), *solutions)
        self._isolation = Isolation(self._confine, hidden, needed)
        return self._isolation.reason

    def new_workspace(self) -> Path:
        """Return a path for a workspace or a checkout, which no agent can guess. Its parent exists."""
        return self._working.new_workspace()

    def temporary(self) -> Path:
        """Return an existing directory for temporary files, which is removed by `close`. Raises SPAWN_ERROR."""
        return self._working.temporary()

    def clean(self, kept: Container[str]) -> None:
        """Remove what killed processes have left behind, here and in other comparisons, except `kept` workspaces."""
        self._working.remove(kept)
        remove_abandoned(self._config_dir)

    def close(self) -> None:
        """Remove the temporary files. Raises `AgentMuxError`."""
        self._working.remove_temporary()

    def journal(self, trial: str, attempt: int) -> Path:
        """Return the path of the recording of an attempt. Its parent exists."""
        return self._of_trial(trial) / f"attempt-{attempt}.journal"

    def patch(self, trial: str) -> Path:
        """Return the path of the patch of a trial. Its parent exists."""
        return self._of_trial(trial) / "changes.patch"

    def judgement(self, run_id: str) -> Path:
        """Return the path of the recording of a judgement. Its parent exists."""
        path = self.folder / "judgements"
        make_directory(path)
        return path / f"{run_id}.journal"

    def _of_trial(self, trial: str) -> Path:
        path = self.folder / "trials" / trial
        make_directory(path)
        return path

    @contextmanager
    def surroundings(self, adapter: Adapter, environ: Mapping[str, str]) -> Iterator[Surroundings]:
        """Yield what a trial has for itself, and remove it at the end.

        `environ`: the environment that the agent would have without it. Raises `AgentMuxError`.
        """
        config = adapter.installation().config_directory
        with trial_surroundings(config, AgentPaths(environ=environ), self.temporary()) as surroundings:
            yield surroundings

    def isolate(self, plan: RunPlan, workspace: Path) -> RunPlan:
        """Return the plan of a run whose agent cannot reach places with solutions, if that is possible.

        It reaches the files that its own options name, such as a model that is a script beside the task.
        """
        named = {Path(path) for path in plan.adapter.named_files(plan.options).values()}
        kept = sorted(path for path in named if path.is_file() and not path.is_relative_to(workspace))
        return replace(plan, command_prefix=self._isolation.prefix_for(workspace, Path(plan.cwd), kept))

    @property
    def is_isolated(self) -> bool:
        """Whether agents are kept from places with solutions."""
        return self._isolation.is_available()

    def accesses(self, calls: Sequence[tuple[str, Any]], workspace: Path) -> tuple[OutsideAccess, ...]:
        """Return the accesses among tool calls to places that could show a solution."""
        return outside_accesses(calls, workspace, self._isolation.hidden, Path.home())
