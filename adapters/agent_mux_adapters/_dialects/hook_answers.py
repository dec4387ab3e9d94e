"""Answers to hooks as Claude Code introduced them, and Codex understands some of: `hookSpecificOutput`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.hooks.call import HookCall, HookDecision
from agent_mux.hooks.native import HookAnswer
from agent_mux_adapters._dialects.hooks import as_json, is_pressed_on, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuirks:
    """What an agent does not understand."""

    asks: bool = True
    """`ask` makes it ask; otherwise it is no opinion."""
    bare_allow: bool = True
    """`allow` may stand alone; otherwise only with another input, and then it must."""
    modified_permission: bool = True
    """An approval may change the input."""


def answer(call: HookCall, decision: HookDecision, event: str, quirks: AnswerQuirks) -> HookAnswer:
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
            plain = {} if is_pressed_on(call) else _block(decision)
        case _:
            plain = {}
    return as_json(plain)


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
            said["permissionDecisionReason"] = reason_of(decision)
    if decision.context:
        said["additionalContext"] = decision.context
    return {"hookSpecificOutput": {"hookEventName": event, **said}} if said else {}


def _about_permission(decision: HookDecision, event: str, quirks: AnswerQuirks) -> Mapping[str, Any]:
    if decision.behavior == "deny":
        said: dict[str, Any] = {"behavior": "deny", "message": reason_of(decision)}
    elif decision.behavior == "allow" and (decision.modified_input is None or quirks.modified_permission):
        modified = {} if decision.modified_input is None else {"updatedInput": dict(decision.modified_input)}
        said = {"behavior": "allow", **modified}
    else:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "decision": said}}


def _block(decision: HookDecision) -> Mapping[str, Any]:
    return {"decision": "block", "reason": reason_of(decision)} if decision.behavior == "deny" else {}


def _told(decision: HookDecision, event: str) -> Mapping[str, Any]:
    if not decision.context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.context}}
