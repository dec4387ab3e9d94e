"""An execution context: the connection to a container or another host, in which the tools of an agent run."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from agent_loop.checked import check_fields
from agent_loop.errors import ExecutionError, error_text
from agent_loop.execution.protocol import (
    MAX_LINE,
    PROTOCOL,
    Call,
    Cancel,
    FinalReply,
    Open,
    Output,
    Preview,
    PriorContent,
    Ready,
    Refused,
    Reply,
    read_reply,
    to_line,
)
from agent_loop.execution.remote_tool import RemoteTool, offered_tools
from agent_loop.tools.builtin.shell_rules import without_secrets
from agent_loop.tools.tool import OutputCallback

PROGRAM = ("amux-agent", "tool-host")
"""The program that serves the tools in the context."""
NOT_OPEN = "the execution context is not open; enter it with `async with`"
MAX_STDERR = 2_000
"""Characters at the end of the command's standard error that messages about it contain."""
MAX_GREETING = 65_536
"""Bytes that may come before the first reply: start-up files of shells print, and SSH passes it on."""
OUTPUTS = 64
"""Pieces of output of one call that wait for their receiver; then the connection waits."""
CANCEL_TIME = 10.0
"""Seconds for which a cancelled call waits until the context has ended its processes."""
SEND_TIME = 30.0
"""Seconds after which a context that does not read a request is lost."""
EXIT_TIME = 10.0
"""Seconds after the end of its input in which the command exits; then it is ended."""
KILL_TIME = 2.0
"""Seconds between SIGTERM and SIGKILL."""


@dataclass(slots=True, eq=False)
class _Pending:
    """A request that waits for its reply."""

    send: MemoryObjectSendStream[Output | FinalReply]
    receive: MemoryObjectReceiveStream[Output | FinalReply]


