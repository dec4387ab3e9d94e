"""Shell hooks of Hermes Agent: `hooks` in its configuration. Hermes asks for consent before it first calls one."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.tolerant import mapping, text

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("on_session_start",),
    "session_end": ("on_session_finalize",),
    "prompt_submit": ("pre_llm_call",),
    "pre_tool_use": ("pre_tool_call",),
    "post_tool_use": ("post_tool_call",),
    "stop": ("post_llm_call",),
    "subagent_start": ("subagent_start",),
    "subagent_stop": ("subagent_stop",),
}
SHELL = "terminal"


def read(hook_type: HookType, native: Mapping[str, Any]) -> HookCall:
    """Parse the input of a hook; most of it is in `extra`."""
    tool_input, extra = native.get("tool_input"), mapping(native.get("extra"))
    is_command = text(native.get("tool_name")) == SHELL
    return hooks.hook_call(
        hook_type,
        native,
        agent="hermes",
        prompt=text(extra.get("user_message")) if hook_type == "prompt_submit" else "",
        tool_call_id=text(extra.get("tool_call_id")),
        tool_input=tool_input if isinstance(tool_input, dict) else None,
        command=text(mapping(tool_input).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(tool_input)) + hooks.patch_paths(text(mapping(tool_input).get("patch"))),
        tool_output=extra.get("result"),
        message=hooks.first_text(extra, "assistant_response", "child_summary", "reason"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookResponse:
    """Format a decision: Hermes Agent lets a hook block a tool call, and add context to a prompt."""
    if call.hook_type == "pre_tool_use" and decision.behavior == "deny":
        return hooks.stdout_answer({"action": "block", "message": hooks.denial_reason(decision)})
    if call.hook_type == "prompt_submit" and decision.context:
        return hooks.stdout_answer({"context": decision.context})
    return HookResponse()


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="yaml",
            path=lambda place: place.home_of("HERMES_HOME", ".hermes") / "config.yaml",
            table=lambda _: ("hooks",),
        ),
    ),
    types=TYPES,
    decides=frozenset({"pre_tool_use"}),
    place=lambda name: (name,),
    add=hooks.append_entry(lambda command: {"command": command, "timeout": hooks.HOOK_TIMEOUT}),
    remove=hooks.remove_from_list,
    commands=hooks.commands_in_list,
    read=read,
    answer=reply,
    consent="Hermes Agent asks about new hooks at its next start at a terminal; --accept-hooks accepts all of them",
)
