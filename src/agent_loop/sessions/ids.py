"""Names of sessions and loops. Source: phi-core, `derive_config_segment`, "loop_id".

A loop is called `{session_id}.{config segment}.{number}`. Segments have no dot, so that a name can be taken apart
again, also where the session's own name has some.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable

import msgspec
from ulid import ULID

_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_LOOP_ID = re.compile(r"(?P<session>.+)\.(?P<config>[A-Za-z0-9_-]+)\.(?P<number>[0-9]{1,9})", re.DOTALL)
MAX_SEGMENT = 80
"""Characters: loop ids stand in logs and file names. Longer segments end in a hash of all of it."""


class LoopName(msgspec.Struct, frozen=True):
    """What a loop id says."""

    session_id: str
    config: str
    number: int


def new_id(*, clock: Callable[[], float] = time.time, entropy: Callable[[int], bytes] = os.urandom) -> str:
    """A new id for a session or an agent: a ULID, so ids sort by time. `clock` gives seconds since the Unix epoch."""
    milliseconds = int(clock() * 1000)
    return str(ULID.from_bytes(milliseconds.to_bytes(6, "big") + entropy(10)))


def loop_id(session_id: str, segment: str, number: int) -> str:
    """The name of the loop that is the `number`th (from 1) of its configuration in this session."""
    return f"{session_id}.{segment}.{number}"


def parse_loop_id(text: str) -> LoopName | None:
    """What a loop id says; None for what is no loop id of ours."""
    match = _LOOP_ID.fullmatch(text)
    return LoopName(match["session"], match["config"], int(match["number"])) if match else None


def next_number(loop_ids: Iterable[str], session_id: str, segment: str) -> int:
    """The number for the next loop of this configuration, when these loops are there already."""
    names = (parse_loop_id(each) for each in loop_ids)
    taken = [name.number for name in names if name and (name.session_id, name.config) == (session_id, segment)]
    return max(taken, default=0) + 1


def config_segment(provider: str, model: str, thinking: str | None = None, config_id: str | None = None) -> str:
    """The part of a loop id that says how it was configured: `config_id`, or what is known. Without dots and blanks."""
    parts = (config_id,) if config_id else (provider, model, thinking if thinking != "off" else None)
    segment = (
        "-".join(cleaned for part in parts if part and (cleaned := _INVALID_CHARACTERS.sub("_", part))) or "default"
    )
    if len(segment) <= MAX_SEGMENT:
        return segment
    return f"{segment[: MAX_SEGMENT - 9]}-{hashlib.sha256(segment.encode()).hexdigest()[:8]}"
