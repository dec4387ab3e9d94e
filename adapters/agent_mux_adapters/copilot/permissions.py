"""Approvals: `permission.requested` as a person sees it, and what each decision is called."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.facts import ApprovalAsked, Risk
from agent_mux.risk import risk_of_command
from agent_mux_adapters._dialects.tolerant import as_json, mapping, rows, text

_HARMLESS = frozenset({"memory", "read"})

APPROVE: Mapping[str, Any] = {"kind": "approve-once"}


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """What Copilot asks permission for."""

    asked: ApprovalAsked
    always: Mapping[str, Any]
    """The decision that also allows the like for the rest of the session."""


def reject(reason: str | None) -> Mapping[str, Any]:
    """The decision that refuses."""
    return {"kind": "reject", "feedback": reason} if reason else {"kind": "reject"}


def waiting_call(data: Mapping[str, Any]) -> str:
    """The call that a `permission.requested` is about; empty when there is none."""
    return text(mapping(data.get("permissionRequest")).get("toolCallId"))


def is_granted(kind: str) -> bool:
    """A decision, or the `result.kind` of `permission.completed`, says yes."""
    return kind.startswith("approve")


def permission_of(request_id: str, data: Mapping[str, Any], tool: str, *, is_inside: bool) -> Permission:
    """`permission.requested`. What a client shows is in `promptRequest`; its kind may differ from the request's.

    `tool`: the name of the tool that waits, if it was told.
    """
    wanted, shown = mapping(data.get("permissionRequest")), mapping(data.get("promptRequest"))
    kind = text(shown.get("kind")) or text(wanted.get("kind"))
    describe = _KINDS.get(kind, _other)
    action, detail, approval = describe(wanted, shown)
    # A call inside a sub-agent is not a call of the main stream: nothing there waits for it.
    call_id = None if is_inside else text(wanted.get("toolCallId")) or None
    name = tool or text(wanted.get("toolName")) or kind or None
    command = text(wanted.get("fullCommandText")) or None
    risk, paths = _risk_of(kind, wanted), _paths_of(wanted, shown)
    asked = ApprovalAsked(request_id, action, detail, risk, name, call_id, command, paths)
    return Permission(asked=asked, always={"kind": "approve-for-session", **approval})


def _paths_of(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> tuple[str, ...]:
    named = [wanted.get("fileName"), wanted.get("path")]
    for lists in (shown.get("paths"), wanted.get("possiblePaths")):
        named += lists if isinstance(lists, list) else []
    return tuple(dict.fromkeys(path for path in named if isinstance(path, str) and path))


_Described = tuple[str, str, dict[str, Any]]
"""The action, its detail, and what approving it for the session covers."""


def _command(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Described:
    found = shown.get("commandIdentifiers")
    identifiers = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    approval = {"kind": "commands", "commandIdentifiers": identifiers}
    return "Run a shell command", text(wanted.get("fullCommandText")), {"approval": approval}


def _write(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Described:
    name, diff = text(wanted.get("fileName")), text(wanted.get("diff")).strip("\n")
    return "Change a file", f"{name}\n{diff}" if diff else name, {"approval": {"kind": "write"}}


def _read(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Described:
    return "Read a file", text(wanted.get("path")), {"approval": {"kind": "read"}}


def _paths(_: Mapping[str, Any], shown: Mapping[str, Any]) -> _Described:
    paths = shown.get("paths")
    listed = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return f"Use paths outside of the project ({text(shown.get('accessKind')) or 'access'})", "\n".join(listed), {}


def _mcp(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Described:
    server, tool = text(wanted.get("serverName")), text(shown.get("toolName")) or text(wanted.get("toolName"))
    approval = {"kind": "mcp", "serverName": server, "toolName": tool}
    return f"Use {tool} of the MCP server {server}", as_json(wanted.get("args")), {"approval": approval}


def _url(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Described:
    return "Fetch a web page", text(wanted.get("url")), {}


def _memory(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Described:
    return "Remember something", text(wanted.get("fact")) or as_json(wanted), {"approval": {"kind": "memory"}}


def _custom_tool(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Described:
    name = text(wanted.get("toolName"))
    return f"Use {name}", as_json(wanted.get("args")), {"approval": {"kind": "custom-tool", "toolName": name}}


def _other(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Described:
    return text(wanted.get("kind")) or "Do something", as_json(shown or wanted), {}


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], _Described]] = {
    "commands": _command,
    "custom-tool": _custom_tool,
    "mcp": _mcp,
    "memory": _memory,
    "path": _paths,
    "read": _read,
    "shell": _command,
    "url": _url,
    "write": _write,
}


def _risk_of(kind: str, wanted: Mapping[str, Any]) -> Risk:
    commands = rows(wanted.get("commands"))
    command = text(wanted.get("fullCommandText"))
    if kind == "url" or wanted.get("possibleUrls") or risk_of_command(command) == "high":
        return "high"
    reads = bool(commands) and all(command.get("readOnly") is True for command in commands)
    return "low" if kind in _HARMLESS or reads or wanted.get("readOnly") is True else "medium"
