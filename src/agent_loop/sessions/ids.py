"""Ids of sessions and loops.

A loop id is `{session_id}.{config segment}.{number}`. Segments contain no dot, so that the id can be parsed even if the
session id contains dots.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable

import msgspec

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's Base32
_SHIFTS = range(125, -1, -5)  # 26 digits of 5 bits
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_LOOP_ID = re.compile(r"(?P<session>.+)\.(?P<config>[A-Za-z0-9_-]+)\.(?P<number>[0-9]{1,9})", re.DOTALL)
SUB_AGENT_SUFFIX = "-sub"
"""End of the ids of delegations and of the sessions of sub-agents."""
MAX_SEGMENT = 80
"""Maximum characters of a segment, which appears in logs and file names. Longer ones are cut and get a hash."""


class LoopName(msgspec.Struct, frozen=True):
    """The parts of a loop id."""

    session_id: str
    config: str
    number: int


def new_id(*, clock: Callable[[], float] = time.time, entropy: Callable[[int], bytes] = os.urandom) -> str:
    """Return a new id for a session or an agent: a ULID, so that ids sort by time. `clock`: Unix time in seconds."""
    value = int(clock() * 1000).to_bytes(6, "big") + entropy(10)
    number = int.from_bytes(value, "big")  # encoded here, because importing `python-ulid` takes 0.05 s
    return "".join([_DIGITS[number >> shift & 31] for shift in _SHIFTS])


def loop_id(session_id: str, segment: str, number: int) -> str:
    """Return the id of the `number`th loop (from 1) with this configuration in the session."""
    return f"{session_id}.{segment}.{number}"


def parse_loop_id(text: str) -> LoopName | None:
    """Return the parts of a loop id; None for other text."""
    match = _LOOP_ID.fullmatch(text)
    return LoopName(match["session"], match["config"], int(match["number"])) if match else None


def next_number(loop_ids: Iterable[str], session_id: str, segment: str) -> int:
    """Return the number of the next loop with this configuration, given the existing loop ids."""
    names = (parse_loop_id(each) for each in loop_ids)
    taken = [name.number for name in names if name and (name.session_id, name.config) == (session_id, segment)]
    return max(taken, default=0) + 1


def config_segment(provider: str, model: str, thinking: str | None = None, config_id: str | None = None) -> str:
    """Return the configuration segment of a loop id: `config_id`, or provider, model and thinking level.

    Characters other than letters, digits, `_` and `-` are replaced.
    """
    parts = (config_id,) if config_id else (provider, model, thinking if thinking != "off" else None)
    segment = (
        "-".join(cleaned for part in parts if part and (cleaned := _INVALID_CHARACTERS.sub("_", part))) or "default"
    )
    if len(segment) <= MAX_SEGMENT:
        return segment
    return f"{segment[: MAX_SEGMENT - 9]}-{hashlib.sha256(segment.encode()).hexdigest()[:8]}"
