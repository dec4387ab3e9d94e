"""What came of a tool call: from `tool.execution_complete` to facts.

A command that failed is a success to Copilot, with `shellExecution.exitCode`. What the model was shown ends with a
remark about that code; the output itself comes in `tool.shell_output` before.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.facts import (
    Fact,
    FileDeleted,
    FileEffect,
    FilePatched,
    FileRead,
    FileWritten,
    ImageProduced,
    McpDone,
    ToolDone,
)
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.copilot import diffs, tools

NOT_EXITED = -1
"""For a foreground command that goes on in the background."""
REMARK = re.compile(r"\n?<shellId: [^>\n]* completed with exit code (-?\d{1,9})>\Z")
"""The end of what the model is shown of a command."""
_LISTING = "\ncreate file mode "
"""In what is shown of a directory, as if it were a new file."""


class Call(msgspec.Struct):
    """A call that waits for its result."""

    name: str
    arguments: Any
    is_mcp: bool = False
    is_command: bool = False
    """It runs a command whose exit is the call's."""
    told_stderr: bool = False


def done(call: Call, call_id: str, data: Mapping[str, Any], cwd: str) -> tuple[Fact, ...]:
    """The end of a call, and the images it made."""
    result = mapping(data.get("result"))
    shown = text(result.get("content"))
    error = None if data.get("success") is True else _error_of(data, shown)
    if call.is_mcp:
        return McpDone(call_id, shown if error is None else None, error), *_images(result)
    if call.is_command:
        return (_command_done(call, call_id, data, shown, error),)
    files = () if error is not None else files_of(call.name, call.arguments, data, cwd)
    return ToolDone(call_id, shown if error is None else None, error, files=files, name=call.name or None), *_images(
        result
    )


def _error_of(data: Mapping[str, Any], shown: str) -> str:
    return text(mapping(data.get("error")).get("message")) or shown or "the tool failed and said nothing"


def _command_done(call: Call, call_id: str, data: Mapping[str, Any], shown: str, error: str | None) -> ToolDone:
    if error is not None:
        return ToolDone(call_id, error=error, name=call.name or None)
    remark = REMARK.search(shown)
    code = _exit_code(data, remark)
    if code is None:
        return ToolDone(call_id, shown, exit_code=NOT_EXITED, name=call.name or None)
    printed = shown[: remark.start()] if remark is not None else ""
    # Both streams are merged in it: it adds to the one that was streamed only where there is no other.
    stdout = None if call.told_stderr else printed
    if code == 0:
        return ToolDone(call_id, shown, stdout=stdout, exit_code=0, name=call.name or None)
    return ToolDone(call_id, error=shown or f"exit code {code}", stdout=stdout, exit_code=code, name=call.name or None)


def _exit_code(data: Mapping[str, Any], remark: re.Match[str] | None) -> int | None:
    code = mapping(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int) and not isinstance(code, bool):
        return code
    return int(remark[1]) if remark is not None else None


# -- files


def files_of(name: str, arguments: Any, data: Mapping[str, Any], cwd: str) -> tuple[FileEffect, ...]:
    """What a call that succeeded did to files."""
    said = mapping(arguments)
    path = text(said.get("path"))
    shown = text(mapping(data.get("result")).get("detailedContent"))
    command = text(said.get("command")) or name  # of `str_replace_editor`, which is all of these
    match command:
        case tools.READING_TOOL if path and not _is_directory(data):
            return (FileRead(path),)
        case tools.WRITING_TOOL if path:
            return (FileWritten(path, _size(text(said.get("file_text"))), created=True),)
        case tools.PATCHING_TOOL:
            return _patched(data, shown, cwd)
        case tools.EDITING_TOOL | "str_replace" | "insert" if path:
            return _edited(path, shown, said, cwd)
    return ()


def _is_directory(data: Mapping[str, Any]) -> bool:
    """A directory was listed: then no file was read."""
    shown = text(mapping(data.get("result")).get("detailedContent"))
    kind = mapping(mapping(data.get("toolTelemetry")).get("properties")).get("viewType")
    return kind == "directory" or (kind is None and _LISTING in shown)


def _edited(path: str, shown: str, said: Mapping[str, Any], cwd: str) -> tuple[FileEffect, ...]:
    pair = (text(said.get("old_str")), text(said.get("new_str")))
    diff = diffs.of_file(shown, path) or unified_diff.from_replacements(path, [pair])
    return (_patch(path, diff, cwd),) if diff else ()


def _patched(data: Mapping[str, Any], shown: str, cwd: str) -> tuple[FileEffect, ...]:
    found = {section.path: section for section in diffs.sections(shown)}
    effects: list[FileEffect] = []
    for edit in rows(data.get("fileEdits")):
        path, section = text(edit.get("path")), found.get(text(edit.get("path")))
        if edit.get("kind") == "delete":
            effects.append(FileDeleted(path))
        elif section is not None and section.made:
            effects.append(FileWritten(path, _size(section.added), created=True))
        elif section is not None:
            effects.append(_patch(path, unified_diff.with_header(path, section.hunks), cwd))
    return tuple(effects)


def _patch(path: str, diff: str, cwd: str) -> FileEffect:
    """A changed file. Without a diff it was only moved."""
    effect = FilePatched(path, diff)
    return unified_diff.relative_to(cwd, effect) if diff else effect


def _size(content: str) -> int:
    return len(content.encode("utf-8", "replace"))


# -- images


def _images(result: Mapping[str, Any]) -> tuple[Fact, ...]:
    blocks = [*rows(result.get("binaryResultsForLlm")), *rows(result.get("contents"))]
    found = {text(block.get("data")): block for block in blocks if block.get("type") == "image"}
    return tuple(
        ImageProduced(text(block.get("mimeType")) or "image/png", base64=data) for data, block in found.items() if data
    )
