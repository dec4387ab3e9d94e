"""The tools on the wire: the official SDK carries them, everything is checked and cleaned at this one place."""

import logging
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import sanitize, to_json
from agent_mux._util.version import __version__
from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.delegations import Delegations
from agent_mux.mcp_server.requests import read_request
from agent_mux.mcp_server.tools import INSTRUCTIONS, START, TOOLS, ToolSpec
from agent_mux.redaction import redact_text

LONGEST_ERROR = 2000  # characters
_BY_NAME = {tool.name: tool for tool in TOOLS}
_Context = ServerRequestContext[Any, Any]


def server_of(them: Delegations) -> Server[Any]:
    """An MCP server with the tools for these runs, and nothing else."""

    async def list_tools(_: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        offered = [tool for tool in TOOLS if tool.name != START or not them.limits.is_deepest]
        return types.ListToolsResult(tools=[_described(tool) for tool in offered])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = _BY_NAME.get(params.name)
        if tool is None:
            unknown = f"no tool is named {params.name[:64]!r}; there are {', '.join(_BY_NAME)}"
            raise MCPError(code=types.INVALID_PARAMS, message=sanitize(unknown))
        try:
            asked = read_request(tool.asks, params.arguments)
            return _result(await tool.act(them, asked, context.session.report_progress))
        except AgentMuxError as error:
            return _failure(error)
        except Exception as error:  # one call that fails of our own fault ends neither the server nor its runs
            logging.getLogger(LOGGER).exception("the tool %s failed", tool.name)
            broken = f"{tool.name} failed: an error of agent-mux itself ({type(error).__name__})"
            return _failure(AgentMuxError("INTERNAL", broken))

    return Server(
        "agent-mux",
        version=__version__,
        title="agent-mux",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _described(tool: ToolSpec) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title, read_only_hint=tool.is_read_only, destructive_hint=tool.is_destructive
        ),
    )


def _result(answer: msgspec.Struct) -> types.CallToolResult:
    """The answer, twice: for clients that know of structured content, and as text for those that do not."""
    plain = harmless(msgspec.to_builtins(answer))
    return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(plain))], structured_content=plain)


def _failure(error: AgentMuxError) -> types.CallToolResult:
    message = sanitize(redact_text(error.message))[:LONGEST_ERROR]
    text = types.TextContent(type="text", text=f"error: {message} [{error.code}]")
    return types.CallToolResult(content=[text], is_error=True)


def harmless(value: Any) -> Any:
    """Plain values without control characters, and without what is no Unicode."""
    match value:
        case str():
            return sanitize(value).encode("utf-8", "replace").decode()
        case dict():
            return {harmless(name): harmless(item) for name, item in value.items()}
        case list() | tuple():
            return [harmless(item) for item in value]
    return value
