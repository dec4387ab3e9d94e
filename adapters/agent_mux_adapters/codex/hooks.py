"""Codex's hooks: `hooks.json` beside its configuration. It calls those alone that a person has trusted (`/hooks`)."""

from collections.abc import Mapping
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer, NativeHooks
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
PATCH = "apply_patch"
QUIRKS = AnswerQuirks(asks=False, bare_allow=False, modified_permission=False)


def read(hook_type: HookType, said: Mapping[str, Any]) -> HookCall:
    """What Codex tells a hook. The `command` of a patch is the patch."""
    given = said.get("tool_input")
    command = text(mapping(given).get("command"))
    is_patch = text(said.get("tool_name")) == PATCH
    return hooks.hook_call(
        hook_type,
        said,
        agent="codex",
        tool_input=given if isinstance(given, dict) else None,
        command="" if is_patch else command,
        paths=hooks.patch_paths(command) if is_patch else hooks.input_paths(mapping(given)),
        tool_output=said.get("tool_response"),
        message=hooks.first_text(said, "last_assistant_message", "source", "reason", "trigger"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookAnswer:
    """A decision, for Codex."""
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
    read=read,
    answer=reply,
    consent="Codex calls new hooks when you have trusted them: say /hooks in codex",
)
