"""Hermes Agent's shell hooks: `hooks` in its configuration. It asks once about each before it calls it."""

from collections.abc import Mapping
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer, NativeHooks
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


def read(hook_type: HookType, said: Mapping[str, Any]) -> HookCall:
    """What Hermes Agent tells a hook: most of it in `extra`."""
    given, extra = said.get("tool_input"), mapping(said.get("extra"))
    is_command = text(said.get("tool_name")) == SHELL
    return hooks.hook_call(
        hook_type,
        said,
        agent="hermes",
        prompt=text(extra.get("user_message")) if hook_type == "prompt_submit" else "",
        tool_call_id=text(extra.get("tool_call_id")),
        tool_input=given if isinstance(given, dict) else None,
        command=text(mapping(given).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(given)) + hooks.patch_paths(text(mapping(given).get("patch"))),
        tool_output=extra.get("result"),
        message=hooks.first_text(extra, "assistant_response", "child_summary", "reason"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookAnswer:
    """A decision, for Hermes Agent: it can refuse a tool call, and hear a text with a prompt."""
    if call.hook_type == "pre_tool_use" and decision.behavior == "deny":
        return hooks.stdout_answer({"action": "block", "message": hooks.denial_reason(decision)})
    if call.hook_type == "prompt_submit" and decision.context:
        return hooks.stdout_answer({"context": decision.context})
    return HookAnswer()


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
    consent="Hermes Agent asks about new hooks at its next start at a terminal; --accept-hooks says yes to all of them",
)
