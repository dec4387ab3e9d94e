"""The events of Claude Code for which it calls hooks, by our hook types."""

from collections.abc import Mapping

from agent_mux.sdk.hook_types import HookType

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("SessionStart",),
    "session_end": ("SessionEnd",),
    "prompt_submit": ("UserPromptSubmit",),
    "pre_tool_use": ("PreToolUse",),
    "post_tool_use": ("PostToolUse", "PostToolUseFailure"),
    "permission_request": ("PermissionRequest",),
    "notification": ("Notification",),
    "stop": ("Stop",),
    "subagent_start": ("SubagentStart",),
    "subagent_stop": ("SubagentStop",),
    "pre_compact": ("PreCompact",),
}
