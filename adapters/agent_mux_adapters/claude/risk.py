"""How risky a call is, by the tool. Commands are judged by `agent_mux.risk`."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Risk
from agent_mux.risk import risk_of_command
from agent_mux_adapters._dialects.tolerant import text

LOW_TOOLS = frozenset({
    "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TaskList", "TaskGet", "BashOutput", "TaskOutput",
    "AskUserQuestion", "EnterPlanMode", "ToolSearch", "ListMcpResourcesTool",
})  # fmt: skip
HIGH_TOOLS = frozenset({"WebFetch", "WebSearch", "RemoteTrigger"})
COMMAND_TOOLS = frozenset({"Bash", "PowerShell"})


def assess(tool: str, arguments: Mapping[str, Any]) -> Risk:
    """The risk of calling this tool with these arguments."""
    if tool in COMMAND_TOOLS:
        return risk_of_command(text(arguments.get("command")))
    if tool in LOW_TOOLS:
        return "low"
    return "high" if tool in HIGH_TOOLS else "medium"
