"""The tool `read_file`: a range of lines of a text file, or an image."""

import base64
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.messages import Image, Shown, Text
from agent_loop.tools.builtin.file_call import behavior_of, parse_arguments, run_in_thread, schema_of, workspace_of
from agent_loop.tools.builtin.file_changes import is_repeated_read, mark_read, read_mark
from agent_loop.tools.effects import FileRead
from agent_loop.tools.tool import ToolContext, ToolResult
from agent_loop.workspace import FileContent

LIMIT = 2000
MAX_BYTES = 50 * 1024
MAX_IMAGE_BYTES = 20 * 1024 * 1024
SAMPLE = 64 * 1024
"""The bytes at the beginning of a file that decide whether it is text."""
REPLACED_SHARE = 0.1
"""The share of U+FFFD in the decoded sample above which a file counts as binary."""
_IMAGE_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `read_file`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]
    offset: Annotated[int, Meta(ge=1, description="Number of the first line, from 1.")] = 1
    limit: Annotated[int, Meta(ge=0, description="Maximum number of lines; 0: no limit.")] = LIMIT
    max_bytes: Annotated[int, Meta(ge=0, description="Maximum size of the text in bytes; 0: no limit.")] = MAX_BYTES


@dataclass(frozen=True, slots=True)
class FilePage:
    """A range of lines of a file."""

    lines: tuple[str, ...]
    first: int
    """The number of the first line, from 1."""
    total: int
    """The number of lines in the file."""
    is_cut: bool = False
    """Whether the page is one line that is longer than the limit and cut off."""

    @property
    def last(self) -> int:
        """The number of the last line, from 1."""
        return self.first + len(self.lines) - 1


NOT_UTF8 = "[\ufffd stands for bytes that are not UTF-8: edits of other text keep them, old_string cannot contain them]"


class ReadTool:
    """The tool `read_file`, which returns a page of text or an image."""

    name = "read_file"
    label = "Read file"
    kind = "read"
    risk = "low"
    description = (
        f"Read a text file or an image (PNG, JPEG, GIF, WebP). Returns up to {LIMIT} lines or {MAX_BYTES // 1024} KiB "
        "from line `offset`; a note at the end states how to read the rest. Lines may begin with their number and a "
        "tab, which are not part of the file. Use glob or ls to find files and grep to search in them."
    )
    parameters = schema_of(ReadArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Read a file. Raises `WorkspaceError` if it is not readable, `ToolError` if the offset is behind its end."""
        parsed = parse_arguments(ReadArguments, arguments)
        return await run_in_thread(lambda: _read(parsed, context))


# -- images


def image_type_of(data: bytes) -> str | None:
    """Return the MIME type of an image by its first bytes, None for other content.

    File names are ignored, because they may be wrong. Only types that models accept are recognized.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for signature, mime in _IMAGE_SIGNATURES if data.startswith(signature)), None)


def image_block(data: bytes, mime_type: str) -> Image:
    """Return an image as a content block."""
    return Image(base64.b64encode(data).decode(), mime_type)


# -- text


def is_binary(data: bytes) -> bool:
    """Whether a file contains a NUL byte, or is not UTF-8 in many places. Checks the beginning of the file only."""
    sample = data[:SAMPLE]
    if b"\0" in sample:
        return True
    text = sample.decode("utf-8", "replace")
    return text.count("\ufffd") > 1 + REPLACED_SHARE * len(text)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their endings, which are LF or CRLF."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def page_of(text: str, offset: int, limit: int, max_bytes: int) -> FilePage:
    """Return up to `limit` lines from line `offset`, as whole lines of at most `max_bytes`; 0 is no limit.

    A first line that is longer than `max_bytes` is cut off. Raises `ToolError` if `offset` is behind the last line.
    """
    lines = split_lines(text)
    if offset > max(1, len(lines)):
        raise ToolError(f"offset={offset} is behind the end of the file, which has {len(lines)} lines")
    wanted = lines[offset - 1 : offset - 1 + limit if limit else None]
    if not max_bytes:
        return FilePage(tuple(wanted), offset, len(lines))
    fitting = _count_fitting(wanted, max_bytes)
    if wanted and not fitting:
        start = wanted[0].encode()[:max_bytes].decode("utf-8", "ignore")
        return FilePage((start,), offset, len(lines), is_cut=True)
    return FilePage(tuple(wanted[:fitting]), offset, len(lines))


def render_page(page: FilePage, *, numbered: bool) -> str:
    """Render the lines of a page and a note on how to read the rest."""
    numbers = range(page.first, page.first + len(page.lines))
    lines = [f"{number}\t{line}" for number, line in zip(numbers, page.lines, strict=True)] if numbered else page.lines
    return "\n".join((*lines, *_footer(page)))


def _count_fitting(lines: list[str], max_bytes: int) -> int:
    """Return how many of the first lines have at most `max_bytes` together, line endings included."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > max_bytes:
            return count
    return len(lines)


def _footer(page: FilePage) -> list[str]:
    notes = []
    if not page.lines:
        return ["[the file is empty]"]
    if page.is_cut:
        notes.append(f"[line {page.last} is cut off; re-read it with max_bytes=0, or search it with grep]")
    if page.last < page.total:
        notes.append(f"[lines {page.first}-{page.last} of {page.total}; re-read with offset={page.last + 1} for more]")
    return ["", *notes] if notes else []


# -- the call


def _read(arguments: ReadArguments, context: ToolContext) -> ToolResult:
    content, behavior = workspace_of(context).read_file(arguments.path), behavior_of(context)
    mark = read_mark(content, arguments.offset, arguments.limit, arguments.max_bytes)
    if behavior.dedup_reads and is_repeated_read(context, content.name, mark):
        note = "is unchanged since you last read it with these arguments; the previous result is still valid"
        return _result(content, Text(f"[{content.name} {note}]"), unchanged=True)
    shown = render_content(content, arguments, numbered=behavior.read_line_numbers)
    mark_read(context, content.name, mark, (shown,))
    return _result(content, shown)


def _result(content: FileContent, shown: Shown, *, unchanged: bool = False) -> ToolResult:
    details = {"path": content.name, "bytes": len(content.data), "unchanged": unchanged}
    return ToolResult((shown,), details=details, effects=(FileRead(content.name),))


def render_content(content: FileContent, arguments: ReadArguments, *, numbered: bool) -> Shown:
    """Return what the model gets of a file: a page of text, an image, or a note about a binary file.

    Raises `ToolError` if the offset is behind the end of the file, or the image is too large.
    """
    mime_type = image_type_of(content.data)
    if mime_type is not None:
        return _render_image(content, mime_type)
    if is_binary(content.data):
        return Text(f"[{content.name} is a binary file of {len(content.data):,} bytes; its content is not shown]")
    text = content.data.decode("utf-8", "replace")
    page = page_of(text, arguments.offset, arguments.limit, arguments.max_bytes)
    shown = render_page(page, numbered=numbered)
    if "\ufffd" in shown and not _is_utf8(content.data):
        shown += f"\n\n{NOT_UTF8}"
    return Text(shown)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _render_image(content: FileContent, mime_type: str) -> Shown:
    if len(content.data) > MAX_IMAGE_BYTES:
        raise ToolError(f"{content.name} is an image of {len(content.data):,} bytes; the limit is {MAX_IMAGE_BYTES:,}")
    return image_block(content.data, mime_type)
