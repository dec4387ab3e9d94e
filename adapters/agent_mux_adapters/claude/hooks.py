"""The hooks of Claude Code, in `hooks` of its settings."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.hooks import AnswerQuirks, hook_answer
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.claude.hook_events import TYPES
from agent_mux_adapters.claude.tools import command_of


def read(hook_type: HookType, native: Mapping[str, Any]) -> HookCall:
    """Parse the input that Claude Code passes to a hook."""
    tool, arguments = text(native.get("tool_name")), native.get("tool_input")
    return hooks.hook_call(
        hook_type,
        native,
        agent="claude",
        tool_input=arguments if isinstance(arguments, dict) else None,
        command=command_of(tool, mapping(arguments)),
        paths=hooks.input_paths(mapping(arguments)),
        tool_output=native.get("tool_response", native.get("error")),
        message=hooks.first_text(native, "last_assistant_message", "message", "source", "reason", "trigger"),
    )


def reply(call: HookCall, decision: HookDecision) -> HookResponse:
    """Return the answer of a decision in Claude Code's format."""
    event = text(call.raw.get("hook_event_name")) or TYPES[call.hook_type][0]
    return hook_answer(call, decision, event, AnswerQuirks())


def caller(environ: Mapping[str, str]) -> str | None:
    """Return the agent that called the hook, if it is another one than Claude Code.

    GitHub Copilot CLI also reads the hooks in a project's `.claude` and sets `COPILOT_CLI`. A Claude Code that Copilot
    started inherits the variable, but sets one of its own.
    """
    return "copilot" if environ.get("COPILOT_CLI") and not environ.get("CLAUDECODE") else None


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="json",
            path=lambda place: place.home_of("CLAUDE_CONFIG_DIR", ".claude") / "settings.json",
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".claude", "settings.json"),
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="local",
            format="json",
            path=lambda place: place.project_file(".claude", "settings.local.json"),
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
    runs=frozenset({ONE_SHOT, TWO_WAY}),
    off=lambda data: data.get("disableAllHooks") is True,
    caller=caller,
)
