"""The lanes of a comparison: what they show of the output of agents."""

from typing import Any

import pytest

from agent_mux.cli.compare_lanes import KEYS, MAX_LAST_LINE, Lane, LaneStyle, draw_lanes
from agent_mux.cli.layout import ASCII, Symbols
from agent_mux.cli.terminal import Palette

NONE: Any = None  # a lane that only takes text needs neither a run nor a painter


@pytest.mark.parametrize(
    ("parts", "last"),
    [
        (["I'll ", "run the tests"], "I'll run the tests"),
        (["first\n", "second"], "second"),
        (["first\n", "\n", "  \n"], "first"),
        (["one\ntwo\nth", "ree\n"], "three"),
        ([], ""),
    ],
)
def test_lane_shows_the_last_line_whatever_its_parts(parts: list[str], last: str) -> None:
    lane = Lane("a-1", NONE, NONE, 0.0)
    for part in parts:
        lane.add_text(part)
    assert lane.last_line == last


def test_text_of_another_message_begins_a_line() -> None:
    lane = Lane("a-1", NONE, NONE, 0.0)
    lane.add_text("Working.")
    lane.end_line()
    assert lane.last_line == "Working."  # until there is another one
    lane.add_text("Fixed.")
    assert lane.last_line == "Fixed."


def test_endless_line_is_bounded() -> None:
    lane = Lane("a-1", NONE, NONE, 0.0)
    for _ in range(100):
        lane.add_text("x" * 100)
    assert len(lane.last_line) == len(lane._open_line) == MAX_LAST_LINE


@pytest.mark.parametrize(("width", "rows"), [(100, 1), (80, 1), (60, 2), (40, 2)])
@pytest.mark.parametrize("symbols", [Symbols(), ASCII], ids=["unicode", "ascii"])
def test_every_key_is_shown_in_any_width(width: int, rows: int, symbols: Symbols) -> None:
    style = LaneStyle(width=width, palette=Palette(enabled=False), symbols=symbols, is_unicode=symbols is not ASCII)
    _, *keys = draw_lanes([], 0, (0, 2), 3.0, style)
    assert all(any(key in row for row in keys) for key in KEYS)
    assert max(map(len, keys)) <= width
    assert len(keys) == rows
