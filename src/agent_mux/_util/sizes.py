"""Sizes as people write them: a number with a unit (`500MB`, `2GiB`), or a number of the unit that an option names."""

import re

UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
"""The units of a size in lower case, in bytes."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([a-z]*)", re.IGNORECASE)


def parse_size(text: str, *, bare: str) -> int:
    """Return the bytes of a size; a number without a unit has the unit `bare`. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    unit = UNITS.get((found[2] or bare).lower()) if found is not None else None
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a size; give a number of {bare}, or one with kB, MB, GB, KiB, MiB or GiB")
    return round(float(found[1]) * unit)
