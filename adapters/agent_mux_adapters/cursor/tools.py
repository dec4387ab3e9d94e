"""The tools of cursor-agent. A call is an object with one key `<name>ToolCall` among other fields."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import Risk, ShellInvocation
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.tolerant import WrongShapeError, as_json, mapping, text

SUFFIX = "ToolCall"
FUNCTION = "function"
"""The key of tools without one of their own: `{"name": ..., "arguments": <JSON text>}`."""

SHELL = "shell"
READ = "read"
WRITE = "write"
EDIT = "edit"
DELETE = "delete"
MCP = "mcp"
TASK = "task"

ASKING = frozenset({"askQuestion", "createPlan", "switchMode"})
"""Tools that ask a person for more than yes or no; print mode skips them."""

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
"""The action that a person would have been asked to approve."""

DETAILS = ("command", "path", "url", "searchTerm", "query", "prompt")
"""Input fields that are shown for approval; without any of them it is the whole input."""

LOW_RISK = frozenset({READ, "ls", "glob", "grep", "semSearch", "readLints", "updateTodos", "readTodos"})
HIGH_RISK = frozenset({DELETE, "webFetch", "webSearch"})


def split(tool_call: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the tool's name and the call's data. Raises `WrongShapeError` when the line names no tool."""
    for key, value in tool_call.items():
        if key.endswith(SUFFIX) and isinstance(value, dict):
            return key.removesuffix(SUFFIX), value
    function = mapping(tool_call.get(FUNCTION))
    if not text(function.get("name")):
        raise WrongShapeError("tool_call")
    arguments = text(function.get("arguments"))
    return text(function["name"]), {**function, "args": load_object(arguments.encode()) or arguments}


def shell_of(name: str, arguments: Mapping[str, Any]) -> ShellInvocation | None:
    """Return the command of a foreground shell call; None for other calls.

    A background command outlives its call, so it has no shell events.
    """
    command = text(arguments.get("command"))
    if name != SHELL or not command or arguments.get("isBackground") is True:
        return None
    return ShellInvocation(command, text(arguments.get("workingDirectory")) or None)


def server_and_tool(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the MCP server and its tool; `name` contains both as `<server>-<tool>`."""
    server, tool, name = (text(arguments.get(field)) for field in ("providerIdentifier", "toolName", "name"))
    return server or name.removesuffix(f"-{tool}") or MCP, tool or name.removeprefix(f"{server}-")


def action_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the action that a person would have been asked to approve."""
    if name == MCP:
        server, tool = server_and_tool(arguments)
        return f"Use {tool} of the MCP server {server}"
    return ACTIONS.get(name, f"Use {name}")


def detail_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the detail that a person needs to see before approving."""
    if name == MCP:
        return as_json(arguments.get("args"))
    details = (text(arguments.get(field)) for field in DETAILS)
    return next((detail for detail in details if detail), "") or as_json(arguments)


def risk_of(name: str, arguments: Mapping[str, Any]) -> Risk:
    """Return the risk by the kind of tool or by the command."""
    if name == SHELL:
        return risk_of_command(text(arguments.get("command")))
    if name in LOW_RISK:
        return "low"
    return "high" if name in HIGH_RISK else "medium"
