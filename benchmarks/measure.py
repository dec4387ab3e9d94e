"""Interleaved rounds and their medians."""

import time
from collections.abc import Callable
from statistics import median


def interleaved(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds per contestant; each round runs all of them, so that noise hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}


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
