"""Run the command that prepares a new worktree, for example `npm ci`."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence

from agent_mux.errors import AgentMuxError
from agent_mux.process.command import run_program

SETUP_TIMEOUT = 1800.0  # seconds: dependencies over a slow line


def run_setup(
    command: Sequence[str], cwd: str, environ: Mapping[str, str], is_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Run the command to its end, in the working directory of the agent. Blocking.

    Raises:
        AgentMuxError: SPAWN_ERROR if it cannot be started or fails, TIMEOUT, ABORTED once `is_wanted` returns False.
    """
    shown = " ".join(command)
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath)) if os.sep not in command[0] else command[0]
    if program is None:
        raise AgentMuxError("SPAWN_ERROR", f"the setup command `{shown}` failed: {command[0]} is not on PATH")
    answer = run_program((program, *command[1:]), environ=environ, timeout=SETUP_TIMEOUT, cwd=cwd, is_wanted=is_wanted)
    if answer.exit_code != 0:
        raise AgentMuxError(
            "SPAWN_ERROR",
            f"the setup command `{shown}` failed in {cwd} with exit code {answer.exit_code}: {answer.error_line}",
        )
