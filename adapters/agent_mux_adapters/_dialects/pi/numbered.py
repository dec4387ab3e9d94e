"""Diffs with a line number in each line, as the agents show them to people: ` 1 alpha`, `-2 beta`, `+2 gamma`.

Old lines and unchanged ones have their old number, new lines their new one; `...` stands for what is left out.
"""

import re
from collections.abc import Iterator

from agent_mux_adapters._dialects.unified_diff import with_header

_LINE = re.compile(r"([ +-]) *(\d{1,9})[ |](.*)", re.DOTALL)


def from_numbered(path: str, diff: str) -> str:
    """The diff with hunks; empty when it has no lines that could be understood."""
    lines: list[str] = []
    shift = 0
    for hunk in _hunks(diff):
        lines += _unified(hunk, shift)
        shift += sum({"+": 1, "-": -1}.get(sign, 0) for sign, _, _ in hunk)
    return with_header(path, lines)


def _hunks(diff: str) -> Iterator[list[tuple[str, int, str]]]:
    hunk: list[tuple[str, int, str]] = []
    for line in diff.split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            hunk.append((match[1], int(match[2]), match[3]))
        elif hunk:
            yield hunk
            hunk = []
    if hunk:
        yield hunk


def _unified(hunk: list[tuple[str, int, str]], shift: int) -> list[str]:
    """`shift`: how many lines more the new text has above this hunk."""
    old = [number for sign, number, _ in hunk if sign != "+"]
    new = [number for sign, number, _ in hunk if sign == "+"]
    new_count = len(new) + sum(sign == " " for sign, _, _ in hunk)
    # Without old lines it is an insertion: new lines say where.
    first_old = old[0] if old else new[0] - shift - 1
    first_new = (old[0] + shift if old else new[0]) - (not new_count)
    return [f"@@ -{first_old},{len(old)} +{first_new},{new_count} @@", *(f"{sign}{said}" for sign, _, said in hunk)]
