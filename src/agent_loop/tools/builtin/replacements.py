"""One replacement in a text, tolerant of what models copy wrongly, with a preview of the nearest match."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.tools.builtin.file_call import replace_surrogates
from agent_loop.tools.builtin.near_matches import near_matches

SHOWN_PLACES = 10
"""The most line numbers of ambiguous matches that an error lists."""
MAX_LINES = 20_000
"""The most lines of a file that are compared for the preview."""
MAX_COMPARED = 200
"""The most characters of a line that are compared."""
MAX_SHOWN = 15
"""The most lines of a preview."""
SHOWN_WIDTH = 300
"""The most characters of a line in a preview."""
MIN_SIMILARITY = 0.6
"""The lowest similarity of a preview, from 0 to 1; less similar text would mislead the model."""
INVALID_BYTES = "but \ufffd stands for a byte that is not UTF-8: replace text beside it, or run a command"
_LINE_NUMBER = re.compile(r"[ ]*(\d+)\t")
"""The line number that `read_file` puts before a line."""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace one string by another."""

    old_string: Annotated[str, Meta(description="The text to replace, exactly as in the file, with its whitespace.")]
    new_string: Annotated[str, Meta(description="The replacement text.")]
    replace_all: Annotated[
        bool, Meta(description="Replace it everywhere. Otherwise old_string must occur exactly once in the file.")
    ] = False


class Replacement(msgspec.Struct, frozen=True):
    """The text after an edit."""

    text: str
    count: int
    """The number of replaced occurrences."""
    difference: str = ""
    """How the text differed from the string; empty for an exact match."""


def apply_edit(text: str, edit: Edit) -> Replacement:
    """Return the text after an edit. If the exact string occurs, the result is that of `str.replace`.

    Otherwise the string is tried without line numbers that were copied from `read_file`, with CRLF line endings if the
    file has them, and then with differences in whitespace, indentation and quotes. Raises `ToolError` if nothing
    matches, or if several places match and `replace_all` is not set.
    """
    if not edit.old_string:
        raise ToolError("old_string is empty; give the text to replace, or use write_file for a whole file")
    if edit.old_string == edit.new_string:
        raise ToolError("old_string and new_string are the same; nothing would change")
    for old, new in _candidates(text, edit):
        count = text.count(old)
        if count > 1 and not edit.replace_all:
            raise ToolError(
                f"old_string occurs {count} times (in {_line_list(text, old)}); "
                "add lines around it until it is unique, or set replace_all"
            )
        if count:
            return Replacement(text.replace(old, new), count)
    near = _near_replacement(text, edit)
    if near is None:
        raise ToolError(f"old_string was not found{preview_of(text, edit.old_string)}")
    return near


def _near_replacement(text: str, edit: Edit) -> Replacement | None:
    for old, new in (pair for pair in _candidates(text, edit) if "\r\n" not in pair[0]):
        found = near_matches(text, old, new)
        if found is None:
            continue
        count = len(found.places)
        if count > 1 and not edit.replace_all:
            lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _, _ in found.places[:SHOWN_PLACES])
            raise ToolError(
                f"old_string does not occur exactly, and {count} places differ only in {found.difference} (in lines "
                f"{lines}); copy the right one exactly, with lines around it, or set replace_all"
            )
        return Replacement(found.apply(text), count, found.difference)
    return None


def without_line_numbers(text: str) -> str | None:
    """Return the lines without the numbers before them, None unless every line has one and they are consecutive."""
    lines = text.split("\n")
    numbered = lines[:-1] if lines[-1] == "" else lines
    found = [_LINE_NUMBER.match(line) for line in numbered]
    numbers = [int(match[1]) for match in found if match]
    if not numbers or len(numbers) < len(numbered) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    bare = [line[match.end() :] for line, match in zip(numbered, found, strict=True) if match]
    stripped = "\n".join([*bare, *lines[len(numbered) :]])
    return stripped or None


def preview_of(text: str, wanted: str) -> str:
    """Return the end of the error sentence: the nearest match to `wanted`, or advice if nothing is similar."""
    lines = text.split("\n")[:MAX_LINES]
    sought = wanted.split("\n")
    anchor = next((number for number, line in enumerate(sought) if line.strip()), None)
    best = None if anchor is None else _most_similar_line(lines, _comparable(sought[anchor]))
    if best is None or anchor is None:
        return "; read the file again and copy the text exactly"
    first = max(0, best - anchor)
    window = lines[first : first + min(len(sought), MAX_SHOWN)]
    preview = "\n".join(f"{number}\t{line[:SHOWN_WIDTH]}" for number, line in enumerate(window, first + 1))
    shown = replace_surrogates(preview)
    advice = "copy it exactly" if shown == preview else INVALID_BYTES
    return f"; the nearest match is at line {first + 1}, {advice}:\n{shown}"


def _candidates(text: str, edit: Edit) -> Iterator[tuple[str, str]]:
    """Yield the pairs of old and new string to try, the exact ones first."""
    yield edit.old_string, edit.new_string
    bare = without_line_numbers(edit.old_string)
    pairs = [(edit.old_string, edit.new_string)]
    if bare:
        pairs.append((bare, without_line_numbers(edit.new_string) or edit.new_string))
        yield pairs[-1]
    if "\r\n" in text:
        yield from ((_with_crlf(old), _with_crlf(new)) for old, new in pairs)


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _line_list(text: str, old: str) -> str:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < SHOWN_PLACES:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return f"lines {', '.join(lines)}{', ...' if at >= 0 else ''}"


def _most_similar_line(lines: list[str], sought: str) -> int | None:
    """Return the index of the most similar line, None if none reaches `MIN_SIMILARITY`."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(sought)
    best, similarity = None, MIN_SIMILARITY
    for index, line in enumerate(lines):
        matcher.set_seq1(_comparable(line))
        if matcher.real_quick_ratio() >= similarity and matcher.quick_ratio() >= similarity:
            ratio = matcher.ratio()
            if ratio > similarity or (best is None and ratio >= similarity):
                best, similarity = index, ratio
        if similarity == 1:
            break
    return best


def _comparable(line: str) -> str:
    return line.strip()[:MAX_COMPARED]
