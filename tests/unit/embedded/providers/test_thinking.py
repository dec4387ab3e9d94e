"""Thinking budgets and levels."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.behavior import ThinkingDecay
from agent_loop.loop.model_calls import decayed_budget
from agent_loop.providers.provider import ModelSettings
from agent_loop.providers.pydantic_ai.settings import level_of


@pytest.mark.parametrize(("turn", "budget"), [(0, 8000), (1, 8000), (2, 4000), (3, 2000), (4, 1500), (400, 1500)])
def test_thinking_decay_tapers_geometrically_to_its_floor(turn: int, budget: int) -> None:
    assert decayed_budget(8000, ThinkingDecay(after_turn=2, factor=0.5, floor=1500), turn) == budget


def test_thinking_decay_may_be_a_function_of_turn_and_base() -> None:
    assert decayed_budget(1000, lambda turn, base: base - 100 * turn, 3) == 700


def test_no_thinking_decay_leaves_the_base() -> None:
    assert decayed_budget(1000, None, 7) == 1000


def test_nan_counts_as_the_base() -> None:
    assert decayed_budget(1000, lambda _turn, _base: math.nan, 1) == 1000


@given(
    base=st.integers(0, 1 << 20),
    wanted=st.floats(allow_nan=True) | st.integers(-(1 << 40), 1 << 40),
    turn=st.integers(0, 10_000),
)
def test_decayed_budget_is_always_within_zero_and_base(base: int, wanted: float, turn: int) -> None:
    assert 0 <= decayed_budget(base, lambda _turn, _base: wanted, turn) <= base


@given(base=st.integers(0, 1 << 20), factor=st.floats(0, 1), floor=st.integers(0, 1 << 21), turn=st.integers(0, 10_000))
def test_tapered_budget_is_always_within_zero_and_base(base: int, factor: float, floor: int, turn: int) -> None:
    assert 0 <= decayed_budget(base, ThinkingDecay(after_turn=1, factor=factor, floor=floor), turn) <= base


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        (ModelSettings(), None),
        (ModelSettings(thinking="low"), "low"),
        (ModelSettings(thinking="high", thinking_budget=0), "off"),
        (ModelSettings(thinking_budget=100), "minimal"),
        (ModelSettings(thinking_budget=2048), "medium"),
        (ModelSettings(thinking_budget=8193), "max"),
        (ModelSettings(thinking_budget=99_999), "max"),
    ],
)
def test_a_budget_is_the_lowest_level_that_has_as_much(settings: ModelSettings, level: str | None) -> None:
    assert level_of(settings) == level