@dataclass(eq=False)
class ExecutionContext:
    """The place in which an agent's tools run, beside model calls and keys, which stay in this process.

    `command` is what starts a program there, for example `["docker", "exec", "-i", "box"]` or `["ssh", "host"]`;
    agent-mux of the same version must be installed there. Enter the context to connect:

        async with ExecutionContext(["docker", "exec", "-i", "box"], "/work") as context:
            agent = Agent("anthropic:MODEL", tools=context.tools, system_prompt=context.environment)
    """

    command: Sequence[str]
    directory: str | None = None
    """The workspace there; None: the directory in which the command starts the program."""
    program: Sequence[str] = PROGRAM
    """The program that serves the tools, for example with its whole path."""
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    """The environment of the command here; None: that of this process without variables that look like secrets."""
    connect_timeout: float = 30.0
    """Seconds in which the context must be ready."""

    def __post_init__(self) -> None:
        check_fields(self)
        self._process: Process | None = None
        self._ready: Ready | None = None
        self._problem: str | None = None
        """Why the connection is lost; None while it is not."""
        self._settled = anyio.Event()
        self._pending: dict[int, _Pending] = {}
        self._last_id = 0
        self._sending = anyio.Lock()
        self._stderr = ""
        self._stack: AsyncExitStack | None = None
        self._tools: tuple[RemoteTool, ...] = ()

    # -- for the application

    @property
    def tools(self) -> tuple[RemoteTool, ...]:
        """The file tools and the shell of the context. Empty before it is entered."""
        return self._tools

    @property
    def workspace(self) -> str:
        """The absolute path of the workspace there. Raises `ExecutionError` before the context is entered."""
        return self._opened.directory

    @property
    def environment(self) -> str:
        """What the model should know about the machine there. Raises `ExecutionError` before the context is entered."""
        return self._opened.environment

    async def __aenter__(self) -> Self:
        """Start the command and open the workspace. Raises `ExecutionError` with the reason if it is not ready."""
        if self._stack is not None:
            raise ExecutionError("the execution context was entered before; create another one")
        self._stack = stack = AsyncExitStack()
        try:
            process = await self._start(stack)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.push_async_callback(self._end, process)
            tasks.start_soon(self._read_replies, process)
            tasks.start_soon(self._read_errors, process.stderr)
            await self._open()
        except BaseException:
            await stack.aclose()  # without the error, which the task group would wrap
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the connection, with everything that the tools left running there."""
        if self._stack is not None:
            await self._stack.aclose()

    # -- for the tools

    async def request(self, message: Call | Preview | PriorContent, update: OutputCallback | None = None) -> FinalReply:
        """Send a request and return its reply; `update` receives the output. Raises `ExecutionError`.

        A cancelled request waits until the context has ended what it started.
        """
        pending = _Pending(*anyio.create_memory_object_stream[Output | FinalReply](OUTPUTS))
        self._pending[message.id] = pending
        try:
            await self._send(message)
            return await self._reply(pending, update)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_TIME), suppress(ExecutionError):
                await self._send(Cancel(id=message.id))
                await self._reply(pending, None)
            raise
        finally:
            self._pending.pop(message.id, None)
            pending.receive.close()
            pending.send.close()

    def next_id(self) -> int:
        """Return an id for a request."""
        self._last_id += 1
        return self._last_id

    # -- the connection

    @property
    def _opened(self) -> Ready:
        if self._ready is None:
            raise ExecutionError(NOT_OPEN)
        return self._ready

    async def _start(self, stack: AsyncExitStack) -> Process:
        argv = [*self.command, *self.program]
        variables = without_secrets(os.environ) if self.variables is None else self.variables
        try:
            process = await anyio.open_process(argv, env=variables, start_new_session=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error_text(error)
            raise ExecutionError(f"{argv[0]} cannot be started for the execution context: {reason}") from None
        self._process = process
        return await stack.enter_async_context(process)

    async def _open(self) -> None:
        with anyio.move_on_after(self.connect_timeout) as limit:
            with suppress(ExecutionError):  # the end of the command, which settles this, has the reason
                await self._send(Open(directory=self.directory))
            await self._settled.wait()
        if limit.cancelled_caught:
            raise ExecutionError(
                f"the execution context was not ready after {self.connect_timeout:g} seconds{self._errors()}"
            )
        if self._ready is None:
            raise ExecutionError(f"the execution context is not ready: {self._problem}")
        self._tools = offered_tools(self, self._ready.tools)

    async def _send(self, message: Open | Call | Preview | PriorContent | Cancel) -> None:
        if self._problem is not None:
            raise ExecutionError(f"the execution context is lost: {self._problem}")
        try:
            line = to_line(message)
        except (TypeError, ValueError) as error:  # an unpaired surrogate, for example
            raise ExecutionError(f"the call cannot be sent: {error_text(error)}") from None
        if len(line) > MAX_LINE:
            raise ExecutionError(f"the call cannot be sent: it is larger than {MAX_LINE:,} bytes")
        if self._process is None or self._process.stdin is None:
            raise ExecutionError(NOT_OPEN)
        async with self._sending:
            with anyio.move_on_after(SEND_TIME, shield=True) as limit:  # half a line would make the next one unreadable
                try:
                    await self._process.stdin.send(line)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    raise ExecutionError(f"the execution context is lost{self._errors()}") from None
        if limit.cancelled_caught:
            self._lose(f"it has read nothing for {SEND_TIME:g} seconds")
            raise ExecutionError(f"the execution context is lost: {self._problem}")

    async def _reply(self, pending: _Pending, update: OutputCallback | None) -> FinalReply:
        async for message in pending.receive:
            if not isinstance(message, Output):
                return message
            if update is not None:
                await update(message.text, message.stream)
        raise ExecutionError(f"the execution context is lost: {self._problem}")

    async def _read_replies(self, process: Process) -> None:
        """Pass replies on, until the command ends or sends what is none."""
        begun, greeting = bytearray(), 0
        try:
            while chunk := await _receive(process.stdout):
                *ends, rest = chunk.split(b"\n")
                for end in ends:
                    line = bytes(begun + end)
                    begun.clear()
                    if self._ready is None and not line.startswith(b"{"):
                        greeting += len(line)
                    elif line.strip():
                        await self._take(read_reply(line))
                begun += rest
                if len(begun) > MAX_LINE or greeting > MAX_GREETING:
                    self._lose("it sent too much that is no reply")
                    return
            await process.wait()
            self._lose(f"the command ended with exit code {process.returncode}{self._errors()}")
        except msgspec.DecodeError as error:
            self._lose(f"it sent a line that is no reply of version {PROTOCOL}: {error}")

    async def _take(self, reply: Reply) -> None:
        match reply:
            case Ready(protocol=protocol) if protocol != PROTOCOL:
                self._lose(f"it speaks version {protocol} of the protocol; install the same agent-mux")
            case Ready():
                self._ready = reply
                self._settled.set()
            case Refused():
                self._lose(reply.reason[:MAX_STDERR])
            case _:
                pending = self._pending.get(reply.id)
                if pending is not None:
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the request has ended
                        await pending.send.send(reply)

    def _lose(self, problem: str) -> None:
        self._problem = self._problem or problem
        for pending in self._pending.values():
            pending.send.close()
        self._settled.set()

    async def _read_errors(self, stream: ByteReceiveStream | None) -> None:
        while chunk := await _receive(stream):
            self._stderr = (self._stderr + chunk.decode("utf-8", "replace"))[-MAX_STDERR:]

    def _errors(self) -> str:
        """Return the end of the command's standard error, as the rest of a sentence."""
        lines = " ".join(self._stderr.split())
        return f": {lines}" if lines else ""

    async def _end(self, process: Process) -> None:
        """Close the input, at whose end the host stops; end the command if it does not exit, or never worked."""
        with anyio.CancelScope(shield=True):
            patience = EXIT_TIME if self._problem is None and self._ready is not None else 0
            self._lose("it was closed")
            if process.stdin is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await process.stdin.aclose()
            for seconds, number in ((patience, signal.SIGTERM), (KILL_TIME, signal.SIGKILL)):
                with anyio.move_on_after(seconds):
                    await process.wait()
                if process.returncode is not None:
                    return
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            await process.wait()


async def _receive(stream: ByteReceiveStream | None) -> bytes:
    """Return what a stream receives next; empty at its end."""
    try:
        return b"" if stream is None else await stream.receive()
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return b""
