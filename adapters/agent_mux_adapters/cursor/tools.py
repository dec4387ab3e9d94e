"""What the tools of cursor-agent are to us. A tool call is an object with one key, `<name>ToolCall`, among siblings."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Risk, Shell
from agent_mux.native_json import load_object
from agent_mux.risk import risk_of_command
from agent_mux_adapters._dialects.tolerant import WrongShapeError, as_json, mapping, text

SUFFIX = "ToolCall"
FUNCTION = "function"
"""The key of a tool that has none of its own: `{"name": ..., "arguments": <JSON text>}`."""

SHELL = "shell"
READ = "read"
WRITE = "write"
EDIT = "edit"
DELETE = "delete"
MCP = "mcp"
TASK = "task"

ASKING = frozenset({"askQuestion", "createPlan", "switchMode"})
"""They ask for more than a yes or no; in print mode nobody answers."""

ACTIONS: Mapping[str, str] = {
    SHELL: "Run a shell command",
    READ: "Read a file",
    WRITE: "Write a file",
    EDIT: "Edit a file",
    DELETE: "Delete a file",
    "webFetch": "Fetch a web page",
    "webSearch": "Search the web",
    TASK: "Start a sub-agent",
}
"""What somebody would have been asked to approve."""

DETAILS = ("command", "path", "url", "searchTerm", "query", "prompt")
"""Fields of the input that say it all; where there is none, it is the whole input."""

LOW_RISK = frozenset({READ, "ls", "glob", "grep", "semSearch", "readLints", "updateTodos", "readTodos"})
HIGH_RISK = frozenset({DELETE, "webFetch", "webSearch"})


def split(tool_call: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name of the tool and what the line says of it. Raises `WrongShapeError` when there is none."""
    for key, value in tool_call.items():
        if key.endswith(SUFFIX) and isinstance(value, dict):
            return key.removesuffix(SUFFIX), value
    function = mapping(tool_call.get(FUNCTION))
    if not text(function.get("name")):
        raise WrongShapeError("tool_call")
    arguments = text(function.get("arguments"))
    return text(function["name"]), {**function, "args": load_object(arguments.encode()) or arguments}


def shell_of(name: str, arguments: Mapping[str, Any]) -> Shell | None:
    """The command of a foreground shell call. A background command's exit is not the call's: it has no projection."""
    command = text(arguments.get("command"))
    if name != SHELL or not command or arguments.get("isBackground") is True:
        return None
    return Shell(command, text(arguments.get("workingDirectory")) or None)


def server_and_tool(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The server and its tool; `name` is both, `<server>-<tool>`."""
    server, tool, name = (text(arguments.get(field)) for field in ("providerIdentifier", "toolName", "name"))
    return server or name.removesuffix(f"-{tool}") or MCP, tool or name.removeprefix(f"{server}-")


def action_of(name: str, arguments: Mapping[str, Any]) -> str:
    """What somebody would have been asked to approve."""
    if name == MCP:
        server, tool = server_and_tool(arguments)
        return f"Use {tool} of the MCP server {server}"
    return ACTIONS.get(name, f"Use {name}")


def detail_of(name: str, arguments: Mapping[str, Any]) -> str:
    """The one thing to look at before approving."""
    if name == MCP:
        return as_json(arguments.get("args"))
    said = (text(arguments.get(field)) for field in DETAILS)
    return next((detail for detail in said if detail), "") or as_json(arguments)


def risk_of(name: str, arguments: Mapping[str, Any]) -> Risk:
    """A guess by the kind of tool, or by the command."""
    if name == SHELL:
        return risk_of_command(text(arguments.get("command")))
    if name in LOW_RISK:
        return "low"
    return "high" if name in HIGH_RISK else "medium"
