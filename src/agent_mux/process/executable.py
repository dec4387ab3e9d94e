"""Finding the executable of an agent."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import Adapter


def find_executable(adapter: Adapter, environ: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return the absolute path of the agent's program: from the command, from its variable, or from PATH.

    Raises AGENT_NOT_INSTALLED if the program is missing, VALIDATION_ERROR if the adapter takes no command but one is
    given, or needs a command and none is given.
    """
    if command and not adapter.takes_command:
        refused = f"{adapter.agent} has its own program and takes no command"
        raise AgentMuxError("VALIDATION_ERROR", f"{refused}; set {adapter.executable_variable} to use another program")
    if command:
        found = shutil.which(command[0], path=environ.get("PATH", os.defpath))
        if found is None:
            missing = f"{command[0]} is neither a program on PATH nor an executable file"
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{missing}; install it, or give its path")
        return str(Path(found).absolute())
    configured = environ.get(adapter.executable_variable)
    if configured:
        found = shutil.which(configured, path=environ.get("PATH"))
        if found is None:
            raise AgentMuxError(
                "AGENT_NOT_INSTALLED",
                f"{adapter.executable_variable} names {configured}, which is not an executable file",
            )
        return str(Path(found).absolute())
    for candidate in adapter.executables:
        found = shutil.which(candidate, path=environ.get("PATH", os.defpath))
        if found is not None:
            return str(Path(found).absolute())
    if adapter.takes_command:
        how = f"set command (--command) or {adapter.executable_variable}"
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} needs the command of the program to run; {how}")
    hint = f"; try: {adapter.install[0].command}" if adapter.install else ""
    missing = f"{adapter.agent} is not installed (no {adapter.executables[0]} on PATH){hint}"
    raise AgentMuxError("AGENT_NOT_INSTALLED", missing)
