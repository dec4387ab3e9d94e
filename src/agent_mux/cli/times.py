"""Times as people give them on the command line: a day, a moment, or so long ago."""

import re
from datetime import datetime, timedelta

from agent_mux.cli.errors import bad_input

_AGO = re.compile(r"(\d{1,6})([mhdw])")
LONGEST_SPAN = timedelta(days=36525)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(said: str | None, flag: str, *, now: datetime | None = None) -> datetime | None:
    """The time that is meant: a day, a moment, or `7d` (m, h, d, w) before now. Local, unless it says otherwise."""
    if said is None:
        return None
    ago = _AGO.fullmatch(said.strip())
    if ago is not None:
        return (now or datetime.now().astimezone()) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        return datetime.fromisoformat(said.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        allowed = "give a day (2026-11-21), a moment (2026-11-21T14:30) or how long ago (7d, 12h)"
        raise bad_input(f"{flag} {said!r} is no time; {allowed}") from error


def span(said: str, flag: str) -> timedelta:
    """How long: `24h` (m, h, d, w)."""
    found = _AGO.fullmatch(said.strip())
    length = None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})
    if length is None or length > LONGEST_SPAN:
        raise bad_input(f"{flag} {said!r} is no time span; give a number and m, h, d or w (24h, 90d), up to 100 years")
    return length
