"""Thousands of conversations that no agent ever had, made of those that it had: `python -m agent_mux.testing.fuzz`.

Each case takes a recording and does a few things to it: lines are dropped, said twice, moved, cut short, or taken from
another recording; values get other values and other types. Nothing may be raised, and the contract is kept.
"""

from collections.abc import Iterator, Sequence
from random import Random

from agent_mux.testing.conformance.recorded import Recorded
from agent_mux.testing.conformance.tolerance import ODD_LINES, check_lines, with_odd_value

__all__ = ["fuzz", "mutated"]

MOST_LINES = 150  # of a recording: enough to begin, work and end; longer ones lose a part of their middle
MOST_MUTATIONS = 6


def fuzz(recordings: Sequence[Recorded], cases: int, seed: int) -> Iterator[str]:
    """The problems found in so many cases, spread over all recordings. The same seed gives the same cases."""
    others = [line for recorded in recordings for line in recorded.fixture.stdout_lines[:MOST_LINES]]
    for number in range(cases):
        recorded = recordings[number % len(recordings)]
        random = Random(f"{seed}/{number}")  # noqa: S311  # a test, not a secret
        lines = mutated(_shortened(recorded.fixture.stdout_lines, random), others, random)
        yield from check_lines(recorded, lines, f"case {number} of seed {seed} ({recorded!r})")


def mutated(lines: Sequence[bytes], others: Sequence[bytes], random: Random) -> list[bytes]:
    """The lines after one to six mutations."""
    result = list(lines)
    for _ in range(random.randint(1, MOST_MUTATIONS)):
        random.choice(_MUTATIONS)(result, others, random)
    return result


def _shortened(lines: Sequence[bytes], random: Random) -> Sequence[bytes]:
    if len(lines) <= MOST_LINES:
        return lines
    start = random.randrange(MOST_LINES // 2)
    return [*lines[:start], *lines[start - MOST_LINES :]]


def _drop(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        start = random.randrange(len(lines))
        del lines[start : start + random.randint(1, 3)]


def _repeat(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def _move(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))


def _cut(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        place = random.randrange(len(lines))
        lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]


def _splice(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:
    if others:
        start = random.randrange(len(others))
        place = random.randrange(len(lines) + 1)
        lines[place:place] = others[start : start + random.randint(1, 8)]


def _disturb(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    lines.insert(random.randrange(len(lines) + 1), random.choice(ODD_LINES))


def _change(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        place = random.randrange(len(lines))
        lines[place] = with_odd_value(lines[place], random)


_MUTATIONS = (_drop, _repeat, _move, _cut, _splice, _disturb, _change, _change, _change)
