"""What the tools of Claude Code are to us: a table from their names to the way they are told."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Shell
from agent_mux_adapters._dialects.stream_json.tools import split_mcp_name
from agent_mux_adapters._dialects.tolerant import as_json, text

SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
DELEGATING_TOOLS = frozenset({"Task", "Agent"})
"""`Agent` is what newer versions call `Task`."""
READING_TOOLS = frozenset({"Read", "NotebookRead"})
WRITING_TOOLS = frozenset({"Write"})
EDITING_TOOLS = frozenset({"Edit", "MultiEdit"})
NOTEBOOK_TOOLS = frozenset({"NotebookEdit"})
SKILL_TOOL = "Skill"
QUESTION_TOOL = "AskUserQuestion"
PLAN_TOOL = "ExitPlanMode"

ACTIONS: Mapping[str, str] = {
    "Bash": "Run a shell command",
    "PowerShell": "Run a shell command",
    "Read": "Read a file",
    "Write": "Write a file",
    "Edit": "Edit a file",
    "MultiEdit": "Edit a file",
    "NotebookEdit": "Edit a notebook",
    "WebFetch": "Fetch a web page",
    "WebSearch": "Search the web",
    "Task": "Start a sub-agent",
    "Agent": "Start a sub-agent",
    "Skill": "Use a skill",
    PLAN_TOOL: "Leave plan mode and carry out the plan",
}
"""What a person is asked to approve."""

DETAILS: Mapping[str, str] = {
    "Bash": "command",
    "PowerShell": "command",
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "WebFetch": "url",
    "WebSearch": "query",
    "Task": "prompt",
    "Agent": "prompt",
    "Skill": "skill",
    PLAN_TOOL: "plan",
}
"""The field of the input that says it all; for other tools it is the whole input."""


def shell_of(name: str, arguments: Mapping[str, Any]) -> Shell | None:
    """The command of a foreground shell call. A background command's exit is not the call's: it has no projection."""
    command = command_of(name, arguments)
    return None if command is None or arguments.get("run_in_background") is True else Shell(command)


def command_of(name: str, arguments: Mapping[str, Any]) -> str | None:
    """The command line that a call runs."""
    return (text(arguments.get("command")) or None) if name in SHELL_TOOLS else None


def action_of(name: str) -> str:
    """What a person is asked to approve."""
    server_and_tool = split_mcp_name(name)
    if server_and_tool is not None:
        return f"Use {server_and_tool[1]} of the MCP server {server_and_tool[0]}"
    return ACTIONS.get(name, f"Use {name}")


def detail_of(name: str, arguments: Mapping[str, Any]) -> str:
    """The one thing to look at before approving."""
    return text(arguments.get(DETAILS.get(name, ""))) or as_json(arguments)
