"""A bare client of the control socket, for tests: it sends lines, sensible or not, and reads what the run answers."""

import json
import socket
import time
from pathlib import Path
from typing import Any, ClassVar

import anyio
from anyio import to_thread

from agent_mux.control import places
from agent_mux.run.handle import RunHandle

PATIENCE = 60.0  # seconds; a busy machine must not fail a test


class BareClient:
    """One connection to the socket of a run. Blocking: call it in a thread."""

    opened: ClassVar[list["BareClient"]] = []
    """All clients, for `close_all`."""

    def __init__(self, path: Path) -> None:
        connection = places.connect(path, PATIENCE)
        assert connection is not None, "the socket is stale"
        self.connection: socket.socket = connection
        self.lines = connection.makefile("rb")
        self.opened.append(self)
        self.hello = self.receive()

    def receive(self) -> dict[str, Any]:
        line = self.lines.readline()
        return json.loads(line) if line else {}

    def send(self, *messages: Any) -> None:
        lines = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages)
        self.connection.sendall(b"".join(line + b"\n" for line in lines))

    def ask(self, message: Any) -> dict[str, Any]:
        self.send(message)
        return self.receive()

    def rest(self) -> list[dict[str, Any]]:
        """Return the messages until the end; the last line is incomplete if the run ended before it was read."""
        return [json.loads(line) for line in self.lines if line.endswith(b"\n")]

    def close(self) -> None:
        self.lines.close()
        self.connection.close()


def close_all() -> None:
    """Close the connections of a test."""
    while BareClient.opened:
        BareClient.opened.pop().close()


async def socket_of(run: RunHandle, config_dir: Path) -> Path:
    """Return the path of the socket of a run, once it exists."""
    with anyio.fail_after(PATIENCE):
        while (path := places.find_socket(config_dir, run.run_id)) is None:  # noqa: ASYNC110  # nothing announces it
            await anyio.sleep(0.01)
    return path


async def in_thread(function: Any, *arguments: Any) -> Any:
    with anyio.fail_after(PATIENCE):
        return await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)


def wait_for(condition: Any) -> Any:
    """Return the first true value of a condition."""
    limit = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < limit, "the condition did not become true"
        time.sleep(0.02)
    return value
