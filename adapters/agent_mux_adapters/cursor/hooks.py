"""Cursor's hooks: `hooks.json`. As documented (https://cursor.com/docs/hooks); nothing of it is recorded.

It has a hook of its own for commands, for MCP tools and for files that are read; before it changes files it asks none.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer, NativeHooks
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
"""What tools are called here: the hooks about commands and files name none."""


def read(hook_type: HookType, said: Mapping[str, Any]) -> HookCall:
    """What Cursor tells a hook."""
    event = text(said.get("hook_event_name"))
    roots = said.get("workspace_roots")
    root = text(roots[0]) if isinstance(roots, list) and roots else ""
    tool, given = _tool(event, said)
    return hooks.hook_call(
        hook_type,
        said,
        agent="cursor",
        session_id=text(said.get("conversation_id")),
        cwd=text(said.get("cwd")) or root,
        tool_call_id="",
        tool_name=tool,
        tool_input=given,
        command=text(said.get("command")) if tool == SHELL else "",
        paths=hooks.input_paths(said),
        tool_output=said.get("output", said.get("result_json", said.get("edits"))),
        message=hooks.first_text(said, "status", "reason"),
    )


def _tool(event: str, said: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    if "Shell" in event:
        return SHELL, {"command": said.get("command")}
    if "MCP" in event:
        return text(said.get("tool_name")), _object(said.get("tool_input"))
    if event.endswith(("ReadFile", "FileEdit")):
        return READ if event.endswith("ReadFile") else EDIT, {"file_path": said.get("file_path")}
    return "", None


def _object(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, dict) else None


def reply(call: HookCall, decision: HookDecision) -> HookAnswer:
    """A decision, for Cursor. It takes no other input for a tool."""
    if call.hook_type == "prompt_submit" and decision.behavior == "deny":
        return hooks.stdout_answer({"continue": False, "user_message": hooks.denial_reason(decision)})
    if call.hook_type != "pre_tool_use" or decision.behavior is None:
        return HookAnswer()
    why = hooks.denial_reason(decision) if decision.behavior == "deny" else decision.reason
    told = {} if why is None else {"user_message": why, "agent_message": why}
    return hooks.stdout_answer({"permission": decision.behavior, **told})


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
