"""What was changed in a file, as a unified diff. Pure."""

import io
import re
from collections.abc import Sequence
from difflib import unified_diff

from agent_loop.tools.builtin.file_text import shown

CONTEXT = 3
MAX_COMPARISONS = 4_000_000
"""Lines times lines. Where more would be compared, all of it counts as replaced: a diff must not take minutes."""
_HEADER = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_NO_END = "\n\\ No newline at end of file\n"


def diff_of(name: str, before: str, after: str) -> str:
    """Empty, where nothing changed. Both texts may hold what `surrogateescape` makes; the diff never does."""
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    start, end = _common(old, new)
    first = max(0, start - CONTEXT)
    tail = max(0, end - CONTEXT)
    changed = old[first : len(old) - tail], new[first : len(new) - tail]
    body = _compared(*changed) if len(changed[0]) * len(changed[1]) <= MAX_COMPARISONS else _replaced(*changed)
    return shown("".join([f"--- a/{name}\n", f"+++ b/{name}\n", *(_shifted(line, first) for line in body)]))


def _lines(text: str) -> list[str]:
    """With their ends. Only a line feed ends a line."""
    return [line if line.endswith("\n") else line + _NO_END for line in io.StringIO(text, newline="\n")]


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are the same."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    return start, end


def _compared(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(unified_diff(old, new, n=CONTEXT))[2:]


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[str]:
    start, end = _common(old, new)
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    header = f"@@ -1,{len(old)} +1,{len(new)} @@\n"
    middle = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return [header, *(f" {line}" for line in old[:start]), *middle, *(f" {line}" for line in old[len(old) - end :])]


def _shifted(line: str, first: int) -> str:
    """A header that counts from the beginning of the file."""
    match = _HEADER.match(line)
    if match is None:
        return line
    old, old_size, new, new_size = match.groups(default="")
    return f"@@ -{int(old) + first}{old_size} +{int(new) + first}{new_size} @@\n"
