"""Confidence intervals of rates from few trials."""

from math import sqrt

Z_95 = 1.959964
"""Quantile of the normal distribution for 95 %."""


def wilson_interval(passes: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a pass rate: its lower and its upper bound, from 0 to 1.

    It is usable from one trial on, and also where all trials pass or none does. Without trials, it is 0 to 1.

    Raises:
        ValueError: The numbers are negative, or there are more passes than trials.
    """
    if not 0 <= passes <= total:
        raise ValueError(f"{passes} passes of {total} trials is not possible")
    if total == 0:
        return 0.0, 1.0
    rate = passes / total
    scale = 1 + z * z / total
    center = (rate + z * z / (2 * total)) / scale
    margin = z / scale * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    low = 0.0 if passes == 0 else max(center - margin, 0.0)
    high = 1.0 if passes == total else min(center + margin, 1.0)
    return low, high
