"""Interleaved rounds and their medians."""

import time
from collections.abc import Callable
from statistics import median


class Rounds(dict[str, list[float]]):
    """Seconds per contestant, one figure a round."""

    def typical(self, name: str) -> float:
        """The median of one contestant, in seconds."""
        return median(self[name])

    def ratio(self, name: str, to: str) -> float:
        """How many times as long as another; the median over the rounds, whose noise hits both alike."""
        return median(ours / theirs for ours, theirs in zip(self[name], self[to], strict=True))

    def difference(self, name: str, to: str) -> float:
        """How many seconds more than another; the median over the rounds."""
        return median(ours - theirs for ours, theirs in zip(self[name], self[to], strict=True))


def interleaved(
    contestants: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> Rounds:
    """Each round runs all contestants. For pure computation: `time.process_time`, which others cannot disturb."""
    seconds = Rounds({name: [] for name in contestants})
    for _ in range(rounds):
        for name, run in contestants.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return seconds


def report(title: str, lines: list[str]) -> None:
    """Print one benchmark."""
    print(f"\n## {title}")
    for line in lines:
        print(f"  {line}")


def verdict(value: float, least: float | None = None, most: float | None = None) -> str:
    """How a figure stands to its target."""
    good = (least is None or value >= least) and (most is None or value <= most)
    target = f">= {least:g}" if least is not None else f"<= {most:g}"
    return f"(target {target}: {'met' if good else 'MISSED'})"
