"""What the tools of one agent are to us: a table that the rest of the dialect looks them up in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.facts import Fact, Risk, Shell
from agent_mux_adapters._dialects.stream_json.results import Call, Result
from agent_mux_adapters._dialects.tolerant import text

MCP_PREFIX = "mcp__"


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """`mcp__server__tool` as (server, tool); None when it is no tool of an MCP server."""
    if not name.startswith(MCP_PREFIX):
        return None
    server, separator, tool = name[len(MCP_PREFIX) :].partition("__")
    return (server, tool) if separator and server and tool else None


def _by_question(_: int, question: Mapping[str, Any]) -> str:
    return text(question.get("question"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """One agent's tools. `name` and `arguments` are those of a call."""

    delegating: frozenset[str]
    """Tools that start a sub-agent."""
    question: str
    """The tool that asks the user, as a request for permission."""
    shell_of: Callable[[str, Mapping[str, Any]], Shell | None]
    """The command, where the call runs one in the foreground."""
    done: Callable[[Call | None, Result], tuple[Fact, ...]]
    """The end of a native call (None: its beginning was not seen), and what it brought to light."""
    action_of: Callable[[str], str]
    """What a person is asked to approve."""
    detail_of: Callable[[str, Mapping[str, Any]], str]
    """The one thing to look at before approving."""
    risk_of: Callable[[str, Mapping[str, Any]], Risk]
    """How risky the call is."""
    command_of: Callable[[str, Mapping[str, Any]], str | None]
    """The command line that it runs, in the background too."""
    path_fields: tuple[str, ...]
    """The fields of an input that name a file or a folder."""
    server_and_tool: Callable[[str], tuple[str, str] | None] = split_mcp_name
    """The MCP server and its tool; None for a native one."""
    answer_key: Callable[[int, Mapping[str, Any]], str] = _by_question
    """Under what the answer to a question is expected: its number from 0, and the question itself."""

    def paths_of(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The files and folders that a call is about."""
        return tuple(path for name in self.path_fields if (path := text(arguments.get(name))))

    def is_told_whole(self, name: str) -> bool:
        """The call is told when its input is complete, not while it streams: MCP tools and sub-agents."""
        return name in self.delegating or self.server_and_tool(name) is not None
