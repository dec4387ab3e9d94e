r"""Results of tool calls: facts from `tool.execution_complete`, with the effects on files and their diffs.

For Copilot a command that failed is a success, with `shellExecution.exitCode`. The text that the model gets ends with
a line about that code; the output itself comes before, in `tool.shell_output`.

Copilot computes diffs of `text.split("\n")`: a text that ends with a newline has an empty last line there, which a
unified diff does not have, and a text that does not is not marked. Only hunks that reach the end of the file are
affected. They have fewer than three lines of context at their end and contain the whole rest of both texts, so they are
computed again from those.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.facts import (
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
from agent_mux_adapters.copilot import wire

NOT_EXITED = -1
"""The exit code of a foreground command that continues in the background."""
EXIT_LINE = re.compile(r"\n?<(?:shellId: [^>\n]* completed|exited) with exit code (-?\d{1,9})>\Z")
"""The end of the text that the model gets about a command, in the wording of newer and of older releases."""
_DIRECTORY_LISTING = "\ncreate file mode "
"""Part of the details about a listed directory, which look like a new file."""


class CopilotToolCall(msgspec.Struct):
    """A call that waits for its result."""

    name: str
    arguments: Any
    is_mcp: bool = False
    is_command: bool = False
    """Whether it runs a command in the foreground, whose exit is the end of the call."""
    has_stderr: bool = False
    """Whether some of its stderr was streamed."""


def result_facts(call: CopilotToolCall, call_id: str, data: Mapping[str, Any], cwd: str) -> tuple[Fact, ...]:
    """Return the end of a call and the images in its result."""
    result = mapping(data.get("result"))
    shown = text(result.get("content"))
    error = None if data.get("success") is True else _error_of(data, shown)
    if call.is_mcp:
        return McpDone(call_id, shown if error is None else None, error), *_images(result)
    if call.is_command:
        return (_command_done(call, call_id, data, shown, error),)
    files = () if error is not None else file_effects_of(call.name, call.arguments, data, cwd)
    return ToolDone(call_id, shown if error is None else None, error, files=files, name=call.name or None), *_images(
        result
    )


def _error_of(data: Mapping[str, Any], shown: str) -> str:
    return text(mapping(data.get("error")).get("message")) or shown or "the tool failed without a message"


def _command_done(
    call: CopilotToolCall, call_id: str, data: Mapping[str, Any], shown: str, error: str | None
) -> ToolDone:
    if error is not None:
        return ToolDone(call_id, error=error, name=call.name or None)
    exit_line = EXIT_LINE.search(shown)
    code = _exit_code(data, exit_line)
    if code is None:
        return ToolDone(call_id, shown, exit_code=NOT_EXITED, name=call.name or None)
    printed = shown[: exit_line.start()] if exit_line is not None else ""
    # `printed` merges both streams. It can complete the streamed stdout only if no stderr was streamed.
    stdout = None if call.has_stderr else printed
    if code == 0:
        return ToolDone(call_id, shown, stdout=stdout, exit_code=0, name=call.name or None)
    return ToolDone(call_id, error=shown or f"exit code {code}", stdout=stdout, exit_code=code, name=call.name or None)


def _exit_code(data: Mapping[str, Any], exit_line: re.Match[str] | None) -> int | None:
    code = mapping(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int) and not isinstance(code, bool):
        return code
    return int(exit_line[1]) if exit_line is not None else None


# -- effects on files


def file_effects_of(name: str, arguments: Any, data: Mapping[str, Any], cwd: str) -> tuple[FileEffect, ...]:
    """Return the effects on files of a call that succeeded."""
    fields = mapping(arguments)
    path = text(fields.get("path"))
    shown = text(mapping(data.get("result")).get("detailedContent"))
    command = text(fields.get("command")) or name  # of `str_replace_editor`, which combines these tools
    match command:
        case wire.READ_TOOL if path and not _is_directory(data):
            return (FileRead(path),)
        case wire.WRITE_TOOL if path:
            return (FileWritten(path, _size(text(fields.get("file_text"))), created=True),)
        case wire.PATCH_TOOL:
            return _patched(data, shown, cwd)
        case wire.EDIT_TOOL | "str_replace" | "insert" if path:
            return _edited(path, shown, fields, cwd)
    return ()


def _is_directory(data: Mapping[str, Any]) -> bool:
    """Return whether the call listed a directory, which is not a file that was read."""
    shown = text(mapping(data.get("result")).get("detailedContent"))
    kind = mapping(mapping(data.get("toolTelemetry")).get("properties")).get("viewType")
    return kind == "directory" or (kind is None and _DIRECTORY_LISTING in shown)


def _edited(path: str, shown: str, fields: Mapping[str, Any], cwd: str) -> tuple[FileEffect, ...]:
    pair = (text(fields.get("old_str")), text(fields.get("new_str")))
    diff = diff_of_file(shown, path) or unified_diff.from_replacements(path, [pair])
    return (_patch(path, diff, cwd),) if diff else ()


def _patched(data: Mapping[str, Any], shown: str, cwd: str) -> tuple[FileEffect, ...]:
    found = {file.path: file for file in file_diffs(shown)}
    effects: list[FileEffect] = []
    for edit in rows(data.get("fileEdits")):
        path, file = text(edit.get("path")), found.get(text(edit.get("path")))
        if edit.get("kind") == "delete":
            effects.append(FileDeleted(path))
        elif file is not None and file.created:
            effects.append(FileWritten(path, _size(file.added), created=True))
        elif file is not None:
            effects.append(_patch(path, unified_diff.with_header(path, file.hunks), cwd))
    return tuple(effects)


def _patch(path: str, diff: str, cwd: str) -> FileEffect:
    """Return the effect for a changed file. A moved file without changes has no diff."""
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


# -- diffs

_CONTEXT = 3
_FILE = re.compile(r"(?:^|\n)diff --git ")
_NAME = re.compile(r"\n\+\+\+ b/([^\n]*)\n|\n--- a/([^\n]*)\n\+\+\+ b/dev/null\n")
_CREATED = "\n--- a/dev/null\n"
_NEXT_HUNK = re.compile(r"\n(?=@@ )")
_HUNK = re.compile(r"^@@ -(\d{1,9}),(\d{1,9}) \+(\d{1,9}),(\d{1,9}) @@$")


class FileDiff(msgspec.Struct, frozen=True):
    """The diff of one file."""

    path: str
    """The absolute path."""
    hunks: list[str]
    """The lines of all hunks, headers included."""
    created: bool
    """Whether the file did not exist before, under any name."""
    added: str
    """The text of the added lines. For a created file that is all of it."""


def file_diffs(shown: str) -> Iterator[FileDiff]:
    """Parse a diff of Copilot into the diffs of its files."""
    for part in _FILE.split(shown)[1:]:
        name = _NAME.search(part)
        if name is not None:
            # Lines of files have a sign before them, so none of them is mistaken for a header.
            hunks = [hunk.split("\n") for hunk in _NEXT_HUNK.split(part.rstrip("\n"))[1:]]
            added = [line[1:] for hunk in hunks for line in hunk[1:] if line.startswith("+")]
            lines = [line for hunk in hunks for line in _repair_hunk(hunk)]
            yield FileDiff(f"/{name[1] or name[2]}", lines, _CREATED in part[: name.end()], "\n".join(added))


def diff_of_file(shown: str, path: str) -> str:
    """Return the unified diff of one file; empty when Copilot shows none."""
    found = next((file for file in file_diffs(shown) if file.path == path), None)
    return "" if found is None else unified_diff.with_header(path, found.hunks)


def _repair_hunk(hunk: list[str]) -> list[str]:
    """Correct a hunk that reaches the end of the file. See the docstring of the module."""
    match = _HUNK.match(hunk[0])
    lines = hunk[1:]
    if match is None or not lines:
        return hunk
    trailing = next((count for count, line in enumerate(reversed(lines)) if not line.startswith(" ")), len(lines))
    if trailing < _CONTEXT:
        return _diff_to_end(int(match[1]), int(match[3]), lines)
    if lines[-1] != " ":
        return hunk
    # The last line is a line of the file or the empty one after its end. Without it the diff is right in both cases.
    header = f"@@ -{match[1]},{int(match[2]) - 1} +{match[3]},{int(match[4]) - 1} @@"
    return [header, *lines[:-1]]


def _diff_to_end(old_start: int, new_start: int, lines: list[str]) -> list[str]:
    """Compute the hunks of the rest of a file again, from the start lines in the old and the new text."""
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    diff = unified_diff.from_texts("x", old, new).split("\n")[2:-1]
    return [_shift_header(diff[0], old_start - 1, new_start - 1), *diff[1:]] if diff else []


def _shift_header(header: str, old: int, new: int) -> str:
    match = _HUNK.match(header)
    if match is None:
        return header
    return f"@@ -{int(match[1]) + old},{match[2]} +{int(match[3]) + new},{match[4]} @@"
