"""Limits of what an approval request shows."""

from typing import Any

import pytest

from agent_mux.assembler import cut_diff, cut_input
from agent_mux.assembler.shown_requests import MAX_DIFF, MAX_INPUT

LONG = "x" * (MAX_INPUT * 2)


def length_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(key) + length_of(part) for key, part in value.items())
    return sum(map(length_of, value)) if isinstance(value, list) else len(str(value))


def test_short_values_are_kept() -> None:
    given = {"path": "a", "edits": [{"old": "x", "all": True}], "n": None}
    assert cut_input(given) == given
    assert (cut_diff("-a\n+b\n"), cut_diff(None)) == ("-a\n+b\n", None)


@pytest.mark.parametrize(
    "given",
    [LONG, {"content": LONG, "path": "a"}, [LONG, LONG], ["x"] * 200_000, {str(n): n for n in range(200_000)}],
    ids=["text", "field", "texts", "items", "keys"],
)
def test_long_input_is_cut_with_a_mark(given: Any) -> None:
    cut = cut_input(given)
    assert length_of(cut) <= MAX_INPUT + 1000
    assert " more " in str(cut)


def test_deep_input_is_cut() -> None:
    deep: Any = "end"
    for _ in range(10_000):
        deep = [deep]
    assert "nested too deeply" in str(cut_input(deep))


@pytest.mark.parametrize("diff", ["+line\n" * MAX_DIFF, "+" + "x" * (MAX_DIFF * 3)], ids=["lines", "one line"])
def test_long_diff_is_cut_after_a_line_with_a_mark(diff: str) -> None:
    cut = cut_diff(diff)
    assert cut is not None
    assert len(cut) <= MAX_DIFF
    *lines, mark, end = cut.split("\n")
    assert mark.startswith("\\ ")
    assert mark.endswith(" more lines are not shown")
    assert all(line.startswith("+") for line in lines)
    assert end == ""
    assert cut_diff(cut) == cut
