"""What the tools of Copilot are to us. Which of them there are depends on the model and the options."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Shell
from agent_mux_adapters._dialects.tolerant import mapping, text

SHELL_TOOLS = frozenset({"bash", "powershell"})
READING_TOOL = "view"
WRITING_TOOL = "create"
EDITING_TOOL = "edit"
PATCHING_TOOL = "apply_patch"
DELEGATING_TOOL = "task"
QUESTION_TOOL = "ask_user"

STREAMED = SHELL_TOOLS | {
    READING_TOOL, WRITING_TOOL, EDITING_TOOL, PATCHING_TOOL, "exit_plan_mode", "fetch_copilot_cli_documentation",
    "glob", "grep", "list_agents", "list_bash", "list_powershell", "lsp", "read_agent", "read_bash", "read_powershell",
    "report_intent", "rg", "session_store_sql", "skill", "sql", "stop_bash", "stop_powershell", "store_memory",
    "str_replace_editor", "task_complete", "update_todo", "vote_memory", "web_fetch", "web_search", "write_agent",
    "write_bash", "write_powershell",
}  # fmt: skip
"""Built-in tools, whose input is shown while it is streamed. Fragments name only the tool: any other may be one of an
MCP server, which is known when the input is complete."""

_IN_BACKGROUND = "async"


def shell_of(name: str, arguments: Any) -> Shell | None:
    """The command of a foreground shell call. The exit of a background command is not the call's: no projection."""
    said = mapping(arguments)
    command = text(said.get("command"))
    if name not in SHELL_TOOLS or not command or said.get("mode") == _IN_BACKGROUND or said.get("detach") is True:
        return None
    return Shell(command)


def mcp_tool(row: Mapping[str, Any], name: str) -> tuple[str, str] | None:
    """The MCP server and its tool that a call is for; None when it is for one of Copilot's own tools."""
    server = text(row.get("mcpServerName"))
    return (server, text(row.get("mcpToolName")) or name) if server else None
