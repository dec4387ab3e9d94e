"""Approvals: pi has none of its own; our extension asks before a tool runs, through an input dialog of rpc mode."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import ApprovalRequested, Risk
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.pi.approvals import EDITING_TOOLS, PiDialog
from agent_mux_adapters._dialects.pi.extension import TITLE
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text
from agent_mux_adapters.pi.tools import SHELLS, split_mcp_name

_ACTIONS: Mapping[str, str] = {
    "bash": "Run a shell command",
    "powershell": "Run a shell command",
    "edit": "Edit a file",
    "write": "Write a file",
}
_DETAILS: Mapping[str, str] = {"bash": "command", "powershell": "command", "edit": "path", "write": "path"}


def read_approval(key: str, line: Mapping[str, Any]) -> PiDialog | None:
    """Read a dialog of our extension; return None for dialogs of other extensions."""
    if line.get("method") != "input" or line.get("title") != TITLE:
        return None
    call = load_object(text(line.get("placeholder")).encode("utf-8", "replace")) or {}
    name, arguments = text(call.get("name")), mapping(call.get("input"))
    path = text(arguments.get("path"))
    request = ApprovalRequested(
        key,
        _action_of(name),
        text(arguments.get(_DETAILS.get(name, ""))) or as_json(arguments),
        _risk_of(name, arguments),
        name or None,
        text(call.get("id")) or None,
        command=(text(arguments.get("command")) or None) if name in SHELLS else None,
        paths=(path,) if path else (),
        tool_input=call.get("input"),
        edits=edits_of(arguments) if name in EDITING_TOOLS else (),
    )
    return PiDialog(
        request=request,
        accept=_answer("allow"),
        accept_always=_answer("always"),
        decline=lambda reason: _answer("deny", reason),
        grants=_grants,
    )


def _action_of(name: str) -> str:
    server_and_tool = split_mcp_name(name)
    if server_and_tool is not None:
        return f"Use {server_and_tool[1]} of the MCP server {server_and_tool[0]}"
    return _ACTIONS.get(name, f"Use {name or 'a tool'}")


def _risk_of(name: str, arguments: Mapping[str, Any]) -> Risk:
    return risk_of_command(text(arguments.get("command"))) if name in SHELLS else "medium"


def _answer(decision: str, reason: str | None = None) -> Mapping[str, Any]:
    return {"value": as_json({"decision": decision, **({"reason": reason} if reason else {})})}


def _grants(response: Mapping[str, Any]) -> bool:
    answer = load_object(text(response.get("value")).encode("utf-8", "replace")) or {}
    return answer.get("decision") in ("allow", "always")
