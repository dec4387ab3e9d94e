"""Glob patterns of file names: `*`, `?`, `[...]`, `{one,two}`, and `**` for any number of directories.

A pattern is matched component by component, so that matching takes at most (components of the pattern) x (components
of the path) steps. Patterns come from a model; a single regular expression for a whole path could backtrack for hours.
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from pathlib import Path

from agent_loop.errors import ToolError
from agent_loop.workspace.entries import Parts

MAX_PATTERN = 1000
"""The longest accepted pattern, in characters."""
MAX_ALTERNATIVES = 64
"""The most patterns that the braces of one pattern may expand to."""
CompiledPattern = tuple[re.Pattern[str] | None, ...]
"""One regular expression per path component; None stands for `**`."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Glob:
    """A glob pattern. A pattern without a slash matches the file name in any directory.

    Raises `ToolError` for a pattern that is empty, too long, or expands to too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/") or len(pattern) > MAX_PATTERN:
            raise ToolError(f"a glob pattern must have 1 to {MAX_PATTERN} characters, for example **/*.py")
        self.pattern = pattern
        self._alternatives = tuple(_compile_path(each) for each in _expand_braces(pattern))

    def matches(self, parts: Parts) -> bool:
        """Whether the pattern matches the file with these path components."""
        return any(matches_parts(each, parts) for each in self._alternatives)


def glob_below(directory: Path, pattern: str) -> Glob:
    """Return the glob of a pattern that is relative to a directory, or absolute and below it."""
    return Glob(pattern.removeprefix(f"{directory}/"))


def compile_names(names: Sequence[str]) -> CompiledPattern:
    """Compile the components of a pattern for `matches_parts`."""
    return tuple(None if name == "**" else re.compile(translate(name)) for name in names)


def matches_parts(pattern: CompiledPattern, parts: Parts) -> bool:
    """Whether a compiled pattern matches all of `parts`. Tracks the set of reachable positions in the pattern."""
    positions = _skip_wildcards(pattern, {0})
    for part in parts:
        reached: set[int] = set()
        for at in positions:
            if at < len(pattern):
                reached |= _advance(pattern[at], at, part)
        positions = _skip_wildcards(pattern, reached)
    return len(pattern) in positions


def _expand_braces(pattern: str) -> list[str]:
    """Return one pattern for each combination of the alternatives in braces."""
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
                f"the braces of {pattern!r} expand to more than {MAX_ALTERNATIVES} patterns; use several calls"
            )
    return done


def _compile_path(pattern: str) -> CompiledPattern:
    names = [name for name in pattern.split("/") if name not in {"", "."}]
    return compile_names(names if "/" in pattern.rstrip("/") else ["**", *names])


def _advance(name: re.Pattern[str] | None, at: int, part: str) -> set[int]:
    """Return the positions reached when the component at position `at` consumes `part`."""
    if name is None:
        return {at, at + 1}
    return {at + 1} if name.match(part) else set()


def _skip_wildcards(pattern: CompiledPattern, positions: set[int]) -> set[int]:
    """Add the positions behind each `**`, which may match no directory at all. A final `**` must match a file."""
    found = set(positions)
    for at in sorted(positions):
        while at < len(pattern) - 1 and pattern[at] is None:
            at += 1  # noqa: PLW2901  # on to the next name
            found.add(at)
    return found
