"""The tools of Claude Code: names and inputs, risk, and results with their effects on files.

A result has two forms. The `content` of the `tool_result` block is what the model was shown: a string or blocks. The
`tool_use_result` beside it is the CLI's own structured result: an object on success, a string when the tool failed, a
list for MCP tools, and absent inside sub-agents.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts, file_edits, unified_diff
from agent_mux.sdk.facts import Risk, ShellInvocation
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux.sdk.unified_diff import with_header
from agent_mux_adapters._dialects.stream_json.tools import (
    OpenCall,
    ToolResultBlock,
    ToolTable,
    result_images,
    split_mcp_name,
)
from agent_mux_adapters._dialects.tolerant import as_json, mapping, rows, text, whole

SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
DELEGATING_TOOLS = frozenset({"Task", "Agent"})
"""Newer versions call `Task` `Agent`."""
READING_TOOLS = frozenset({"Read", "NotebookRead"})
WRITING_TOOLS = frozenset({"Write"})
EDITING_TOOLS = frozenset({"Edit", "MultiEdit"})
NOTEBOOK_TOOLS = frozenset({"NotebookEdit"})
SKILL_TOOL = "Skill"
QUESTION_TOOL = "AskUserQuestion"
PLAN_TOOL = "ExitPlanMode"

ACTIONS: Mapping[str, str] = {
    "Bash": "Run a shell command",
    "PowerShell": "Run a shell command",
    "Read": "Read a file",
    "Write": "Write a file",
    "Edit": "Edit a file",
    "MultiEdit": "Edit a file",
    "NotebookEdit": "Edit a notebook",
    "WebFetch": "Fetch a web page",
    "WebSearch": "Search the web",
    "Task": "Start a sub-agent",
    "Agent": "Start a sub-agent",
    "Skill": "Use a skill",
    PLAN_TOOL: "Leave plan mode and carry out the plan",
}
"""The action that a person is asked to approve."""

DETAILS: Mapping[str, str] = {
    "Bash": "command",
    "PowerShell": "command",
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "WebFetch": "url",
    "WebSearch": "query",
    "Task": "prompt",
    "Agent": "prompt",
    "Skill": "skill",
    PLAN_TOOL: "plan",
}
"""The input field that is shown for approval; other tools show the whole input."""


def shell_of(name: str, arguments: Mapping[str, Any]) -> ShellInvocation | None:
    """Return the command of a foreground shell call; None for other calls.

    A background command outlives its call, so it has no shell events.
    """
    command = command_of(name, arguments)
    return None if command is None or arguments.get("run_in_background") is True else ShellInvocation(command)


def command_of(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line that a call runs; None for other tools."""
    return (text(arguments.get("command")) or None) if name in SHELL_TOOLS else None


def action_of(name: str) -> str:
    """Return the action that a person is asked to approve."""
    server_and_tool = split_mcp_name(name)
    if server_and_tool is not None:
        return f"Use {server_and_tool[1]} of the MCP server {server_and_tool[0]}"
    return ACTIONS.get(name, f"Use {name}")


