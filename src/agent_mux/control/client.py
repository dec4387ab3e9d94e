"""The client's side of the control socket, blocking: read the state of a run, send one command, receive its response.

Each command has a connection of its own, so that a command that waits (`abort`) delays no other.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.control import places
from agent_mux.control.messages import PROTOCOL, VERSION, Hello, RunSnapshot
from agent_mux.errors import AgentMuxError

STATUS_TIMEOUT = 2.0  # seconds; a process that is stopped (Ctrl-Z, SIGSTOP) does not answer
COMMAND_TIMEOUT = 30.0
MAX_RESPONSE = 1 << 26  # bytes; a pending approval may show a long diff
_PARALLEL = 16


def parse_hello(line: bytes) -> RunSnapshot:
    """Return the state in the first line of a connection. Raises UNAVAILABLE for another protocol or version."""
    try:
        hello = msgspec.json.decode(line, type=Hello)
    except msgspec.DecodeError:
        response_error(line)
        raise AgentMuxError("UNAVAILABLE", "the run's control socket does not speak the control protocol") from None
    if hello.protocol != PROTOCOL or hello.version != VERSION:
        spoken = f"{hello.protocol} version {hello.version}; this amux speaks version {VERSION}"
        raise AgentMuxError("UNAVAILABLE", f"the run belongs to another version of agent-mux ({spoken})")
    return hello.run


def response_error(line: bytes) -> None:
    """Raise the error that a line reports, if it reports one."""
    try:
        plain = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return
    if isinstance(plain, dict) and plain.get("type") == "command_error":
        error = plain.get("error", {})
        raise AgentMuxError(
            error.get("code", "INTERNAL"), error.get("message", ""), recoverable=error.get("recoverable")
        )


def read_status(path: Path) -> RunSnapshot | None:
    """Return the state of the run behind a socket; None if the run is over, and the file is removed if it was killed.

    Raises UNAVAILABLE if the process of the run does not answer.
    """
    with _reported_failures(path):
        connection = places.connect(path)
        if connection is None:
            return None
        with connection, connection.makefile("rb") as lines:
            connection.settimeout(STATUS_TIMEOUT)
            hello = _read_line(lines)
            return parse_hello(hello) if hello else None


def read_all(paths: Iterable[Path]) -> dict[Path, RunSnapshot | AgentMuxError]:
    """Return the states of the runs behind several sockets, without those that were killed."""

    def read(path: Path) -> RunSnapshot | AgentMuxError | None:
        try:
            return read_status(path)
        except AgentMuxError as error:
            return error

    paths = list(paths)
    if len(paths) <= 1:
        states = [read(path) for path in paths]
    else:
        with ThreadPoolExecutor(_PARALLEL) as threads:
            states = list(threads.map(read, paths))
    return {path: state for path, state in zip(paths, states, strict=True) if state is not None}


def send_command(path: Path, command: Mapping[str, Any], *, timeout: float | None = COMMAND_TIMEOUT) -> dict[str, Any]:
    """Send a command and return its `ack`.

    Raises the error that the run returns; RUN_NOT_ACTIVE if it was killed, or ended before it answered; UNAVAILABLE if
    it does not answer.
    """
    with _reported_failures(path):
        connection = places.connect(path)
        if connection is None:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {path.stem} has ended; start a new one")
        with connection, connection.makefile("rb") as lines:
            connection.settimeout(STATUS_TIMEOUT)
            hello = _read_line(lines)
            if hello:
                parse_hello(hello)
            connection.settimeout(timeout)
            with suppress(ConnectionError):  # the run has ended; an error that it sent before can be read
                connection.sendall(to_json_bytes(command) + b"\n")
            return parse_ack(_read_line(lines), path.stem)


def _read_line(lines: BinaryIO) -> bytes:
    """Return the next line; empty if the run has ended and closed the connection, whatever it had not read."""
    try:
        return lines.readline(MAX_RESPONSE)
    except ConnectionError:
        return b""


def parse_ack(line: bytes, run_id: str) -> dict[str, Any]:
    """Return the `ack` in a line. Raises the error that the run returns; RUN_NOT_ACTIVE for the end of the stream."""
    if not line:
        raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} ended before it answered")
    response_error(line)
    ack: dict[str, Any] = msgspec.json.decode(line)
    return ack


@contextmanager
def _reported_failures(path: Path) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        stopped = f"run {path.stem} does not answer: its process may be stopped or busy; try again"
        raise AgentMuxError("UNAVAILABLE", stopped) from error
    except OSError as error:
        reason = error.strerror or error
        raise AgentMuxError("UNAVAILABLE", f"run {path.stem} cannot be reached at {path}: {reason}") from error


def connect_stream(path: Path, start: int) -> socket.socket | None:
    """Subscribe to the events of a run. Returns the connection, which is not blocking, or None if it was killed.

    Raises UNAVAILABLE if the run cannot be reached.
    """
    try:
        connection = places.connect(path)
        if connection is not None:
            connection.sendall(to_json_bytes({"type": "subscribe", "start": start}) + b"\n")
            connection.setblocking(False)
    except OSError as error:
        raise AgentMuxError("UNAVAILABLE", f"run {path.stem} cannot be reached: {error.strerror or error}") from error
    return connection
