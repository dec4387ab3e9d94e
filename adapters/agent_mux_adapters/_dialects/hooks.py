"""Native hooks: entries in configuration files, hook calls, and answers.

Two layouts of files are supported: a list of groups, each with a list of commands, and a plain list of commands.
Answers follow the format of Claude Code (`hookSpecificOutput`), of which Codex supports a part.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

HOOK_TIMEOUT = 300
"""Timeout in seconds that we register: enough for several handlers of half a minute each. Most agents allow the action
when a hook exceeds its timeout."""
PATH_FIELDS = ("file_path", "path", "notebook_path", "absolute_path", "dir_path", "directory", "filePath")
"""Input fields under which tools name the file or directory they work on."""


def patch_paths(patch: str) -> tuple[str, ...]:
    """Return the paths in the file headers of a `*** Begin Patch` patch."""
    heads = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    found = (line.removeprefix(head) for line in patch.splitlines() for head in heads if line.startswith(head))
    return tuple(path.strip() for path in found)


def input_paths(arguments: Mapping[str, Any], fields: Iterable[str] = PATH_FIELDS) -> tuple[str, ...]:
    """Return the paths in these fields of a tool's input, without duplicates."""
    return tuple(dict.fromkeys(path for name in fields if (path := text(arguments.get(name)))))


def hook_call(hook_type: HookType, native: Mapping[str, Any], **fields: Any) -> HookCall:
    """Build a `HookCall` from the fields that most agents share.

    `fields` overrides or adds values; an empty string becomes None.
    """
    found: dict[str, Any] = {
        "session_id": text(native.get("session_id")),
        "cwd": text(native.get("cwd")),
        "prompt": text(native.get("prompt")),
        "tool_call_id": text(native.get("tool_use_id")),
        "tool_name": text(native.get("tool_name")),
        **fields,
    }
    values: dict[str, Any] = {name: value if value != "" else None for name, value in found.items()}
    return HookCall(hook_type=hook_type, raw=native, **values)


def first_text(native: Mapping[str, Any], *names: str) -> str:
    """Return the first non-empty string among these fields, or an empty string."""
    return next((found for name in names if (found := text(native.get(name)))), "")


def stdout_answer(plain: Mapping[str, Any]) -> HookResponse:
    """Return the answer as one JSON line on standard output; an empty answer when there are no fields."""
    return HookResponse(stdout=json.dumps(plain) + "\n") if plain else HookResponse()


def is_stop_hook_active(call: HookCall) -> bool:
    """Return whether a hook already kept this agent from stopping; it must not be kept twice."""
    return call.raw.get("stop_hook_active") is True


def denial_reason(decision: HookDecision) -> str:
    """Return the reason of a denial, with a default text because some agents require one."""
    return decision.reason or "denied by a hook of agent-mux"


# -- a list of groups: [{"hooks": [{"type": "command", "command": ...}]}]


def append_group(timeout: int) -> Callable[[Any, str, str], Any]:
    """Return a function that appends our command in a group of its own.

    `timeout` is in the agent's unit (seconds or milliseconds).
    """

    def add(current: Any, name: str, command: str) -> Any:  # noqa: ARG001
        group = {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}
        return [*(current if isinstance(current, list) else []), group]

    return add


def remove_from_groups(current: Any, is_ours: Callable[[str], bool]) -> Any:
    """Return the groups without our commands, and without groups that become empty; None when nothing remains."""
    kept = []
    for group in current if isinstance(current, list) else []:
        hooks = mapping(group).get("hooks")
        if not isinstance(hooks, list) or not any(is_ours(_command(hook)) for hook in hooks):
            kept.append(group)
            continue
        rest = [hook for hook in hooks if not is_ours(_command(hook))]
        if rest:
            kept.append({**group, "hooks": rest})
    return kept or None


def commands_in_groups(current: Any) -> tuple[str, ...]:
    """Return the command lines of all groups."""
    return tuple(_command(hook) for group in rows(current) for hook in rows(group.get("hooks")))


# -- a plain list: [{"command": ...}]


def append_entry(make: Callable[[str], Mapping[str, Any]]) -> Callable[[Any, str, str], Any]:
    """Return a function that appends the entry that `make` builds for a command."""

    def add(current: Any, name: str, command: str) -> Any:  # noqa: ARG001
        return [*(current if isinstance(current, list) else []), dict(make(command))]

    return add


def remove_from_list(current: Any, is_ours: Callable[[str], bool]) -> Any:
    """Return the list without our commands; None when nothing remains.

    A value of another type is returned unchanged.
    """
    return [hook for hook in current if not is_ours(_command(hook))] or None if isinstance(current, list) else current


def commands_in_list(current: Any) -> tuple[str, ...]:
    """Return the command lines of the list."""
    return tuple(_command(hook) for hook in rows(current))


def _command(hook: Any) -> str:
    return first_text(mapping(hook), "command", "bash")


# -- answers with `hookSpecificOutput`


class AnswerQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the answer format that an agent lacks."""

    asks: bool = True
    """Whether `ask` is supported; if not, it is left out."""
    bare_allow: bool = True
    """Whether `allow` may be returned without a modified input. If not, it is returned only together with one."""
    modified_permission: bool = True
    """Whether an approval may modify the input."""


def hook_answer(call: HookCall, decision: HookDecision, event: str, quirks: AnswerQuirks) -> HookResponse:
    """Return the answer to a hook call. `event` is the agent's own name of the event."""
    match call.hook_type:
        case "pre_tool_use":
            plain = _tool_decision(decision, event, quirks)
        case "permission_request":
            plain = _permission_decision(decision, event, quirks)
        case "prompt_submit" | "post_tool_use":
            plain = {**_block(decision), **_context(decision, event)}
        case "session_start" | "subagent_start":
            plain = _context(decision, event)
        case "stop" | "subagent_stop":
            plain = {} if is_stop_hook_active(call) else _block(decision)
        case _:
            plain = {}
    return stdout_answer(plain)


def _tool_decision(decision: HookDecision, event: str, quirks: AnswerQuirks) -> Mapping[str, Any]:
    output: dict[str, Any] = {}
    behavior = decision.behavior
    if decision.modified_input is not None and behavior != "deny":
        output["updatedInput"] = dict(decision.modified_input)
        behavior = behavior if quirks.bare_allow else "allow"
    elif (behavior == "allow" and not quirks.bare_allow) or (behavior == "ask" and not quirks.asks):
        behavior = None
    if behavior is not None:
        output["permissionDecision"] = behavior
        if behavior == "deny" or decision.reason:
            output["permissionDecisionReason"] = denial_reason(decision)
    if decision.context:
        output["additionalContext"] = decision.context
    return {"hookSpecificOutput": {"hookEventName": event, **output}} if output else {}


def _permission_decision(decision: HookDecision, event: str, quirks: AnswerQuirks) -> Mapping[str, Any]:
    if decision.behavior == "deny":
        output: dict[str, Any] = {"behavior": "deny", "message": denial_reason(decision)}
    elif decision.behavior == "allow" and (decision.modified_input is None or quirks.modified_permission):
        modified = {} if decision.modified_input is None else {"updatedInput": dict(decision.modified_input)}
        output = {"behavior": "allow", **modified}
    else:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "decision": output}}


def _block(decision: HookDecision) -> Mapping[str, Any]:
    return {"decision": "block", "reason": denial_reason(decision)} if decision.behavior == "deny" else {}


def _context(decision: HookDecision, event: str) -> Mapping[str, Any]:
    if not decision.context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.context}}
