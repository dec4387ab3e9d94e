"""The sockets that the server listens on, and which of their addresses are local.

They are bound before anything else is opened, so that a port in use is reported at once.
"""

import contextlib
import ipaddress
import socket

from agent_mux.errors import AgentMuxError

BACKLOG = 2048
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104  # compared with, not bound


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Bind a socket for every address of a host name, all with the same port; port 0 chooses a free one.

    Raises:
        AgentMuxError: VALIDATION_ERROR for an address that this machine does not have, CONFIG_ERROR for a port in use.
    """
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as opened:
        for family, address in _addresses(host, port):
            # asyncio sets TCP_NODELAY on connections of this protocol only; without it, each answer waits for 40 ms.
            one = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            _bind(one, address, sockets[0].getsockname()[1] if sockets else port)
            sockets.append(one)
        opened.pop_all()
    return sockets


def is_loopback(host: str) -> bool:
    """Return whether every address of the host is a loopback address. Raises VALIDATION_ERROR for an unknown host."""
    return all(ipaddress.ip_address(address[0].partition("%")[0]).is_loopback for _, address in _addresses(host, 0))


def is_wildcard(host: str) -> bool:
    """Return whether the host stands for every address of this machine."""
    return host in _WILDCARDS


def _addresses(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _no_address(host) from error
    return list(
        dict.fromkeys((int(family), (str(address[0]), int(address[1]))) for family, _, _, _, address in addresses)
    )


def _bind(one: socket.socket, address: tuple[str, int], port: int) -> None:
    endpoint = f"[{address[0]}]:{port}" if ":" in address[0] else f"{address[0]}:{port}"
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one.family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((address[0], port))
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"cannot listen on {endpoint}: {reason}; choose another address or port with --host and --port"
        raise AgentMuxError("CONFIG_ERROR", message) from error


def _no_address(host: str) -> AgentMuxError:
    return AgentMuxError(
        "VALIDATION_ERROR", f"{host!r} is not an address of this machine; try 127.0.0.1, ::1 or localhost"
    )
