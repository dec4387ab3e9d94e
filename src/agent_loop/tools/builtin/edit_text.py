"""One replacement in a text. Pure. Source: zidane, "Tool ergonomics defaults"; phi-core, "File System"."""

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.tools.builtin.near_match import preview_of

_NUMBERED = re.compile(r"[ ]*(\d+)\t")
"""What `read_file` puts before a line."""
SHOWN_PLACES = 10


class Edit(msgspec.Struct, frozen=True):
    """Replace one string by another."""

    old_string: Annotated[str, Meta(description="The text to replace, exactly as in the file, with its whitespace.")]
    new_string: Annotated[str, Meta(description="What takes its place.")]
    replace_all: Annotated[
        bool, Meta(description="Replace it everywhere. Otherwise old_string must occur exactly once in the file.")
    ] = False


class Applied(msgspec.Struct, frozen=True):
    """What came of it."""

    text: str
    count: int
    """Places that were replaced."""


def applied(text: str, edit: Edit) -> Applied:
    """The text with the edit. Where the exact string is there, this is `str.replace` and nothing else.

    Otherwise the same is tried without line numbers that were pasted along, and with the line ends of the file.
    Raises `ToolError` where nothing matches, or more than one place does and `replace_all` is not set.
    """
    _check(edit)
    for old, new in _readings(text, edit):
        count = text.count(old)
        if count > 1 and not edit.replace_all:
            raise ToolError(
                f"old_string occurs {count} times (in {_places(text, old)}); add lines around it until it is unique, "
                "or set replace_all"
            )
        if count:
            return Applied(text.replace(old, new), count)
    raise ToolError(f"old_string was not found{preview_of(text, edit.old_string)}")


def _check(edit: Edit) -> None:
    if not edit.old_string:
        raise ToolError("old_string is empty; say what is to be replaced, or use write_file for a whole file")
    if edit.old_string == edit.new_string:
        raise ToolError("old_string and new_string are the same; nothing would change")


def _readings(text: str, edit: Edit) -> Iterator[tuple[str, str]]:
    """What may be meant, the exact string first."""
    yield edit.old_string, edit.new_string
    bare = without_line_numbers(edit.old_string)
    pairs = [(edit.old_string, edit.new_string)]
    if bare:
        pairs.append((bare, without_line_numbers(edit.new_string) or edit.new_string))
        yield pairs[-1]
    if "\r\n" in text:
        yield from ((_with_crlf(old), _with_crlf(new)) for old, new in pairs)


def without_line_numbers(text: str) -> str | None:
    """The lines without the numbers before them. None: not every line has one, or they do not count up."""
    lines = text.split("\n")
    numbered = lines[:-1] if lines[-1] == "" else lines
    found = [_NUMBERED.match(line) for line in numbered]
    numbers = [int(match[1]) for match in found if match]
    if not numbers or len(numbers) < len(numbered) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    bare = [line[match.end() :] for line, match in zip(numbered, found, strict=True) if match]
    stripped = "\n".join([*bare, *lines[len(numbered) :]])
    return stripped or None


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> str:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < SHOWN_PLACES:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return f"lines {', '.join(lines)}{', ...' if at >= 0 else ''}"
