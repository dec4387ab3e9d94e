"""What came of a call of Claude Code's own tools: from a `tool_result`, and the `tool_use_result` beside it, to facts.

`tool_use_result` is the CLI's own structured result: an object on success, a string when the tool failed, a list for
MCP tools, and absent inside sub-agents. The block's `content` is what the model was shown: a string or blocks.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.stream_json.tools import OpenCall, ToolResultBlock, result_images
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.claude import diffs, tools

EXIT_CODE = "Exit code "
TIMED_OUT = "Command timed out"
NOT_EXITED = -1
"""For a foreground command that the CLI moved to the background when its time was up: it runs on."""
INTERPRETED_EXIT_CODE = 1
"""All exit codes that the CLI calls a success ("No matches found", "Files differ") are this one."""


def tool_facts(call: OpenCall | None, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """The end of a native tool call, and what it brought to light."""
    call = call or OpenCall("", {})
    if call.name in tools.SHELL_TOOLS:
        return (_shell_done(call, result), *result_images(result))
    if result.failed or _failed_quietly(call, result):
        return (facts.ToolDone(result.call_id, error=_quiet_error(result), name=call.name or None),)
    effect = _EFFECTS.get(call.name)
    files = effect(call, mapping(result.extra), result) if effect else ()
    done = facts.ToolDone(result.call_id, output=result.output, files=files, name=call.name or None)
    skill = text(call.input.get("skill")) if call.name == tools.SKILL_TOOL else ""
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
    # The CLI merges both streams of a command that failed; its own remark about a time-out is no output.
    stdout = "" if printed.startswith(TIMED_OUT) else printed
    return facts.ToolDone(result.call_id, error=result.error, exit_code=code, stdout=stdout, name=call.name)


def _split_exit_code(said: str) -> tuple[int | None, str]:
    """`Exit code 3` and the lines after it."""
    first, _, rest = said.partition("\n")
    number = first.removeprefix(EXIT_CODE)
    if number == first or not number.isascii() or not number.isdigit() or len(number) > 4:
        return None, said
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
    diff = diffs.from_patch(path, extra.get("structuredPatch")) or unified_diff.from_replacements(path, pairs)
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
    **dict.fromkeys(tools.READING_TOOLS, _read),
    **dict.fromkeys(tools.WRITING_TOOLS, _written),
    **dict.fromkeys(tools.EDITING_TOOLS, _edited),
    **dict.fromkeys(tools.NOTEBOOK_TOOLS, _notebook),
}


# -- text


def _failed_quietly(call: OpenCall, result: ToolResultBlock) -> bool:
    return call.name in tools.NOTEBOOK_TOOLS and bool(text(mapping(result.extra).get("error")))


def _quiet_error(result: ToolResultBlock) -> str:
    return text(mapping(result.extra).get("error")) or result.error
