"""Gemini CLI's hooks: `hooks` in its settings. Over ACP (0.61.0) it calls none before and after tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.tolerant import mapping, text

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("SessionStart",),
    "session_end": ("SessionEnd",),
    "prompt_submit": ("BeforeAgent",),
    "pre_tool_use": ("BeforeTool",),
    "post_tool_use": ("AfterTool",),
    "notification": ("Notification",),
    "stop": ("AfterAgent",),
    "pre_compact": ("PreCompress",),
}
SHELL = "run_shell_command"
MILLISECONDS = 1000


def read(hook_type: HookType, said: Mapping[str, Any]) -> HookCall:
    """What Gemini CLI tells a hook."""
    given = said.get("tool_input")
    is_command = text(said.get("tool_name")) == SHELL
    return hooks.hook_call(
        hook_type,
        said,
        agent="gemini",
        tool_input=given if isinstance(given, dict) else None,
        command=text(mapping(given).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(given)),
        tool_output=said.get("tool_response"),
        message=hooks.first_text(said, "prompt_response", "message", "source", "reason", "trigger"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookAnswer:
    """A decision, for Gemini CLI. It cannot be made to ask."""
    plain: dict[str, Any] = {}
    output: dict[str, Any] = {}
    if decision.behavior == "deny" and call.hook_type in HOOKS.decides and not hooks.is_stop_hook_active(call):
        plain = {"decision": "deny", "reason": hooks.denial_reason(decision)}
    elif call.hook_type == "pre_tool_use" and decision.modified_input is not None:
        output["tool_input"] = dict(decision.modified_input)
    if decision.context and call.hook_type in {"session_start", "prompt_submit", "post_tool_use"}:
        output["additionalContext"] = decision.context
    if output:
        plain["hookSpecificOutput"] = {"hookEventName": TYPES[call.hook_type][0], **output}
    return hooks.stdout_answer(plain)


def is_off(data: Mapping[str, Any]) -> bool:
    """All hooks are switched off, or some that may be ours."""
    switches = mapping(data.get("hooksConfig"))
    return switches.get("enabled") is False or bool(switches.get("disabled"))


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="json",
            path=lambda place: Path(place.environ.get("GEMINI_CLI_HOME") or place.home) / ".gemini" / "settings.json",
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".gemini", "settings.json"),
            table=lambda _: ("hooks",),
        ),
    ),
    types=TYPES,
    decides=frozenset({"prompt_submit", "pre_tool_use", "post_tool_use", "stop"}),
    place=lambda name: (name,),
    add=hooks.append_group(hooks.HOOK_TIMEOUT * MILLISECONDS),
    remove=hooks.remove_from_groups,
    commands=hooks.commands_in_groups,
    read=read,
    answer=reply,
    off=is_off,
    runs=frozenset({"stream-json"}),
)
