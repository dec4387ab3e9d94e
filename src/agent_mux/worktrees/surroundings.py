"""The private resources of a run in its own directory: a temporary directory and a block of TCP ports.

So runs at the same time do not meet in a temporary file or at the port of a development server.
"""

import contextlib
import os
import socket
from collections.abc import Container, Iterator
from pathlib import Path

from agent_mux.errors import AgentMuxError

PORT_COUNT = 10
"""Ports of a run."""
_FIRST_PORT, _END_PORT = 20_000, 32_000  # below the ports that systems give to connections
_BLOCK = PORT_COUNT + 1  # the first one is held by us as long as the run has the others


@contextlib.contextmanager
def own_variables(directory: Path, given: Container[str] = ()) -> Iterator[dict[str, str]]:
    """Create a temporary directory and hold a block of ports. Yields the variables that name them. Blocking.

    Args:
        directory: Existing directory, in which `tmp` is created; the caller removes it.
        given: Names of variables that the caller sets itself, which are left out.

    Raises:
        AgentMuxError: SPAWN_ERROR if the directory cannot be created, LIMIT_EXCEEDED if no ports are free.
    """
    with port_block() as ports:
        variables = {**temporary_variables(directory), **port_variables(ports)}
        yield {name: value for name, value in variables.items() if name not in given}


def temporary_variables(directory: Path) -> dict[str, str]:
    """Create `tmp` in a directory. Returns the variables that make it the temporary directory. Raises SPAWN_ERROR."""
    temporary = directory / "tmp"
    try:
        temporary.mkdir(mode=0o700)
    except OSError as error:
        why = f"the temporary directory {temporary} cannot be created: {error.strerror or error}; free disk space"
        raise AgentMuxError("SPAWN_ERROR", why) from error
    return dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temporary))


def port_variables(ports: range) -> dict[str, str]:
    """Return the variables that name a block of ports."""
    return {"AMUX_PORT": str(ports.start), "AMUX_PORT_COUNT": str(len(ports)), "PORT": str(ports.start)}


@contextlib.contextmanager
def port_block() -> Iterator[range]:
    """Hold a block of free TCP ports, which no other run on this machine gets meanwhile.

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
