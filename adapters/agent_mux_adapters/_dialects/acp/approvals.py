"""Requests for permission: how they are shown, and which of the offered options is which reply."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_mux.facts import ApprovalAsked, Risk
from agent_mux.risk import risk_of_command
from agent_mux_adapters._dialects.acp.calls import Call
from agent_mux_adapters._dialects.acp.reader import ToolReader
from agent_mux_adapters._dialects.acp.wire import text_of
from agent_mux_adapters._dialects.tolerant import as_json, mapping, rows, text
from agent_mux_adapters._dialects.unified import from_texts

CANCELLED = {"outcome": {"outcome": "cancelled"}}
_ACTIONS: dict[str, tuple[str, Risk]] = {
    "read": ("Read", "low"),
    "search": ("Search", "low"),
    "think": ("Think", "low"),
    "edit": ("Change files", "medium"),
    "move": ("Move files", "medium"),
    "delete": ("Delete files", "high"),
    "execute": ("Run a command", "medium"),
    "fetch": ("Fetch from the network", "high"),
    "switch_mode": ("Switch the mode", "medium"),
}
_PATHS = ("path", "file_path", "filePath", "filepath", "absolute_path", "dir_path", "notebook_path")
_YES = ("allow_once", "allow_always")
_ALWAYS = ("allow_always", "allow_once")
_NO = ("reject_once", "reject_always")
Options = Sequence[Mapping[str, Any]]
"""Each with its `optionId`, `name` and `kind`."""


def approval_asked(key: str, call: Call, tools: ToolReader, *, call_id: str | None) -> ApprovalAsked:
    """The permission as a person sees it. `call_id`: of the call that waits, if it was told."""
    action, risk = _ACTIONS.get(call.kind, (call.title or "Use a tool", "medium"))
    command = _command(call, tools)
    if command is not None:
        risk = risk_of_command(command)
    name = call.name or tools.name(call)
    return ApprovalAsked(key, action, _detail(call, tools), risk, name, call_id, command, _paths(call, tools))


def _command(call: Call, tools: ToolReader) -> str | None:
    """What it runs, in the background too."""
    shell = tools.shell(call)
    if shell is not None:
        return shell.command
    return (text(mapping(call.raw_input).get("command")) or None) if call.kind == "execute" else None


def _paths(call: Call, tools: ToolReader) -> tuple[str, ...]:
    """The files that it is about: its locations, and what it shows changes of; of a tool that names one, that too."""
    named = mapping(call.raw_input)
    said = [text(named.get(key)) for key in _PATHS] if _command(call, tools) is None else []
    return tuple(dict.fromkeys(path for path in (*call.paths, *(diff.path for diff in call.diffs), *said) if path))


def _detail(call: Call, tools: ToolReader) -> str:
    """What a person has to see to decide."""
    shell = tools.shell(call)
    if shell is not None:
        return shell.command
    diffs = "\n".join(from_texts(diff.path, diff.old or "", diff.new) for diff in call.diffs)
    asked = mapping(call.asked)
    shown = text_of([item for item in rows(asked.get("content")) if item.get("type") == "content"])
    given = asked.get("rawInput") if asked.get("rawInput") is not None else call.raw_input
    parts = [text(asked.get("title")) or call.title, diffs or shown or ("" if given in (None, {}) else as_json(given))]
    return "\n".join(part for part in parts if part)


def allowing(options: Options, *, always: bool) -> dict[str, Any] | None:
    """The reply that allows; None when none of the options does."""
    option = _option(options, _ALWAYS if always else _YES) or _option_of_no_kind(options)
    return None if option is None else selected(option)


def refusing(options: Options) -> dict[str, Any]:
    """The reply that refuses: if there is no option for that, nobody decided."""
    option = _option(options, _NO)
    return CANCELLED if option is None else selected(option)


def selected(option_id: str) -> dict[str, Any]:
    """The reply that chooses this option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def grants(options: Options, result: Mapping[str, Any]) -> bool:
    """Somebody's reply allows."""
    outcome = mapping(result.get("outcome"))
    if outcome.get("outcome") != "selected":
        return False
    chosen = [text(option.get("kind")) for option in options if option.get("optionId") == outcome.get("optionId")]
    return bool(chosen) and chosen[0] not in _NO


def _option(options: Options, kinds: tuple[str, ...]) -> str | None:
    """The option of the first of these kinds that is offered."""
    found = [text(option.get("optionId")) for kind in kinds for option in options if option.get("kind") == kind]
    return found[0] if found else None


def _option_of_no_kind(options: Options) -> str | None:
    return next((text(option.get("optionId")) for option in options if option.get("kind") not in _NO), None)