def detail_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the detail that a person needs to see before approving."""
    return text(arguments.get(DETAILS.get(name, ""))) or as_json(arguments)


def edits_of(name: str, arguments: Mapping[str, Any]) -> tuple[facts.FileEdit, ...]:
    """Return the edits of files that a call makes."""
    return file_edits.edits_of(arguments) if name in WRITING_TOOLS | EDITING_TOOLS | NOTEBOOK_TOOLS else ()


# -- risk

LOW_TOOLS = frozenset({
    "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TaskList", "TaskGet", "BashOutput", "TaskOutput",
    "AskUserQuestion", "EnterPlanMode", "ToolSearch", "ListMcpResourcesTool",
})  # fmt: skip
HIGH_TOOLS = frozenset({"WebFetch", "WebSearch", "RemoteTrigger"})
COMMAND_TOOLS = frozenset({"Bash", "PowerShell"})


def risk_of(tool: str, arguments: Mapping[str, Any]) -> Risk:
    """Return the risk of calling this tool with these arguments."""
    if tool in COMMAND_TOOLS:
        return risk_of_command(text(arguments.get("command")))
    if tool in LOW_TOOLS:
        return "low"
    return "high" if tool in HIGH_TOOLS else "medium"


# -- diffs


def patch_diff(path: str, patch: Any) -> str:
    """Return the diff of a `structuredPatch`, whose hunks contain the lines; empty when it has none."""
    hunks = [hunk for row in rows(patch) for hunk in _hunk_of_row(row)]
    return with_header(path, hunks)


def _hunk_of_row(row: Mapping[str, Any]) -> list[str]:
    lines = row.get("lines")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return []
    old, new = (_span(row, side) for side in ("old", "new"))
    return [f"@@ -{old} +{new} @@", *map(text, lines)]


def _span(row: Mapping[str, Any], side: str) -> str:
    start, count = whole(row.get(f"{side}Start")), whole(row.get(f"{side}Lines"))
    # The CLI always counts from 1; in a unified diff a range without lines starts before the first line.
    return f"{start if count else max(start - 1, 0)},{count}"


# -- results

EXIT_CODE = "Exit code "
TIMED_OUT = "Command timed out"
NOT_EXITED = -1
"""The exit code for a foreground command that the CLI moved to the background after its timeout."""
INTERPRETED_EXIT_CODE = 1
"""The exit code of every failure that the CLI presents as a success ("No matches found", "Files differ")."""


def tool_facts(call: OpenCall | None, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """Return the facts that end a native tool call."""
    call = call or OpenCall("", {})
    if call.name in SHELL_TOOLS:
        return (_shell_done(call, result), *result_images(result))
    if result.failed or _failed_quietly(call, result):
        return (facts.ToolDone(result.call_id, error=_quiet_error(result), name=call.name or None),)
    effect = _EFFECTS.get(call.name)
    files = effect(call, mapping(result.extra), result) if effect else ()
    done = facts.ToolDone(result.call_id, output=result.output, files=files, name=call.name or None)
    skill = text(call.input.get("skill")) if call.name == SKILL_TOOL else ""
    return (done, *result_images(result), *((facts.SkillInvoked(skill),) if skill else ()))


# -- commands


def _shell_done(call: OpenCall, result: ToolResultBlock) -> facts.ToolDone:
    extra = mapping(result.extra)
    if result.failed or not extra:
        return _shell_from_text(call, result)
    stdout, stderr = text(extra.get("stdout")), text(extra.get("stderr"))
    if extra.get("isImage") is True:
        return facts.ToolDone(result.call_id, output=result.output, name=call.name)
    output = "\n".join(part for part in (stdout, stderr) if part) or result.shown
    meaning = text(extra.get("returnCodeInterpretation"))
    done = facts.ToolDone(result.call_id, output=output, stdout=stdout, stderr=stderr, name=call.name)
    if meaning:
        return msgspec.structs.replace(
            done, output=None, error=stdout or stderr or meaning, exit_code=INTERPRETED_EXIT_CODE
        )
    if extra.get("backgroundTaskId"):
        return msgspec.structs.replace(done, output=result.shown, exit_code=NOT_EXITED)
    if extra.get("interrupted") is True:
        return msgspec.structs.replace(done, output=None, error=output or "the command was interrupted")
    return done


def _shell_from_text(call: OpenCall, result: ToolResultBlock) -> facts.ToolDone:
    if not result.failed:
        return facts.ToolDone(result.call_id, output=result.output, stdout=result.shown, name=call.name)
    code, printed = _split_exit_code(result.error)
    if code is None:
        return facts.ToolDone(result.call_id, error=result.error, name=call.name)
    # The CLI merges both streams of a failed command; its own remark about a timeout is not output.
    stdout = "" if printed.startswith(TIMED_OUT) else printed
    return facts.ToolDone(result.call_id, error=result.error, exit_code=code, stdout=stdout, name=call.name)


def _split_exit_code(error: str) -> tuple[int | None, str]:
    """Split `Exit code 3` from the lines after it; the code is None when it is missing."""
    first, _, rest = error.partition("\n")
    number = first.removeprefix(EXIT_CODE)
    if number == first or not number.isascii() or not number.isdigit() or len(number) > 4:
        return None, error
    return int(number), rest


# -- files


def _read(call: OpenCall, extra: Mapping[str, Any], _: ToolResultBlock) -> tuple[facts.FileEffect, ...]:
    path = text(mapping(extra.get("file")).get("filePath")) or text(call.input.get("file_path"))
    return (facts.FileRead(path),) if path else ()


def _written(call: OpenCall, extra: Mapping[str, Any], result: ToolResultBlock) -> tuple[facts.FileEffect, ...]:
    path = text(extra.get("filePath")) or text(call.input.get("file_path"))
    content = extra["content"] if isinstance(extra.get("content"), str) else text(call.input.get("content"))
    created = extra["type"] == "create" if "type" in extra else result.shown.startswith("File created")
    return (facts.FileWritten(path, len(content.encode("utf-8", "replace")), created),) if path else ()


def _edited(call: OpenCall, extra: Mapping[str, Any], _: ToolResultBlock) -> tuple[facts.FileEffect, ...]:
    path = text(extra.get("filePath")) or text(call.input.get("file_path"))
    edits = [call.input, *rows(call.input.get("edits"))]
    pairs = [(text(edit.get("old_string")), text(edit.get("new_string"))) for edit in edits]
    diff = patch_diff(path, extra.get("structuredPatch")) or unified_diff.from_replacements(path, pairs)
    return (facts.FilePatched(path, diff),) if path and diff else ()


def _notebook(call: OpenCall, extra: Mapping[str, Any], _: ToolResultBlock) -> tuple[facts.FileEffect, ...]:
    path = text(extra.get("notebook_path")) or text(call.input.get("notebook_path"))
    before, after = text(extra.get("original_file")), text(extra.get("updated_file"))
    if not after:
        before, after = "", text(call.input.get("new_source"))
    diff = unified_diff.from_texts(path, before, after)
    return (facts.FilePatched(path, diff),) if path and diff else ()


Effect = Callable[[OpenCall, Mapping[str, Any], ToolResultBlock], tuple[facts.FileEffect, ...]]
_EFFECTS: Mapping[str, Effect] = {
    **dict.fromkeys(READING_TOOLS, _read),
    **dict.fromkeys(WRITING_TOOLS, _written),
    **dict.fromkeys(EDITING_TOOLS, _edited),
    **dict.fromkeys(NOTEBOOK_TOOLS, _notebook),
}


# -- errors


def _failed_quietly(call: OpenCall, result: ToolResultBlock) -> bool:
    return call.name in NOTEBOOK_TOOLS and bool(text(mapping(result.extra).get("error")))


def _quiet_error(result: ToolResultBlock) -> str:
    return text(mapping(result.extra).get("error")) or result.error


TOOLS = ToolTable(
    delegating=DELEGATING_TOOLS,
    question=QUESTION_TOOL,
    shell_of=shell_of,
    done=tool_facts,
    action_of=action_of,
    detail_of=detail_of,
    risk_of=risk_of,
    command_of=command_of,
    edits_of=edits_of,
    path_fields=("file_path", "notebook_path", "path"),
)
