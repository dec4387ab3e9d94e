"""Strengths from pairs. Expectations are computed by hand: every two trials begin with one tie, a win counts 1."""

import pytest

from agent_evaluation.strategies.bradley_terry import expected_shares, strengths
from agent_evaluation.strategies.judging import PairVerdict


def verdict(first: str, second: str, preferred: str | None) -> PairVerdict:
    return PairVerdict(pair=(first, second), preferred=preferred, is_consistent=True)


def approximately(**values: float) -> object:
    return pytest.approx(values, abs=1e-6)


def test_nothing_is_known_without_comparisons() -> None:
    assert strengths([]) == {}
    assert expected_shares([]) == {}


def test_one_win_of_two() -> None:
    # x has 1.5 of 2 comparisons: its strength is three times that of y.
    assert strengths([verdict("x", "y", "x")]) == approximately(x=0.75, y=0.25)
    assert expected_shares([verdict("x", "y", "x")]) == approximately(x=0.75, y=0.25)


def test_ties_and_circles_are_equal() -> None:
    third = approximately(a=1 / 3, b=1 / 3, c=1 / 3)
    assert strengths([verdict("a", "b", None), verdict("a", "c", None), verdict("b", "c", None)]) == third
    assert strengths([verdict("a", "b", "a"), verdict("b", "c", "b"), verdict("a", "c", "c")]) == third


def test_three_in_a_clear_order() -> None:
    # Wins 3, 2 and 1 of 4. With p(b) = 1 and p(a) = r, symmetry gives p(c) = 1 / r, and the wins of a are
    # 2r / (1 + r) + 2r² / (1 + r²) = 3, that is r³ - r² - r - 3 = 0 with the root r = 2.130395.
    r = 2.130395
    total = r + 1 + 1 / r
    found = [verdict("a", "b", "a"), verdict("a", "c", "a"), verdict("b", "c", "b")]
    assert strengths(found) == approximately(a=r / total, b=1 / total, c=1 / r / total)
    assert expected_shares(found) == approximately(a=0.75, b=0.5, c=0.25)
    assert strengths(reversed(found)) == strengths(found)


def test_a_win_over_a_strong_trial_counts_more_than_one_over_a_weak_trial() -> None:
    # d and e each win once and lose once; d against a, which beats everyone else, e against c, which loses to all.
    found = [
        verdict("a", "b", "a"), verdict("a", "c", "a"), verdict("b", "c", "b"), verdict("a", "d", "d"),
        verdict("b", "d", "b"), verdict("c", "e", "e"), verdict("b", "e", "b"),
    ]  # fmt: skip
    found_strengths = strengths(found)
    assert found_strengths["d"] > found_strengths["e"]
    assert sum(found_strengths.values()) == pytest.approx(1.0)


def test_undefeated_trials_have_finite_strengths() -> None:
    found = strengths([verdict("a", "b", "a"), verdict("c", "d", "c")])
    # Two separate pairs are alike: a and c win 2.5 of 4, b and d 1.5 of 4.
    assert found["a"] == pytest.approx(found["c"])
    assert found["b"] == pytest.approx(found["d"])
    assert 1 > found["a"] > found["b"] > 0
