"""Hook calls and decisions as JSON, as handler programs and scripts read and write them.

Keys are in camelCase; empty and unknown values are omitted.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.hooks import HookCall, HookDecision

_CALL = {
    "agent": "agent",
    "hook_type": "hookType",
    "session_id": "sessionId",
    "cwd": "cwd",
    "prompt": "prompt",
    "tool_call_id": "toolCallId",
    "tool_name": "toolName",
    "tool_input": "toolInput",
    "command": "command",
    "paths": "paths",
    "diff": "diff",
    "tool_output": "toolOutput",
    "message": "message",
    "raw": "raw",
}
_DECISION = {"behavior": "behavior", "reason": "reason", "modifiedInput": "modified_input", "context": "context"}
_BEHAVIORS = ("allow", "deny", "ask")


def call_to_plain(call: HookCall) -> dict[str, Any]:
    """Convert a call to JSON values."""
    found = {wire: getattr(call, name) for name, wire in _CALL.items()}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
    return {name: value for name, value in plain.items() if value not in (None, [], {})}


def call_to_json(call: HookCall) -> str:
    """Encode a call as one line of JSON."""
    return json.dumps(call_to_plain(call), default=str)


def call_from_plain(plain: Mapping[str, Any]) -> HookCall:
    """Convert the result of `call_to_plain` to a call."""
    fields = {name: plain[wire] for name, wire in _CALL.items() if wire in plain}
    if "paths" in fields:
        fields["paths"] = tuple(fields["paths"])
    return HookCall(**fields)


def decision_to_plain(decision: HookDecision) -> dict[str, Any]:
    """Convert a decision to JSON values."""
    found = {wire: getattr(decision, name) for wire, name in _DECISION.items()}
    return {name: value for name, value in found.items() if value is not None}


def decision_from_plain(plain: Any) -> HookDecision:
    """Validate and convert the decision of a handler. Raises `ValueError` with a clause that describes the error."""
    if plain is None:
        return HookDecision()
    if not isinstance(plain, Mapping):
        raise ValueError("the decision is not an object")  # noqa: TRY004  # one error type for all invalid decisions
    unknown = [str(name) for name in plain if name not in _DECISION]
    if unknown:
        raise ValueError(f"the decision has an unknown field {unknown[0]!r}; allowed: {', '.join(_DECISION)}")
    if plain.get("behavior") not in (None, *_BEHAVIORS):
        raise ValueError(f"unknown behavior {plain['behavior']!r}; allowed: {', '.join(_BEHAVIORS)}")
    for name in ("reason", "context"):
        if not isinstance(plain.get(name), str | None):
            raise ValueError(f"{name} is not a string")  # noqa: TRY004
    if not isinstance(plain.get("modifiedInput"), Mapping | None):
        raise ValueError("modifiedInput is not an object")  # noqa: TRY004
    return HookDecision(**{_DECISION[str(name)]: value for name, value in plain.items()})


def decision_from_json(text: str) -> HookDecision:
    """Parse the output of a handler; empty output is not a decision. Raises like `decision_from_plain`."""
    if not text.strip():
        return HookDecision()
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("its output is not JSON") from error
    return decision_from_plain(plain)
