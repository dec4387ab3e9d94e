"""The hooks of Gemini CLI, in `hooks` of its settings. Over ACP (0.61.0) no tool hooks are called."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
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


def read(hook_type: HookType, native: Mapping[str, Any]) -> HookCall:
    """Parse the input that Gemini CLI passes to a hook."""
    arguments = native.get("tool_input")
    is_command = text(native.get("tool_name")) == SHELL
    return hooks.hook_call(
        hook_type,
        native,
        agent="gemini",
        tool_input=arguments if isinstance(arguments, dict) else None,
        command=text(mapping(arguments).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(arguments)),
        tool_output=native.get("tool_response"),
        message=hooks.first_text(native, "prompt_response", "message", "source", "reason", "trigger"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookResponse:
    """Return the answer of a decision in Gemini CLI's format, which cannot ask the user."""
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
    """Return whether all hooks are disabled, or some that may be ours."""
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
