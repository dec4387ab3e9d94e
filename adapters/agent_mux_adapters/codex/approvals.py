"""Approvals: of commands, patches, more rights, MCP tools and links."""

from typing import Any

import msgspec

from agent_mux.facts import ApprovalAsked, Risk
from agent_mux.risk import risk_of_command
from agent_mux_adapters.codex.calls import PATCH_TOOL, SHELL_TOOL, Command, FileChanges, McpCall
from agent_mux_adapters.codex.forms import mcp_form
from agent_mux_adapters.codex.questions import Question
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.wire import as_text, read

_READING = frozenset({"read", "listFiles", "search"})


class _Action(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _Approval(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    item_id: str
    command: str | None = None
    reason: str | None = None
    command_actions: list[_Action] | None = None
    network_approval_context: dict[str, Any] | None = None
    additional_permissions: Any = None


def command_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`item/commandExecution/requestApproval`."""
    asked = read(_Approval, params)
    if asked is None:
        return None
    call = thread.calls.get(asked.item_id)
    command = asked.command or (call.command if isinstance(call, Command) else None)
    detail = command or ""
    if asked.network_approval_context is not None:
        detail = f"{detail}\nnetwork access: {as_text(asked.network_approval_context)}".strip()
    risk = _risk_of(asked, detail)
    shown = ApprovalAsked(key, _because("Run a command", asked.reason), detail, risk, SHELL_TOOL, command=command)
    return _decision(shown, asked.item_id, thread)


def patch_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`item/fileChange/requestApproval`: what is to be changed was told when the item started."""
    asked = read(_Approval, params)
    if asked is None:
        return None
    call = thread.calls.get(asked.item_id)
    diff, paths = (call.diff(thread.cwd), call.paths) if isinstance(call, FileChanges) else ("", ())
    shown = ApprovalAsked(key, _because("Change files", asked.reason), diff, "medium", PATCH_TOOL, paths=paths)
    return _decision(shown, asked.item_id, thread)


class _Permissions(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    permissions: dict[str, Any]
    item_id: str | None = None
    reason: str | None = None


def permission_question(key: str, params: Any, _: Thread) -> Question | None:
    """`item/permissions/requestApproval`: more rights for what follows."""
    asked = read(_Permissions, params)
    if asked is None:
        return None
    wanted = {name: value for name, value in asked.permissions.items() if value is not None}
    detail = as_text(wanted)
    return Question(
        asked=(ApprovalAsked(key, _because("Grant permissions", asked.reason), detail, "high"),),
        item_id=asked.item_id,
        accept={"permissions": wanted, "scope": "turn"},
        accept_always={"permissions": wanted, "scope": "session"},
        decline={"permissions": {}, "scope": "turn"},
    )


class _Elicitation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    server_name: str
    mode: str
    message: str = ""
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


def mcp_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`mcpServer/elicitation/request`: may a tool run, would you open this link, or a form to fill in."""
    asked = read(_Elicitation, params)
    if asked is None:
        return None
    fields = (asked.requested_schema or {}).get("properties")
    if isinstance(fields, dict) and fields:
        return mcp_form(key, asked.message, fields)
    meta = asked.meta or {}
    tool = meta.get("tool_name")
    call = _waiting_call(thread, asked.server_name, tool)
    risk: Risk = "low" if call is not None and call.read_only_hint else "medium"
    arguments = meta.get("tool_params")
    detail = asked.message if arguments is None else f"{asked.message}\n{as_text(arguments)}"
    detail = detail if asked.url is None else f"{detail}\n{asked.url}"
    action = f"Call a tool of the MCP server {asked.server_name}" if tool else f"A request of {asked.server_name}"
    call_id = None if call is None or thread.is_inside else call.id
    name = tool if isinstance(tool, str) else None
    lasting = meta.get("persist")
    forever = {"_meta": {"persist": "session"}} if isinstance(lasting, list) and "session" in lasting else {}
    return Question(
        asked=(ApprovalAsked(key, action, detail, risk, name, call_id),),
        item_id=None if call is None else call.id,
        accept={"action": "accept", "content": {}},
        accept_always={"action": "accept", "content": {}, **forever},
        decline={"action": "decline", "content": None},
    )


def _decision(shown: ApprovalAsked, item_id: str, thread: Thread) -> Question:
    # A call inside a sub-agent is not a call of the main stream: nothing there waits for it.
    asked = shown if thread.is_inside else msgspec.structs.replace(shown, call_id=item_id)
    return Question(
        asked=(asked,),
        item_id=item_id,
        accept={"decision": "accept"},
        accept_always={"decision": "acceptForSession"},
        decline={"decision": "decline"},
    )


def _because(action: str, reason: str | None) -> str:
    return f"{action}: {reason}" if reason else action


def _risk_of(asked: _Approval, command: str) -> Risk:
    """Codex asks for more rights, or because it trusts nothing; then reading is harmless."""
    if asked.reason or asked.network_approval_context is not None or asked.additional_permissions is not None:
        return "high"
    actions = asked.command_actions
    reads = actions and all(action.type in _READING for action in actions)
    return "low" if reads else risk_of_command(command)


def _waiting_call(thread: Thread, server: str, tool: Any) -> McpCall | None:
    calls = [call for call in thread.calls.values() if isinstance(call, McpCall) and call.server == server]
    return next((call for call in reversed(calls) if tool is None or call.tool == tool), None)
