"""Strengths of more than two trials from comparisons in pairs, by the model of Bradley and Terry.

The probability that trial i is preferred to trial j is p(i) / (p(i) + p(j)). Unlike the share of pairs that a trial
wins, its strength depends on whom it was compared with, so that missing verdicts favour nobody.

Every two trials begin with one tie. Without it, a trial that wins all its comparisons has no finite strength, and
trials that no chain of comparisons connects cannot be ranked.
"""

from collections.abc import Iterable
from itertools import combinations

from agent_evaluation.strategies.judging import PairVerdict

_TOLERANCE = 1e-12
_MAX_ROUNDS = 10_000


def strengths(verdicts: Iterable[PairVerdict]) -> dict[str, float]:
    """Return the strength of each trial that was compared; their sum is 1. A tie is half a win for both."""
    found = list(verdicts)
    ids = sorted({one for verdict in found for one in verdict.pair})
    won = dict.fromkeys(ids, (len(ids) - 1) / 2)
    played = dict.fromkeys(combinations(ids, 2), 1.0)
    for verdict in found:
        first, second = sorted(verdict.pair)
        played[first, second] += 1
        for one in verdict.pair:
            won[one] += 0.5 if verdict.preferred is None else float(verdict.preferred == one)
    strength = dict.fromkeys(ids, 1 / len(ids)) if ids else {}
    for _ in range(_MAX_ROUNDS):
        following = _improved(strength, won, played)
        change = max((abs(following[one] - strength[one]) for one in ids), default=0.0)
        strength = following
        if change < _TOLERANCE:
            break
    return strength


def _improved(
    strength: dict[str, float], won: dict[str, float], played: dict[tuple[str, str], float]
) -> dict[str, float]:
    """Return strengths with a higher likelihood, by the algorithm of minorization and maximization."""
    weight = dict.fromkeys(strength, 0.0)
    for (first, second), count in played.items():
        share = count / (strength[first] + strength[second])
        weight[first] += share
        weight[second] += share
    raw = {one: won[one] / weight[one] if weight[one] else 1.0 for one in strength}
    total = sum(raw.values())
    return {one: value / total for one, value in raw.items()}


def expected_shares(verdicts: Iterable[PairVerdict]) -> dict[str, float]:
    """Return the share of comparisons with the other trials that each is expected to win, 0 to 1."""
    strength = strengths(verdicts)
    return {
        one: sum(mine / (mine + other) for name, other in strength.items() if name != one) / (len(strength) - 1)
        for one, mine in strength.items()
    }
