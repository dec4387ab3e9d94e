"""The types of hooks. Separate from calls and decisions (`hooks`), because a run without hooks imports only this."""

from typing import Literal, get_args

HookType = Literal[
    "session_start",
    "session_end",
    "prompt_submit",
    "pre_tool_use",
    "post_tool_use",
    "permission_request",
    "notification",
    "stop",
    "subagent_start",
    "subagent_stop",
    "pre_compact",
]
HOOK_TYPES: tuple[HookType, ...] = get_args(HookType)
GUARDED_HOOK_TYPES: frozenset[HookType] = frozenset({"pre_tool_use", "permission_request"})
"""Hook types that precede an action. If a policy handler fails in one of these, the action is denied."""
