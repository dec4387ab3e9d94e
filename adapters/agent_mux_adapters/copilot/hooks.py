"""GitHub Copilot CLI's hooks: files of their own, one of which is ours."""

from collections.abc import Mapping
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer, NativeHooks
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
TOLD = frozenset({"session_start", "prompt_submit", "post_tool_use", "notification", "subagent_start"})
"""Where it listens to a text for the model."""


def read(hook_type: HookType, said: Mapping[str, Any]) -> HookCall:
    """What GitHub Copilot CLI tells a hook."""
    given = said.get("toolArgs", said.get("toolInput"))
    is_command = text(said.get("toolName")) in SHELLS
    return hooks.hook_call(
        hook_type,
        said,
        agent="copilot",
        session_id=text(said.get("sessionId")),
        tool_call_id="",
        tool_name=text(said.get("toolName")),
        tool_input=given if isinstance(given, dict) else None,
        command=text(mapping(given).get("command")) if is_command else "",
        paths=hooks.input_paths(mapping(given)),
        tool_output=said.get("toolResult", said.get("error")),
        message=hooks.first_text(said, "message", "stopReason", "source", "reason", "trigger"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookAnswer:
    """A decision, for GitHub Copilot CLI."""
    plain: dict[str, Any] = {}
    match call.hook_type:
        case "pre_tool_use":
            plain = _about_tool(decision)
        case "permission_request":
            if decision.behavior in {"allow", "deny"}:
                why = {"message": hooks.denial_reason(decision)} if decision.behavior == "deny" else {}
                plain = {"behavior": decision.behavior, **why}
        case "prompt_submit" | "stop" | "subagent_stop":
            if decision.behavior == "deny" and not hooks.is_stop_hook_active(call):
                plain = {"decision": "block", "reason": hooks.denial_reason(decision)}
        case _:
            pass
    if decision.context and call.hook_type in TOLD:
        plain["additionalContext"] = decision.context
    return hooks.stdout_answer(plain)


def _about_tool(decision: HookDecision) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if decision.behavior is not None:
        plain["permissionDecision"] = decision.behavior
        if decision.behavior == "deny" or decision.reason:
            plain["permissionDecisionReason"] = hooks.denial_reason(decision)
    if decision.modified_input is not None and decision.behavior != "deny":
        plain["modifiedArgs"] = dict(decision.modified_input)
    return plain


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
    read=read,
    answer=reply,
    preamble={("version",): 1},
    runs=frozenset({"headless", "json"}),
)
