"""Hooks as several agents have them: how they stand in files, and what is read of a call.

Two shapes of files: a list of groups, each with a list of commands, and a plain list of commands.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

HOOK_TIMEOUT = 300
"""Seconds that an agent shall wait for us: time for several handlers of half a minute. What takes longer is let through
by most agents."""
PATH_FIELDS = ("file_path", "path", "notebook_path", "absolute_path", "dir_path", "directory", "filePath")
"""Under which tools name the file or the folder that they are about."""


def patch_paths(patch: str) -> tuple[str, ...]:
    """The files that a patch of the `*** Begin Patch` form is about."""
    heads = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    found = (line.removeprefix(head) for line in patch.splitlines() for head in heads if line.startswith(head))
    return tuple(path.strip() for path in found)


def input_paths(given: Mapping[str, Any], fields: Iterable[str] = PATH_FIELDS) -> tuple[str, ...]:
    """The files that the input of a tool names."""
    return tuple(dict.fromkeys(path for name in fields if (path := text(given.get(name)))))


def hook_call(hook_type: HookType, said: Mapping[str, Any], **fields: Any) -> HookCall:
    """What most agents say alike. `fields`: what they say otherwise; empty texts are nothing."""
    found: dict[str, Any] = {
        "session_id": text(said.get("session_id")),
        "cwd": text(said.get("cwd")),
        "prompt": text(said.get("prompt")),
        "tool_call_id": text(said.get("tool_use_id")),
        "tool_name": text(said.get("tool_name")),
        **fields,
    }
    given: dict[str, Any] = {name: value if value != "" else None for name, value in found.items()}
    return HookCall(hook_type=hook_type, raw=said, **given)


def first_text(said: Mapping[str, Any], *names: str) -> str:
    """The first of these that says something."""
    return next((found for name in names if (found := text(said.get(name)))), "")


def stdout_answer(plain: Mapping[str, Any]) -> HookAnswer:
    """An answer on standard output; nothing where there is nothing to say."""
    return HookAnswer(stdout=json.dumps(plain) + "\n") if plain else HookAnswer()


def is_stop_hook_active(call: HookCall) -> bool:
    """The agent goes on already because a hook has kept it from stopping: once is enough."""
    return call.raw.get("stop_hook_active") is True


def denial_reason(decision: HookDecision) -> str:
    """Why not: agents want to hear something."""
    return decision.reason or "denied by a hook of agent-mux"


# -- a list of groups: [{"hooks": [{"type": "command", "command": ...}]}]


def append_group(timeout: int) -> Callable[[Any, str, str], Any]:
    """How a command is added: a group of its own, behind the others. `timeout` in the agent's unit."""

    def add(there: Any, name: str, command: str) -> Any:  # noqa: ARG001
        group = {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}
        return [*(there if isinstance(there, list) else []), group]

    return add


def remove_from_groups(there: Any, is_ours: Callable[[str], bool]) -> Any:
    """Groups that are empty then are left out."""
    kept = []
    for group in there if isinstance(there, list) else []:
        hooks = mapping(group).get("hooks")
        if not isinstance(hooks, list) or not any(is_ours(_command(hook)) for hook in hooks):
            kept.append(group)
            continue
        rest = [hook for hook in hooks if not is_ours(_command(hook))]
        if rest:
            kept.append({**group, "hooks": rest})
    return kept or None


def commands_in_groups(there: Any) -> tuple[str, ...]:
    """The command lines of all groups."""
    return tuple(_command(hook) for group in rows(there) for hook in rows(group.get("hooks")))


# -- a plain list: [{"command": ...}]


def append_entry(make: Callable[[str], Mapping[str, Any]]) -> Callable[[Any, str, str], Any]:
    """How a command is added: `make` says what stands for it."""

    def add(there: Any, name: str, command: str) -> Any:  # noqa: ARG001
        return [*(there if isinstance(there, list) else []), dict(make(command))]

    return add


def remove_from_list(there: Any, is_ours: Callable[[str], bool]) -> Any:
    """What is not ours stays as it is."""
    return [hook for hook in there if not is_ours(_command(hook))] or None if isinstance(there, list) else there


def commands_in_list(there: Any) -> tuple[str, ...]:
    """The command lines of the list."""
    return tuple(_command(hook) for hook in rows(there))


def _command(hook: Any) -> str:
    return first_text(mapping(hook), "command", "bash")


# TODO Answers to hooks as Claude Code introduced them, and Codex understands some of: `hookSpecificOutput`.


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuirks:
    """What an agent does not understand."""

    asks: bool = True
    """`ask` makes it ask; otherwise it is no opinion."""
    bare_allow: bool = True
    """`allow` may stand alone; otherwise only with another input, and then it must."""
    modified_permission: bool = True
    """An approval may change the input."""


def hook_answer(call: HookCall, decision: HookDecision, event: str, quirks: AnswerQuirks) -> HookAnswer:
    """The answer. `event`: what the agent calls what happened."""
    match call.hook_type:
        case "pre_tool_use":
            plain = _about_tool(decision, event, quirks)
        case "permission_request":
            plain = _about_permission(decision, event, quirks)
        case "prompt_submit" | "post_tool_use":
            plain = {**_block(decision), **_told(decision, event)}
        case "session_start" | "subagent_start":
            plain = _told(decision, event)
        case "stop" | "subagent_stop":
            plain = {} if is_stop_hook_active(call) else _block(decision)
        case _:
            plain = {}
    return stdout_answer(plain)


def _about_tool(decision: HookDecision, event: str, quirks: AnswerQuirks) -> Mapping[str, Any]:
    said: dict[str, Any] = {}
    behavior = decision.behavior
    if decision.modified_input is not None and behavior != "deny":
        said["updatedInput"] = dict(decision.modified_input)
        behavior = behavior if quirks.bare_allow else "allow"
    elif (behavior == "allow" and not quirks.bare_allow) or (behavior == "ask" and not quirks.asks):
        behavior = None
    if behavior is not None:
        said["permissionDecision"] = behavior
        if behavior == "deny" or decision.reason:
            said["permissionDecisionReason"] = denial_reason(decision)
    if decision.context:
        said["additionalContext"] = decision.context
    return {"hookSpecificOutput": {"hookEventName": event, **said}} if said else {}


def _about_permission(decision: HookDecision, event: str, quirks: AnswerQuirks) -> Mapping[str, Any]:
    if decision.behavior == "deny":
        said: dict[str, Any] = {"behavior": "deny", "message": denial_reason(decision)}
    elif decision.behavior == "allow" and (decision.modified_input is None or quirks.modified_permission):
        modified = {} if decision.modified_input is None else {"updatedInput": dict(decision.modified_input)}
        said = {"behavior": "allow", **modified}
    else:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "decision": said}}


def _block(decision: HookDecision) -> Mapping[str, Any]:
    return {"decision": "block", "reason": denial_reason(decision)} if decision.behavior == "deny" else {}


def _told(decision: HookDecision, event: str) -> Mapping[str, Any]:
    if not decision.context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.context}}
