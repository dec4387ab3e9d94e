"""Hooks of GitHub Copilot CLI: a directory of files, one of which is ours."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.tolerant import mapping, text

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("sessionStart",),
    "session_end": ("sessionEnd",),
    "prompt_submit": ("userPromptSubmitted",),
    "pre_tool_use": ("preToolUse",),
    "post_tool_use": ("postToolUse", "postToolUseFailure"),
    "permission_request": ("permissionRequest",),
    "notification": ("notification",),
    "stop": ("agentStop",),
    "subagent_start": ("subagentStart",),
    "subagent_stop": ("subagentStop",),
    "pre_compact": ("preCompact",),
}
SHELLS = frozenset({"bash", "powershell"})
TAKES_CONTEXT = frozenset({"session_start", "prompt_submit", "post_tool_use", "notification", "subagent_start"})
"""The hooks whose output can add a text for the model."""


def read_call(hook_type: HookType, payload: Mapping[str, Any]) -> HookCall:
    """Convert the input of a Copilot hook, whose fields are camelCase."""
    tool_input = payload.get("toolArgs", payload.get("toolInput"))
    is_command = text(payload.get("toolName")) in SHELLS
    return hooks.hook_call(
        hook_type,
        payload,
        agent="copilot",
        session_id=text(payload.get("sessionId")),
        tool_call_id="",
        tool_name=text(payload.get("toolName")),
        tool_input=tool_input if isinstance(tool_input, dict) else None,
        command=text(mapping(tool_input).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(tool_input)),
        tool_output=payload.get("toolResult", payload.get("error")),
        message=hooks.first_text(payload, "message", "stopReason", "source", "reason", "trigger"),
    )


def render_decision(call: HookCall, decision: HookDecision) -> HookResponse:
    """Render a decision as the output that Copilot expects of a hook."""
    output: dict[str, Any] = {}
    match call.hook_type:
        case "pre_tool_use":
            output = _tool_decision(decision)
        case "permission_request":
            if decision.behavior in {"allow", "deny"}:
                message = {"message": hooks.denial_reason(decision)} if decision.behavior == "deny" else {}
                output = {"behavior": decision.behavior, **message}
        case "prompt_submit" | "stop" | "subagent_stop":
            if decision.behavior == "deny" and not hooks.is_stop_hook_active(call):
                output = {"decision": "block", "reason": hooks.denial_reason(decision)}
        case _:
            pass
    if decision.context and call.hook_type in TAKES_CONTEXT:
        output["additionalContext"] = decision.context
    return hooks.stdout_answer(output)


def _tool_decision(decision: HookDecision) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if decision.behavior is not None:
        output["permissionDecision"] = decision.behavior
        if decision.behavior == "deny" or decision.reason:
            output["permissionDecisionReason"] = hooks.denial_reason(decision)
    if decision.modified_input is not None and decision.behavior != "deny":
        output["modifiedArgs"] = dict(decision.modified_input)
    return output


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="json",
            path=lambda place: place.home_of("COPILOT_HOME", ".copilot") / "hooks" / "agent-mux.json",
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".github", "hooks", "agent-mux.json"),
            table=lambda _: ("hooks",),
        ),
    ),
    types=TYPES,
    decides=frozenset({"prompt_submit", "pre_tool_use", "permission_request", "stop", "subagent_stop"}),
    place=lambda name: (name,),
    add=hooks.append_entry(lambda command: {"type": "command", "bash": command, "timeoutSec": hooks.HOOK_TIMEOUT}),
    remove=hooks.remove_from_list,
    commands=hooks.commands_in_list,
    read=read_call,
    answer=render_decision,
    preamble={("version",): 1},
    runs=frozenset({"headless", "json"}),
)
