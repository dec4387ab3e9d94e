"""The tools of Qwen Code: their actions, details and risks, and the facts of their results."""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts, unified_diff
from agent_mux_adapters._dialects.stream_json.tools import (
    OpenCall,
    ToolResultBlock,
    ToolTable,
    result_images,
    split_mcp_name,
)
from agent_mux_adapters._dialects.tolerant import as_json, text

SHELL = "run_shell_command"
AGENT = "agent"
SKILL = "skill"
QUESTION = "ask_user_question"
CREATED = ("Successfully created", "Created new file")

ACTIONS: Mapping[str, str] = {
    SHELL: "Run a shell command",
    "read_file": "Read a file",
    "write_file": "Write a file",
    "edit": "Edit a file",
    "web_fetch": "Fetch a web page",
    AGENT: "Start a sub-agent",
    SKILL: "Use a skill",
    "exit_plan_mode": "Leave plan mode and carry out the plan",
}
DETAILS: Mapping[str, str] = {
    SHELL: "command",
    "read_file": "file_path",
    "write_file": "file_path",
    "edit": "file_path",
    "web_fetch": "url",
    AGENT: "prompt",
    SKILL: "skill",
    "exit_plan_mode": "plan",
}
RISKS: Mapping[str, facts.Risk] = {
    **dict.fromkeys(("read_file", "read_many_files", "list_directory", "glob", "grep_search", "todo_write"), "low"),
    **dict.fromkeys((SHELL, "web_fetch", "web_search"), "high"),
}

# The format of the result of a failed command.
_REPORT = re.compile(r"Command: .*?\nOutput: (?P<output>.*)\nError: .*\nExit Code: (?P<code>\d{1,3})\n", re.DOTALL)
_EMPTY = "(empty)"


def shell_of(name: str, arguments: Mapping[str, Any]) -> facts.ShellInvocation | None:
    """Return the command of a call in the foreground, else None."""
    command = command_of(name, arguments)
    if command is None or arguments.get("is_background") is True:
        return None
    return facts.ShellInvocation(command, text(arguments.get("directory")) or None)


def command_of(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line of a call, or None."""
    return (text(arguments.get("command")) or None) if name == SHELL else None


def done(call: OpenCall | None, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """Return the end of a native call, with its images, file changes and skills."""
    name = call.name if call is not None else None
    ended = facts.ToolDone(result.call_id, output=result.output, name=name)
    if name == SHELL:
        return (_shell_done(result), *result_images(result))
    if result.failed:
        return (facts.ToolDone(result.call_id, error=result.error, name=name),)
    if call is None:
        return (ended, *result_images(result))
    ended = facts.ToolDone(result.call_id, output=result.output, name=name, files=_files(call, result))
    skill = text(call.input.get("skill")) if name == SKILL else ""
    return (ended, *result_images(result), *((facts.SkillInvoked(skill),) if skill else ()))


def _shell_done(result: ToolResultBlock) -> facts.ToolDone:
    if not result.failed:
        return facts.ToolDone(result.call_id, output=result.output, stdout=result.shown, exit_code=0, name=SHELL)
    report = _REPORT.match(result.shown)
    if report is None:  # denied, cancelled or timed out
        return facts.ToolDone(result.call_id, error=result.error, name=SHELL)
    printed, code = report["output"].removeprefix(_EMPTY), int(report["code"])
    error = printed or f"exit code {code}"
    return facts.ToolDone(result.call_id, error=error, stdout=printed, exit_code=code, name=SHELL)


def _files(call: OpenCall, result: ToolResultBlock) -> tuple[facts.FileEffect, ...]:
    path, created = text(call.input.get("file_path")), result.shown.startswith(CREATED)
    if not path:
        return ()
    match call.name:
        case "read_file":
            return (facts.FileRead(path),)
        case "write_file":
            return (facts.FileWritten(path, _size(call.input.get("content")), created),)
        case "edit" if created:
            return (facts.FileWritten(path, _size(call.input.get("new_string")), created),)
        case "edit":
            pair = (text(call.input.get("old_string")), text(call.input.get("new_string")))
            diff = unified_diff.from_replacements(path, [pair])
            return (facts.FilePatched(path, diff),) if diff else ()
    return ()


def _size(content: Any) -> int:
    return len(text(content).encode("utf-8", "replace"))


def action_of(name: str) -> str:
    """Return the action to approve, in words."""
    server_and_tool = split_mcp_name(name)
    if server_and_tool is not None:
        return f"Use {server_and_tool[1]} of the MCP server {server_and_tool[0]}"
    return ACTIONS.get(name, f"Use {name}")


def detail_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the detail of an approval request: the most important argument, else all of them."""
    return text(arguments.get(DETAILS.get(name, ""))) or as_json(arguments)


TOOLS = ToolTable(
    delegating=frozenset({AGENT}),
    question=QUESTION,
    shell_of=shell_of,
    done=done,
    action_of=action_of,
    detail_of=detail_of,
    risk_of=lambda name, _: RISKS.get(name, "medium"),
    command_of=command_of,
    path_fields=("file_path", "path"),
    answer_key=lambda number, _: str(number),
)
