"""When a message that could not be delivered is tried again."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MINUTE, HOUR = 60.0, 3600.0
DELAYS = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 10 * HOUR)
"""Seconds behind each attempt that failed; 8 attempts in about a day."""
ATTEMPTS = len(DELAYS) + 1
JITTER = 0.2
"""Of the delay, at random: those that failed together do not come back together."""
LONGEST_WAIT = 24 * HOUR
"""However long a receiver asks for."""
_ASKS_TO_WAIT = frozenset({429, 502, 503, 504})


def delay_after(attempts: int, chance: float, asked: float | None = None) -> float | None:
    """Seconds until the next attempt; None: there is no other one.

    Args:
        attempts: How many there were.
        chance: A random number from 0 to 1.
        asked: Seconds that the receiver wants to be left alone for.
    """
    if attempts >= ATTEMPTS:
        return None
    usual = DELAYS[attempts - 1] * (1 + JITTER * chance)
    return max(usual, min(asked or 0.0, LONGEST_WAIT))


def asked_delay(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """What `Retry-After` says, in seconds; None: nothing, or nothing readable. Source: RFC 9110, section 10.2.3."""
    said = headers.get("retry-after", "").strip()
    if status not in _ASKS_TO_WAIT or not said:
        return None
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        when = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)


def iso(ms: int) -> str:
    """A time in milliseconds since the epoch as in ISO 8601, UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
