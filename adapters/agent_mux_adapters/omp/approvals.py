"""Approvals: omp asks with a dialog whose title is written for people and contains no call id.

    Allow tool: bash
    Command: echo hi

With `--approval-mode=always-ask` it asks before every tool that does more than read, including MCP tools.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import ApprovalRequested, Risk
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.pi.approvals import PiDialog
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.omp.tools import SHELL, split_mcp_name

TITLE = "Allow tool: "
APPROVE, DENY = "Approve", "Deny"
_COMMAND = "Command: "
_ACTIONS: Mapping[str, str] = {
    SHELL: "Run a shell command",
    "edit": "Edit a file",
    "eval": "Run code",
    "task": "Start a sub-agent",
    "write": "Write a file",
}
_PATH_LABELS = frozenset({"File", "Path"})
_UNKNOWN = frozenset({"(missing)", "(unknown)"})
_HIGH = frozenset({"browser", "computer", "ssh"})


def read_approval(key: str, line: Mapping[str, Any]) -> PiDialog | None:
    """Read a dialog that asks before a tool runs; return None for other dialogs."""
    title, options = text(line.get("title")), line.get("options")
    if line.get("method") != "select" or not title.startswith(TITLE) or options != [APPROVE, DENY]:
        return None
    first, _, details = title.partition("\n")
    tool = first.removeprefix(TITLE)
    command = details.removeprefix(_COMMAND) if tool == SHELL else None
    detail = details if command is None else command
    approval = ApprovalRequested(
        key, _action_of(tool), detail or tool, _risk_of(tool, detail), tool, None, command, _paths(details)
    )
    return PiDialog(
        request=approval,
        accept={"value": APPROVE},
        decline=lambda _: {"value": DENY},
        grants=lambda response: response.get("value") == APPROVE,
    )


def _paths(details: str) -> tuple[str, ...]:
    """Return the paths on the first lines of the title; the content of a written file comes after them."""
    named: list[str] = []
    for line in details.split("\n"):
        label, separator, path = line.partition(": ")
        if not separator or label not in _PATH_LABELS:
            break
        named.append(path)
    return () if _UNKNOWN.intersection(named) else tuple(named)


def _action_of(tool: str) -> str:
    server_and_tool = split_mcp_name(tool)
    if server_and_tool is not None:
        return f"Use {server_and_tool[1]} of the MCP server {server_and_tool[0]}"
    return _ACTIONS.get(tool, f"Use {tool}")


def _risk_of(tool: str, detail: str) -> Risk:
    if tool == SHELL:
        return risk_of_command(detail)
    return "high" if tool in _HIGH else "medium"
