"""Hide places with solutions from an agent: hidden checks, other candidates, the source and its git objects.

On Linux, the agent starts in a mount namespace of its own, in which these places are empty (`hide_places.py`). Its
process is the one that agent-mux started, so supervision is the same as without isolation.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.worktrees.repositories import find_repository

IsolationMode = Literal["auto", "off", "required"]
ISOLATION_MODES: tuple[IsolationMode, ...] = get_args(IsolationMode)
PROBE_TIMEOUT = 20.0  # seconds
_PROGRAM = Path(__file__).with_name("hide_places.py")


class Isolation:
    """Decides whether agents are isolated, and how they are started."""

    def __init__(self, mode: IsolationMode, hidden: Sequence[Path], needed: Sequence[Path]) -> None:
        """Prepare.

        Args:
            mode: `auto`: if it is possible; `off`; `required`: it is an error if it is not possible.
            hidden: The directories to hide, see `places_to_hide`.
            needed: What agents need in addition to their workspaces: programs, HOME, temporary directories. If one of
                them is in a hidden place, agents are not isolated.
        """
        if mode not in ISOLATION_MODES:
            raise ValidationError([FieldError("isolation", str(mode), ", ".join(ISOLATION_MODES))])
        self._mode = mode
        self._needed = tuple(needed)
        self.hidden = _outermost(hidden)

    @cached_property
    def reason(self) -> str | None:
        """Why agents are not isolated, in one sentence; None if they are. Blocking: starts a process once."""
        if self._mode == "off":
            return "isolation is off"
        reason = self._obstacle()
        if reason is not None and self._mode == "required":
            raise AgentMuxError("VALIDATION_ERROR", f"agents cannot be isolated: {reason}; use isolation=auto or off")
        return reason

    def _obstacle(self) -> str | None:
        if sys.platform != "linux":
            return "this needs mount namespaces, which only Linux has"
        for place in self.hidden:
            for needed in self._needed:
                for path in {Path(os.path.abspath(needed)), Path(os.path.realpath(needed))}:  # noqa: PTH100
                    if path.is_relative_to(place):
                        return f"agents need {path}, which is in {place}"
        return self._probe()

    @staticmethod
    def _probe() -> str | None:
        """Start a program that hides an empty directory. Returns why that failed, if it did."""
        argv = (*_prefix((), (), Path("/")), sys.executable, "-I", "-S", "-c", "")
        try:
            done = subprocess.run(argv, capture_output=True, timeout=PROBE_TIMEOUT, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return f"the probe failed: {error}"
        if done.returncode == 0:
            return None
        return done.stderr.decode("utf-8", "replace").strip() or f"the probe failed with exit code {done.returncode}"

    def is_available(self) -> bool:
        """Return whether agents are isolated. Blocking. Raises `AgentMuxError` if it is required and impossible."""
        return self.reason is None

    def prefix_for(self, workspace: Path, cwd: Path, kept: Sequence[Path] = ()) -> tuple[str, ...]:
        """Return what starts the command of an agent, for `RunPlan.command_prefix`; empty without isolation.

        Args:
            workspace: The workspace of the agent.
            cwd: Its working directory.
            kept: Further places inside of hidden ones that the agent may see and change.
        """
        return _prefix(self.hidden, (workspace, *kept), cwd) if self.is_available() else ()


def _prefix(hidden: Sequence[Path], kept: Sequence[Path], cwd: Path) -> tuple[str, ...]:
    paths = (*(f"--hidden={path}" for path in hidden), *(f"--kept={path}" for path in kept), f"--cwd={cwd}")
    return (sys.executable, "-I", "-S", str(_PROGRAM), *paths, "--")


def places_to_hide(folder: Path, workspaces: Path, source: Path) -> tuple[Path, ...]:
    """Return the places from which an agent could learn a solution.

    Args:
        folder: The folder of the comparison; those of other comparisons beside it are hidden as well.
        workspaces: The directory of all workspaces.
        source: The directory that was frozen, with the git directories and the other worktrees of its repository.
    """
    places = [folder, folder.parent if folder.parent.name == "comparisons" else folder, workspaces, source]
    found = find_repository(source)
    if found is not None and found.top == source:
        places.append(found.common)
        for entry in found.common.glob("worktrees/*/gitdir"):
            try:
                places.append(Path(entry.read_text("utf-8", "surrogateescape").strip()).parent)
            except OSError:
                continue
    return tuple(places)


def _outermost(places: Sequence[Path]) -> tuple[Path, ...]:
    """Return the places that are not inside of another one."""
    real = {Path(os.path.realpath(place)) for place in places}
    return tuple(sorted(place for place in real if not any(parent in real for parent in place.parents)))
