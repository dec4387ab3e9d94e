"""Progressive disclosure: the model gets the names of tools, and finds their definitions with `tool_search`.

Found tools are unlocked for the rest of the session: their names are in the saved state.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from agent_loop.behavior import Behavior
from agent_loop.errors import InvalidArgumentsError
from agent_loop.hooks.contexts import ToolGate
from agent_loop.mcp.servers import McpServer
from agent_loop.mcp.tools import McpTool
from agent_loop.messages import Text
from agent_loop.messages.formatting import encode_json
from agent_loop.state import AgentState
from agent_loop.tools.tool import McpOrigin, Output, ToolContext, ToolResult

SEARCH = "tool_search"
UNLOCKED_KEY = "mcp_unlocked_tools"
"""Key in `AgentState.extra` of the canonical names of the unlocked tools."""
AUTO_LAZY_TOOLS = 40
"""Number of MCP tools from which on `tool_disclosure="auto"` is lazy."""
MAX_RESULTS = 20
SUMMARY = 100
"""Characters of a description in the catalog."""
_WORD = re.compile(r"[a-z0-9]+")
_NOT_IN_XML = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
HOW_TO_USE = (
    "These tools exist, but their parameters are not loaded. Before you call one, load it with {search}: by `names`, "
    "by `server`, or by words of a `query`. It stays loaded for the rest of the session."
)


@dataclass(frozen=True, slots=True)
class LazyTool:
    """A tool whose definition the model gets after a search."""

    wire_name: str
    """The name for the model."""
    name: str
    """The canonical name."""
    origin: McpOrigin
    description: str
    parameters: Mapping[str, Any]


def is_lazy(server: McpServer, behavior: Behavior, tool_count: int) -> bool:
    """Return whether tools of the server are disclosed by a search only. `tool_count`: that of all MCP tools."""
    mode = server.disclosure or behavior.tool_disclosure
    return mode == "lazy" or (mode == "auto" and tool_count >= AUTO_LAZY_TOOLS)


def lazy_tools(tools: Iterable[McpTool], wire: Callable[[str], str]) -> tuple[LazyTool, ...]:
    """Return the entries of these tools, in the order of their wire names."""
    entries = [
        LazyTool(wire(tool.name), tool.name, tool.mcp_origin, tool.description, tool.parameters) for tool in tools
    ]
    return tuple(sorted(entries, key=lambda entry: entry.wire_name))


def unlocked_tools(state: AgentState) -> frozenset[str]:
    """Return the canonical names of the tools that the session has unlocked."""
    names = state.extra.get(UNLOCKED_KEY)
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def unlock_tools(state: AgentState, names: Iterable[str]) -> None:
    """Unlock tools by their canonical names, as `tool_search` does; for a search tool of your own."""
    state.extra[UNLOCKED_KEY] = sorted(unlocked_tools(state) | set(names))


def catalog_of(tools: Sequence[LazyTool], search_name: str) -> str:
    """Return the catalog for the system prompt. It does not change when tools are unlocked, so that it stays cached."""
    lines = ["<searchable_tools>"]
    for tool in tools:
        summary = next(iter(tool.description.strip().splitlines()), "")[:SUMMARY]
        lines.append(
            f"<tool name={quoteattr(_clean(tool.wire_name))} server={quoteattr(_clean(tool.origin.server))}>"
            f"{_escaped(summary)}</tool>"
        )
    return "\n".join([*lines, "</searchable_tools>", "", HOW_TO_USE.format(search=search_name)])


class ToolSearch:
    """The tool `tool_search`: returns the definitions of the tools that match, and unlocks them."""

    name = SEARCH
    label = "search tools"
    kind = "read"
    description = (
        "Load tools of the list <searchable_tools>. Give their exact `names`, a `server`, or a `query` with words of "
        "their names and descriptions. Returns their descriptions and parameters; from then on you can call them."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}, "description": "Exact names of tools"},
            "query": {"type": "string", "description": "Words to search for"},
            "server": {"type": "string", "description": "Only tools of this server"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": "Most tools to load"},
        },
        "additionalProperties": False,
    }

    def __init__(self, catalog: Callable[[], Sequence[LazyTool]], limit: int) -> None:
        """`catalog` returns the lazy tools of the run; `limit` is the default of the argument."""
        self._catalog = catalog
        self._limit = limit

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Return and unlock the matching tools. Raises `InvalidArgumentsError` without any criterion."""
        names, query, server = arguments.get("names"), arguments.get("query") or "", arguments.get("server")
        if not (names or query.strip() or server):
            raise InvalidArgumentsError("give names, a query or a server")
        found = matching(self._catalog(), names=names or (), query=query, server=server)
        limit = min(arguments.get("limit") or (len(names) if names else self._limit), MAX_RESULTS)
        shown = found[:limit]
        unlock_tools(context.state, (tool.name for tool in shown))
        return ToolResult((Text(_report(shown, len(found))),), details={"unlocked": [tool.name for tool in shown]})


def matching(
    catalog: Sequence[LazyTool], *, names: Iterable[str] = (), query: str = "", server: str | None = None
) -> list[LazyTool]:
    """Return the tools with one of the names, and those of the server that match the query, the best first."""
    wanted = set(names)
    named = [tool for tool in catalog if wanted & {tool.wire_name, tool.name, tool.origin.tool}]
    if not query.strip() and server is None:
        return named
    words = set(_WORD.findall(query.lower()))
    others = [tool for tool in catalog if tool not in named and server in {None, tool.origin.server}]
    scored = [(_score(tool, words), tool) for tool in others]
    ranked = sorted((each for each in scored if each[0] or not words), key=lambda each: -each[0])  # stable
    return [*named, *(tool for _, tool in ranked)]


def gate(context: ToolGate, lazy: Iterable[str], state: AgentState, search_name: str) -> None:
    """Block the call of a tool that is not unlocked: not all providers refuse calls of tools that were not offered."""
    if context.block or context.result is not None or context.name not in lazy:
        return
    if context.name not in unlocked_tools(state):
        context.block = True
        context.reason = (
            f"the parameters of {context.wire_name} are not loaded; call {search_name} with "
            f'{{"names": ["{context.wire_name}"]}} first'
        )


def _score(tool: LazyTool, words: set[str]) -> int:
    in_name = set(_WORD.findall(tool.name.lower()))
    in_text = set(_WORD.findall(tool.description.lower()))
    return sum(3 * (word in in_name) + (word in in_text) + (word in tool.name.lower()) for word in words)


def _report(tools: Sequence[LazyTool], found: int) -> str:
    if not tools:
        return "No tool matches. Use other words, or exact names of <searchable_tools>."
    lines = ["<tool_search_results>"]
    for tool in tools:
        schema = encode_json(tool.parameters).decode().replace("<", "\\u003c")  # a schema cannot end the element
        lines += [
            f"<tool name={quoteattr(_clean(tool.wire_name))}>",
            f"<description>{_escaped(tool.description)}</description>",
            f"<input_schema>{schema}</input_schema>",
            "</tool>",
        ]
    lines.append("</tool_search_results>")
    if found > len(tools):
        lines.append(f"{found - len(tools)} more tools match; search with other words or a higher limit.")
    return "\n".join(lines)


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub(" ", text)


def _escaped(text: str) -> str:
    return escape(_clean(text))
