"""Find the program of an agent."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import Adapter


def find_executable(adapter: Adapter, environ: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """The agent's program: by its command, named by its variable, or looked for on PATH.

    Raises AGENT_NOT_INSTALLED when it is not there, VALIDATION_ERROR when a command is given that the adapter does not
    take, or none that it needs.
    """
    if command and not adapter.takes_command:
        only = f"{adapter.agent} has a program of its own and takes no command"
        raise AgentMuxError("VALIDATION_ERROR", f"{only}; {adapter.executable_variable} can name another program")
    if command:
        found = shutil.which(command[0], path=environ.get("PATH", os.defpath))
        if found is None:
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{command[0]} is not a program on PATH, nor an executable file")
        return str(Path(found).absolute())
    named = environ.get(adapter.executable_variable)
    if named:
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise AgentMuxError(
                "AGENT_NOT_INSTALLED", f"{adapter.executable_variable} names {named}, which is not an executable file"
            )
        return str(Path(found).absolute())
    for candidate in adapter.executables:
        found = shutil.which(candidate, path=environ.get("PATH", os.defpath))
        if found is not None:
            return str(Path(found).absolute())
    if adapter.takes_command:
        how = f"say which with command (--command), or {adapter.executable_variable}"
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} drives any program: {how}")
    hint = f"; try: {adapter.install[0].command}" if adapter.install else ""
    missing = f"{adapter.agent} is not installed (no {adapter.executables[0]} on PATH){hint}"
    raise AgentMuxError("AGENT_NOT_INSTALLED", missing)
