"""The host of an agent's tools: it executes the calls that arrive on a connection, in a workspace on this machine."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from agent_loop.behavior import Behavior
from agent_loop.errors import ToolError, error_text
from agent_loop.execution.protocol import (
    PROTOCOL,
    Call,
    Cancel,
    Failed,
    Open,
    Output,
    Preview,
    Previewed,
    Prior,
    PriorContent,
    Ready,
    Refused,
    Reply,
    Request,
    Returned,
    StateChange,
)
from agent_loop.tools.builtin import BackgroundCommands, ShellTool, workspace_tools
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.results import valid_result
from agent_loop.tools.threads import call_in_thread
from agent_loop.tools.tool import Tool, ToolContext, preview_of_call
from agent_loop.workspace import Workspace
from agent_loop.workspace.entries import printable

Send = Callable[[Reply], Awaitable[None]]
Describe = Callable[[Path], str]
"""Return what the model should know about the machine and a workspace on it."""
CANCELLED = "the call was cancelled"


@dataclass(slots=True)
class _Opened:
    """The workspace of a connection and its tools."""

    workspace: Workspace
    tools: dict[str, Tool]
    background: BackgroundCommands
    outputs: TemporaryDirectory[str]

    @classmethod
    def at(cls, directory: Path) -> "_Opened":
        """Open a directory. Raises `OSError` and `WorkspaceError`."""
        outputs = TemporaryDirectory(prefix="amux-tool-host-")
        kept = Path(outputs.name)
        background = BackgroundCommands(kept)
        shell = ShellTool(output_directory=kept, background=background)
        tools = {tool.name: tool for tool in workspace_tools(shell)}
        return cls(Workspace(directory, [kept]), tools, background, outputs)

    def close(self) -> None:
        """End background commands and remove their output. Blocks up to the grace period of commands."""
        self.background.close()
        self.outputs.cleanup()


@dataclass(slots=True)
class ToolHost:
    """Serves one connection. `close` must be called at its end; it blocks."""

    send: Send
    """Sends one reply; it waits while the receiver does not read."""
    tasks: TaskGroup
    version: str
    describe: Describe
    _opened: _Opened | None = None
    _running: dict[int, anyio.CancelScope] = field(default_factory=dict)

    async def handle(self, request: Request) -> None:
        """Begin a request; its replies are sent when they are known."""
        match request:
            case Open():
                await self.send(await to_thread.run_sync(self._open, request))
            case Cancel():
                if request.id in self._running:
                    self._running[request.id].cancel()
            case _:
                scope = self._running[request.id] = anyio.CancelScope()
                self.tasks.start_soon(self._serve, request, scope)

    def close(self) -> None:
        """End what the calls left running."""
        if self._opened is not None:
            self._opened.close()

    def _open(self, request: Open) -> Ready | Refused:
        if request.protocol != PROTOCOL:
            return Refused(reason=f"it speaks version {PROTOCOL} of the protocol; install the same agent-mux in both")
        if self._opened is not None:
            return Refused(reason="a workspace is open already")
        directory = Path(os.path.expanduser(request.directory or ".")).absolute()
        if not directory.is_dir():
            return Refused(reason=f"{directory} is not a directory there")
        try:
            self._opened = _Opened.at(directory)
        except (OSError, ToolError) as error:
            return Refused(reason=f"{directory} cannot be used: {error_text(error)}")
        root = self._opened.workspace.root
        return Ready(
            protocol=PROTOCOL,
            version=self.version,
            directory=printable(str(root)),
            environment=self.describe(root),
            tools=list(self._opened.tools),
        )

    async def _serve(self, request: Call | Preview | PriorContent, scope: anyio.CancelScope) -> None:
        reply: Reply = Failed(id=request.id, message=CANCELLED)
        with scope:
            reply = await self._reply_to(request)
        self._running.pop(request.id, None)
        await self.send(reply)

    async def _reply_to(self, request: Call | Preview | PriorContent) -> Reply:
        try:
            opened, tool = self._find(request.tool)
            match request:
                case Call():
                    return await self._call(tool, request, opened.workspace)
                case Preview():
                    preview = await call_in_thread(preview_of_call, tool, request.arguments, opened.workspace)
                    return Previewed(id=request.id, preview=preview)
                case PriorContent():
                    content = await call_in_thread(_prior_content, tool, request, opened.workspace)
                    return Prior(id=request.id, content=content)
        except Exception as error:  # noqa: BLE001  # whatever a tool raises is the result of its call, as in the loop
            return Failed(id=request.id, message=error_text(error) or type(error).__name__)

    def _find(self, name: str) -> tuple[_Opened, Tool]:
        if self._opened is None:
            raise ToolError("no workspace is open")
        if name not in self._opened.tools:
            raise ToolError(f"the host has no tool {name[:64]!r}")
        return self._opened, self._opened.tools[name]

    async def _call(self, tool: Tool, request: Call, workspace: Workspace) -> Returned:
        async def update(text: str, stream: OutputStream = "stdout") -> None:
            await self.send(Output(id=request.id, text=text, stream=stream))

        state = request.state.to_state()
        context: ToolContext[Any] = ToolContext(
            call_id=request.call_id,
            tool_name=tool.name,
            state=state,
            workspace=workspace,
            behavior=Behavior(
                dedup_reads=request.dedup_reads,
                require_read_before_edit=request.require_read_before_edit,
                read_line_numbers=request.read_line_numbers,
            ),
            update=update,
        )
        result = valid_result(await tool.execute(request.arguments, context))
        return Returned(id=request.id, result=result, state=StateChange.between(request.state, state))


def _prior_content(tool: Tool, request: PriorContent, workspace: Workspace) -> str | None:
    read: Callable[[Any, ToolContext], str | None] | None = getattr(tool, "prior_content", None)
    context: ToolContext[Any] = ToolContext(call_id="", tool_name=tool.name, workspace=workspace)
    return None if read is None else read(request.arguments, context)
