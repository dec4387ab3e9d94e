"""What is said of a tool call that needs permission: enough to decide about it, whole."""

from collections.abc import Mapping
from typing import Any

from agent_loop.hooks.contexts import ToolGate
from agent_loop.tools.tool import ToolKind, kind_of, label_of, risk_of, shell_command_of
from agent_mux import facts
from agent_mux.plain_json import to_json
from agent_mux.risk import risk_of_command

_ACTIONS: Mapping[ToolKind, str] = {
    "read": "read",
    "edit": "change files",
    "execute": "run a command",
    "fetch": "reach the network",
    "ask": "ask a question",
    "other": "use a tool",
}
_PATHS = ("path", "file_path", "paths")
_TELLING = ("url", *_PATHS[:2])
"""An argument that says what the call is about, where there is one alone."""


def approval_of(context: ToolGate, request_id: str, call_id: str, command: str | None) -> facts.ApprovalAsked:
    """The question."""
    kind: ToolKind = kind_of(context.tool) if context.tool is not None else "other"
    risk: facts.Risk = "medium"
    if command is not None:
        risk = risk_of_command(command)
    elif context.tool is not None:
        risk = risk_of(context.tool)
    name = label_of(context.tool) if context.tool is not None else context.name
    return facts.ApprovalAsked(
        request_id,
        f"{_ACTIONS[kind]} ({name})",
        command if command is not None else _detail(context.arguments),
        risk,
        context.name,
        call_id,
        command,
        _paths_in(context.arguments),
    )


def likeness_of(context: ToolGate) -> tuple[str, str]:
    """What "always" allows: this command line again, or this tool with whatever arguments where it runs none."""
    command = shell_command_of(context.tool, context.arguments) if context.tool is not None else None
    return context.name, command or ""


def _detail(arguments: Mapping[str, Any]) -> str:
    if len(arguments) == 1:
        (name, value), *_ = arguments.items()
        if name in _TELLING and isinstance(value, str):
            return value
    return to_json(dict(arguments))


def _paths_in(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for name in _PATHS:
        value = arguments.get(name)
        found += [value] if isinstance(value, str) else []
        found += [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    return tuple(found)
