"""`amux-agent tool-host`: execute the tools of an agent that runs elsewhere, by messages on standard input and output.

It is the other end of `agent_loop.execution.ExecutionContext`.
"""

import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime

import anyio
import msgspec
from anyio import to_thread

from agent_loop.cli.errors import UsageError
from agent_loop.cli.inputs import read_lines
from agent_loop.cli.parsing import CommandParser
from agent_loop.cli.system_prompt import environment_of
from agent_loop.execution.host import ToolHost
from agent_loop.execution.protocol import MAX_LINE, PROTOCOL, Failed, Reply, read_request, to_line
from agent_mux._util.version import __version__
from agent_mux.cli.terminal import is_terminal

DESCRIPTION = (
    "Execute the tools of an agent that runs elsewhere. An ExecutionContext of that agent starts this program in a "
    "container or on another host, and sends it requests on standard input. It ends with its input."
)


def serve_tools(argv: Sequence[str]) -> int:
    """Serve one connection on the standard streams. Raises `UsageError`, also for input that is no request."""
    CommandParser(prog="amux-agent tool-host", description=DESCRIPTION, allow_abbrev=False).parse_args(list(argv))
    if is_terminal(sys.stdin):
        raise UsageError(
            "tool-host is started by a program, which sends it requests; see `amux-agent tool-host --help`"
        )
    anyio.run(_serve)
    return 0


async def _serve() -> None:
    replies = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write between the replies
    sending = anyio.Lock()

    async with anyio.create_task_group() as tasks:

        async def send(reply: Reply) -> None:
            line = _line_of(reply)
            async with sending:
                try:
                    with anyio.CancelScope(shield=True):  # half a line would make the next one unreadable
                        await to_thread.run_sync(_write, replies, line)
                except OSError:  # the agent is gone
                    tasks.cancel_scope.cancel()

        host = ToolHost(send, tasks, __version__, lambda path: environment_of(path, datetime.now().astimezone()))
        tasks.start_soon(_stop_on_signals, tasks.cancel_scope)
        try:
            async for line in read_lines(0, MAX_LINE):
                await host.handle(read_request(line or b""))
        except msgspec.DecodeError as error:
            raise UsageError(f"standard input has a line that is no request of version {PROTOCOL}: {error}") from None
        finally:
            tasks.cancel_scope.cancel()
            host.close()


def _line_of(reply: Reply) -> bytes:
    """Return the line of a reply; a result that cannot be sent becomes an error."""
    try:
        line = to_line(reply)
    except (TypeError, ValueError) as error:
        problem = f"the result cannot be sent: {error}"
    else:
        if len(line) <= MAX_LINE:
            return line
        problem = f"the result cannot be sent: it is larger than {MAX_LINE:,} bytes"
    return to_line(Failed(id=getattr(reply, "id", 0), message=problem))


async def _stop_on_signals(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP) as received:
        async for _ in received:
            scope.cancel()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
