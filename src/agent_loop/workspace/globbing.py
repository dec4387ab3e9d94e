"""Patterns of file names: `*`, `?`, `[...]`, `{one,two}`, and `**` for any number of directories.

Matched name by name, so that no pattern can take more than (names in the pattern) x (names in the path) steps: patterns
come from a model, and one expression for the whole path could be made to run for hours.
"""

import re
from collections.abc import Sequence
from fnmatch import translate

from agent_loop.errors import ToolError
from agent_loop.workspace.entries import Parts

MAX_PATTERN = 1000
"""Characters."""
MAX_ALTERNATIVES = 64
"""What the braces of one pattern may multiply to."""
Names = tuple[re.Pattern[str] | None, ...]
"""One expression for each name of a path; None is `**`."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Glob:
    """One pattern. Without a slash in it, it means the file name, in whatever directory. Raises `ToolError`."""

    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/") or len(pattern) > MAX_PATTERN:
            raise ToolError(f"a glob pattern has 1 to {MAX_PATTERN} characters; give one such as **/*.py")
        self.pattern = pattern
        self._alternatives = tuple(_compiled(each) for each in _expanded(pattern))

    def matches(self, parts: Parts) -> bool:
        """The pattern means the file of these names."""
        return any(fits(each, parts) for each in self._alternatives)


def _expanded(pattern: str) -> list[str]:
    """The pattern without braces, once for each choice."""
    pending, done = [pattern], []
    while pending:
        each = pending.pop(0)
        braces = _BRACES.search(each)
        if braces is None:
            done.append(each)
        else:
            pending += [each[: braces.start()] + choice + each[braces.end() :] for choice in braces[1].split(",")]
        if len(pending) + len(done) > MAX_ALTERNATIVES:
            raise ToolError(
                f"the braces of {pattern!r} mean more than {MAX_ALTERNATIVES} patterns; ask in several calls"
            )
    return done


def _compiled(pattern: str) -> Names:
    names = [name for name in pattern.split("/") if name not in {"", "."}]
    return names_of(names if "/" in pattern.rstrip("/") else ["**", *names])


def names_of(names: Sequence[str]) -> Names:
    """Patterns of names, ready to be used."""
    return tuple(None if name == "**" else re.compile(translate(name)) for name in names)


def fits(pattern: Names, parts: Parts) -> bool:
    """Which beginnings of the pattern the names so far fit, kept as a set of positions."""
    positions = _with_nothing(pattern, {0})
    for part in parts:
        reached: set[int] = set()
        for at in positions:
            if at < len(pattern):
                reached |= _after(pattern[at], at, part)
        positions = _with_nothing(pattern, reached)
    return len(pattern) in positions


def _after(name: re.Pattern[str] | None, at: int, part: str) -> set[int]:
    """Where we are in the pattern once `part` is taken at position `at`."""
    if name is None:
        return {at, at + 1}
    return {at + 1} if name.match(part) else set()


def _with_nothing(pattern: Names, positions: set[int]) -> set[int]:
    """`**` may also stand for no directory at all; at the end it needs a file."""
    found = set(positions)
    for at in sorted(positions):
        while at < len(pattern) - 1 and pattern[at] is None:
            at += 1  # noqa: PLW2901  # on to the next name
            found.add(at)
    return found
