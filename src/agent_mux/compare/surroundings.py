"""What a trial has for itself in addition to its workspace: a temporary directory, ports, a configuration directory.

`HOME` stays that of the user. Everything here is removed at the end of the trial.
"""

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux.compare.removal import remove_directory
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import ConfigDirectory

PORT_COUNT = 10
"""Ports of a trial."""
_FIRST_PORT, _END_PORT = 20_000, 32_000  # below the ports that systems give to connections
_BLOCK = PORT_COUNT + 1  # the first one is held by us as long as the trial has the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of one trial."""

    environ: Mapping[str, str]
    """Variables for the agent and for the checks."""
    directory: Path
    """Directory with everything that is removed at the end."""
    ports: range
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def trial_surroundings(config: ConfigDirectory | None, place: AgentPaths) -> Iterator[Surroundings]:
    """Create the surroundings of a trial and remove them at the end. Blocking.

    Args:
        config: The configuration directory that the agent declares; None: it has none that can be moved.
        place: Home directory and environment of the agent.

    Raises:
        AgentMuxError: They cannot be created, or no ports are free.
    """
    with contextlib.ExitStack() as stack:
        ports = stack.enter_context(port_block())
        try:
            directory = Path(tempfile.mkdtemp(prefix="amux-"))
        except OSError as error:
            why = f"no temporary directory can be created: {error.strerror or error}; free disk space, or set TMPDIR"
            raise AgentMuxError("SPAWN_ERROR", why) from error
        stack.callback(remove_directory, directory)
        environ = {**_temporary_variables(directory), **port_variables(ports)}
        if config is not None:
            environ[config.variable] = str(_create_config(config, place, directory / "config"))
        yield Surroundings(environ=environ, directory=directory, ports=ports)


def _temporary_variables(directory: Path) -> dict[str, str]:
    temporary = directory / "tmp"
    temporary.mkdir(mode=0o700)
    return dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temporary))


def port_variables(ports: range) -> dict[str, str]:
    """Return the variables that name a block of ports."""
    return {"AMUX_PORT": str(ports.start), "AMUX_PORT_COUNT": str(len(ports)), "PORT": str(ports.start)}


@contextlib.contextmanager
def port_block() -> Iterator[range]:
    """Hold a block of free TCP ports, which no other trial on this machine gets meanwhile.

    A bound socket beside the block is the lock: the system releases it when this process ends, however it ends. Raises
    `AgentMuxError` if no block is free.
    """
    blocks = range(_FIRST_PORT, _END_PORT - _BLOCK, _BLOCK)
    first = os.getpid() % len(blocks)
    for number in (*blocks[first:], *blocks[:first]):
        guard = _bind(number)
        if guard is None:
            continue
        with guard:
            ports = range(number + 1, number + _BLOCK)
            if all(map(_is_free, ports)):
                yield ports
                return
    raise AgentMuxError("LIMIT_EXCEEDED", f"no {PORT_COUNT} consecutive ports are free in {_FIRST_PORT}-{_END_PORT}")


def _bind(port: int) -> socket.socket | None:
    """Return a socket that holds a port of all interfaces, without listening; None if it is in use."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.bind(("", port))
    except OSError:
        holder.close()
        return None
    return holder


def _is_free(port: int) -> bool:
    holder = _bind(port)
    if holder is None:
        return False
    holder.close()
    return True


def _create_config(config: ConfigDirectory, place: AgentPaths, target: Path) -> Path:
    """Create a configuration directory: credentials as links to the user's files, settings as copies."""
    target.mkdir(mode=0o700)
    source = config.path(place)
    for name in config.credentials:
        if (source / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (target / name).symlink_to(source / name)
    for name in config.settings:
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source / name, target / name)
            (target / name).chmod(0o600)
    return target
