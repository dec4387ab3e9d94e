"""A built-in tool whose calls are executed in an execution context."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from anyio import from_thread

from agent_loop.behavior import DEFAULTS, Behavior
from agent_loop.errors import ToolError
from agent_loop.execution.protocol import (
    Call,
    Failed,
    FinalReply,
    Preview,
    Previewed,
    Prior,
    PriorContent,
    Returned,
    ToolState,
)
from agent_loop.tools.builtin import BackgroundCommands, ShellTool, workspace_tools
from agent_loop.tools.builtin.file_changes import visible_reads
from agent_loop.tools.tool import CallPreview, OutputCallback, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from agent_loop.workspace import Workspace

_Kind = TypeVar("_Kind", Returned, Previewed, Prior)


class Connection(Protocol):
    """The connection to the host of tools."""

    def next_id(self) -> int:
        """Return an id for a request."""
        ...

    async def request(self, message: Call | Preview | PriorContent, update: OutputCallback | None = None) -> FinalReply:
        """Send a request and return its reply. Raises `ExecutionError`."""
        ...


def offered_tools(connection: Connection, names: Collection[str]) -> tuple["RemoteTool", ...]:
    """Return the built-in tools that a context has. Their definitions are our own: the context does not choose them."""
    shell = ShellTool(output_directory=Path(), background=BackgroundCommands())  # both exist there only
    return tuple(RemoteTool(tool, connection) for tool in workspace_tools(shell) if tool.name in names)


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool with the definition of `tool`, whose calls are executed by the host of `connection`."""

    tool: Tool
    connection: Connection

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    @property
    def description(self) -> str:
        """The description for the model."""
        return self.tool.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        return self.tool.parameters

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Execute a call there. Raises `ToolError` with what the tool raised, and `ExecutionError`."""
        behavior = (context.behavior or Behavior()).over(DEFAULTS)
        call = Call(
            id=self.connection.next_id(),
            tool=self.tool.name,
            arguments=arguments,
            call_id=context.call_id,
            state=ToolState.of(context.state, visible_reads(context)),
            dedup_reads=behavior.dedup_reads,
            require_read_before_edit=behavior.require_read_before_edit,
            read_line_numbers=behavior.read_line_numbers,
        )
        reply = _expected(Returned, await self.connection.request(call, context.update))
        reply.state.apply_to(context.state)
        return reply.result

    def __getattr__(self, name: str) -> Any:
        """Return an optional attribute of the definition. What reads files does so there; it must run in a thread."""
        if name.startswith("__"):
            raise AttributeError(name)
        given = getattr(self.tool, name)
        match name:
            case "preview":
                return self._preview
            case "prior_content":
                return self._prior_content
            case _:
                return given

    def _preview(self, arguments: Mapping[str, Any], _: "Workspace | None") -> CallPreview:
        request = Preview(id=self.connection.next_id(), tool=self.tool.name, arguments=dict(arguments))
        preview = _expected(Previewed, from_thread.run(partial(self.connection.request, request))).preview
        if preview is None:
            raise ToolError(f"{self.tool.name} has no preview of this call")
        return preview

    def _prior_content(self, arguments: Mapping[str, Any], _: ToolContext) -> str | None:
        request = PriorContent(id=self.connection.next_id(), tool=self.tool.name, arguments=dict(arguments))
        return _expected(Prior, from_thread.run(partial(self.connection.request, request))).content


def _expected(kind: type[_Kind], reply: FinalReply) -> _Kind:
    if isinstance(reply, Failed):
        raise ToolError(reply.message)
    if not isinstance(reply, kind):
        raise ToolError(f"the execution context sent {type(reply).__name__} instead of {kind.__name__}")
    return reply
