"""Hooks of Codex: `hooks.json` beside its configuration. Codex calls only trusted hooks (see `/hooks` in Codex)."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.hooks import AnswerQuirks, hook_answer
from agent_mux_adapters._dialects.tolerant import mapping, text

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("SessionStart",),
    "session_end": ("SessionEnd",),
    "prompt_submit": ("UserPromptSubmit",),
    "pre_tool_use": ("PreToolUse",),
    "post_tool_use": ("PostToolUse",),
    "permission_request": ("PermissionRequest",),
    "stop": ("Stop",),
    "subagent_start": ("SubagentStart",),
    "subagent_stop": ("SubagentStop",),
    "pre_compact": ("PreCompact",),
}
PATCH_TOOL = "apply_patch"
QUIRKS = AnswerQuirks(asks=False, bare_allow=False, modified_permission=False)


def read_call(hook_type: HookType, payload: Mapping[str, Any]) -> HookCall:
    """Convert the input of a Codex hook. The `command` of a patch tool is the patch itself."""
    tool_input = payload.get("tool_input")
    command = text(mapping(tool_input).get("command"))
    is_patch = text(payload.get("tool_name")) == PATCH_TOOL
    return hooks.hook_call(
        hook_type,
        payload,
        agent="codex",
        tool_input=tool_input if isinstance(tool_input, dict) else None,
        command="" if is_patch else command,
        paths=hooks.patch_paths(command) if is_patch else hooks.input_paths(mapping(tool_input)),
        tool_output=payload.get("tool_response"),
        message=hooks.first_text(payload, "last_assistant_message", "source", "reason", "trigger"),
    )


def render_decision(call: HookCall, decision: HookDecision) -> HookResponse:
    """Render a decision as the output that Codex expects of a hook."""
    return hook_answer(call, decision, TYPES[call.hook_type][0], QUIRKS)


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="json",
            path=lambda place: place.home_of("CODEX_HOME", ".codex") / "hooks.json",
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".codex", "hooks.json"),
            table=lambda _: ("hooks",),
        ),
    ),
    types=TYPES,
    decides=frozenset(
        {"prompt_submit", "pre_tool_use", "post_tool_use", "permission_request", "stop", "subagent_stop"}
    ),
    place=lambda name: (name,),
    add=hooks.append_group(hooks.HOOK_TIMEOUT),
    remove=hooks.remove_from_groups,
    commands=hooks.commands_in_groups,
    read=read_call,
    answer=render_decision,
    consent="Codex calls new hooks once you have trusted them: run /hooks in codex",
)
