"""Interleaved measurement of several contestants, medians, and the output of results."""

import time
from collections.abc import Callable
from statistics import median


class Rounds(dict[str, list[float]]):
    """Seconds by contestant, one value per round."""

    def typical(self, name: str) -> float:
        """Return the median of one contestant, in seconds."""
        return median(self[name])

    def ratio(self, name: str, to: str) -> float:
        """Return the median over the rounds of the time of `name` divided by that of `to`.

        Noise within a round affects both contestants alike.
        """
        return median(ours / theirs for ours, theirs in zip(self[name], self[to], strict=True))

    def difference(self, name: str, to: str) -> float:
        """Return the median over the rounds of the time of `name` minus that of `to`, in seconds."""
        return median(ours - theirs for ours, theirs in zip(self[name], self[to], strict=True))


def interleaved(
    contestants: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> Rounds:
    """Run all contestants in each round and return their times.

    For pure computation, use `time.process_time` as the clock: other processes do not affect it.
    """
    seconds = Rounds({name: [] for name in contestants})
    for _ in range(rounds):
        for name, run in contestants.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return seconds


def report(title: str, lines: list[str]) -> None:
    """Print the results of one benchmark."""
    print(f"\n## {title}")
    for line in lines:
        print(f"  {line}")


def verdict(value: float, least: float | None = None, most: float | None = None) -> str:
    """Return the target of a value and whether it is met."""
    is_met = (least is None or value >= least) and (most is None or value <= most)
    target = f">= {least:g}" if least is not None else f"<= {most:g}"
    return f"(target {target}: {'met' if is_met else 'MISSED'})"
