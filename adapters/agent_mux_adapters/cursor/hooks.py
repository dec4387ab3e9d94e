"""The hooks of Cursor, in `hooks.json`, as documented at https://cursor.com/docs/hooks; not recorded.

There are separate hooks for commands, MCP tools and reading files; none runs before files are changed.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.hooks import HookCall, HookDecision, HookResponse, HookType, NativeHooks
from agent_mux_adapters._dialects import hooks
from agent_mux_adapters._dialects.tolerant import text

TYPES: Mapping[HookType, tuple[str, ...]] = {
    "session_start": ("sessionStart",),
    "session_end": ("sessionEnd",),
    "prompt_submit": ("beforeSubmitPrompt",),
    "pre_tool_use": ("beforeShellExecution", "beforeMCPExecution", "beforeReadFile"),
    "post_tool_use": ("afterShellExecution", "afterMCPExecution", "afterFileEdit"),
    "stop": ("stop",),
}
SHELL, READ, EDIT = "Shell", "Read", "Write"
"""The tool names that we report: hooks about commands and files name no tool."""


def read(hook_type: HookType, native: Mapping[str, Any]) -> HookCall:
    """Parse the input that Cursor passes to a hook."""
    event = text(native.get("hook_event_name"))
    roots = native.get("workspace_roots")
    root = text(roots[0]) if isinstance(roots, list) and roots else ""
    tool, arguments = _tool(event, native)
    return hooks.hook_call(
        hook_type,
        native,
        agent="cursor",
        session_id=text(native.get("conversation_id")),
        cwd=text(native.get("cwd")) or root,
        tool_call_id="",
        tool_name=tool,
        tool_input=arguments,
        command=text(native.get("command")) if tool == SHELL else "",
        paths=hooks.input_paths(native),
        tool_output=native.get("output", native.get("result_json", native.get("edits"))),
        message=hooks.first_text(native, "status", "reason"),
    )


def _tool(event: str, native: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    if "Shell" in event:
        return SHELL, {"command": native.get("command")}
    if "MCP" in event:
        return text(native.get("tool_name")), _object(native.get("tool_input"))
    if event.endswith(("ReadFile", "FileEdit")):
        return READ if event.endswith("ReadFile") else EDIT, {"file_path": native.get("file_path")}
    return "", None


def _object(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def reply(call: HookCall, decision: HookDecision) -> HookResponse:
    """Return the answer of a decision in Cursor's format, which cannot modify a tool's input."""
    if call.hook_type == "prompt_submit" and decision.behavior == "deny":
        return hooks.stdout_answer({"continue": False, "user_message": hooks.denial_reason(decision)})
    if call.hook_type != "pre_tool_use" or decision.behavior is None:
        return HookResponse()
    message = hooks.denial_reason(decision) if decision.behavior == "deny" else decision.reason
    messages = {} if message is None else {"user_message": message, "agent_message": message}
    return hooks.stdout_answer({"permission": decision.behavior, **messages})


HOOKS = NativeHooks(
    files=(
        ConfigFile(
            scope="global",
            format="json",
            path=lambda place: place.home / ".cursor" / "hooks.json",
            table=lambda _: ("hooks",),
        ),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".cursor", "hooks.json"),
            table=lambda _: ("hooks",),
        ),
    ),
    types=TYPES,
    decides=frozenset({"prompt_submit", "pre_tool_use"}),
    place=lambda name: (name,),
    add=hooks.append_entry(lambda command: {"command": command}),
    remove=hooks.remove_from_list,
    commands=hooks.commands_in_list,
    read=read,
    answer=reply,
    preamble={("version",): 1},
)
