"""Limits for what an approval request shows: the input of the tool and the diff. What is cut is marked."""

from collections.abc import Mapping
from typing import Any

MAX_DIFF = 100_000
"""Characters of a diff."""
MAX_INPUT = 100_000
"""Characters of all texts in the input of a tool."""
MAX_ITEMS = 10_000
"""Keys and values in the input of a tool."""
MAX_DEPTH = 50
_MARK_SPACE = 60  # characters for a mark
_ITEM_SIZE = MAX_INPUT // MAX_ITEMS


def cut_diff(diff: str | None) -> str | None:
    r"""Return the diff, cut after a line. The mark is a line that begins with `\`, which programs for diffs ignore."""
    if diff is None or len(diff) <= MAX_DIFF:
        return diff
    end = diff.rfind("\n", 0, MAX_DIFF - _MARK_SPACE) + 1
    if not end:  # one very long line
        end = MAX_DIFF - _MARK_SPACE
    kept = diff[:end] if diff[end - 1] == "\n" else f"{diff[:end]}\n"
    missing = diff.count("\n", end)
    return f"{kept}\\ {missing} more lines are not shown\n"


def cut_input(value: Any) -> Any:
    """Return the input of a tool with at most `MAX_INPUT` characters of text; cut texts and lists end with a mark."""
    return _InputCutter().cut(value, 0)


class _InputCutter:
    """Copies a value until its size is used up."""

    def __init__(self) -> None:
        self._left = MAX_INPUT

    def cut(self, value: Any, depth: int) -> Any:
        """Return the value as far as it fits."""
        self._left -= _ITEM_SIZE
        match value:
            case str():
                return self._cut_text(value)
            case Mapping() | list() | tuple() if depth >= MAX_DEPTH:
                return "... (nested too deeply)"
            case Mapping():
                return self._cut_mapping(value, depth)
            case list() | tuple():
                return self._cut_list(value, depth)
        return value

    def _cut_text(self, text: str) -> str:
        available, self._left = self._left, self._left - len(text)
        if len(text) <= max(available, _MARK_SPACE):
            return text
        kept = max(available - _MARK_SPACE, 0)
        return f"{text[:kept]}... ({len(text) - kept} more characters)"

    def _cut_mapping(self, mapping: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        for key, value in mapping.items():
            if self._left <= 0:
                copy["..."] = f"{len(mapping) - len(copy)} more keys"
                break
            copy[key] = self.cut(value, depth + 1)
        return copy

    def _cut_list(self, items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        copy: list[Any] = []
        for item in items:
            if self._left <= 0:
                copy.append(f"... ({len(items) - len(copy)} more items)")
                break
            copy.append(self.cut(item, depth + 1))
        return copy
