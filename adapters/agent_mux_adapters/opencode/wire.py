"""Native lines: the shape of the frequent delta events, recognition of OpenCode's lines, and unknown lines."""

from typing import Any, TypeVar

import msgspec

from agent_mux.sdk.codec import CodecOutput
from agent_mux.sdk.facts import Fact, Ignored, Unknown
from agent_mux_adapters._dialects.tolerant import mapping, text

_StepT = TypeVar("_StepT", bound=CodecOutput)
DELTA = "message.part.delta"
DELTA_MARK = f'","type":"{DELTA}",'.encode()
MARK_AT = 37
"""Position of the type in an event's line: behind the id, whose length is constant."""
PARTS = {
    "reasoning": "reasoning",
    "step_finish": "step-finish",
    "step_start": "step-start",
    "text": "text",
    "tool_use": "tool",
}
"""Line type of `opencode run` -> type of the part in it."""
_WRAP = 1 << 36


class DeltaProperties(msgspec.Struct, gc=False):
    """The properties of a delta event."""

    session: str = msgspec.field(name="sessionID")
    part: str = msgspec.field(name="partID")
    field: str
    delta: str


class Delta(msgspec.Struct, gc=False):
    """A delta event, decoded in one pass (the hot path)."""

    properties: DeltaProperties


decode_delta = msgspec.json.Decoder(Delta).decode


def delay_until(moment: int, event_id: str) -> int:
    """Return the milliseconds from an event to a moment (milliseconds since the epoch); 0 if unknown.

    OpenCode's ids begin with their time: six bytes in hex, milliseconds times 4096, without the highest bits.
    """
    try:
        now = int(event_id.removeprefix("evt_")[:12], 16) >> 12
    except ValueError:
        return 0
    delay = (moment - now) % _WRAP
    return delay if delay < _WRAP // 2 else 0


def unknown_line(kind: str, line: bytes) -> tuple[Unknown]:
    """Return the fact for a line of an unknown type or shape."""
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def drop_redundant_ignored(steps: tuple[_StepT, ...]) -> tuple[_StepT, ...]:
    """Keep an `Ignored` fact only for a line from which no other fact follows."""
    ignored = [step for step in steps if isinstance(step, Ignored)]
    if not ignored:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (ignored[0], *rest)


def is_run_line(value: Any) -> bool:
    """Return whether a line is printed by `opencode run --format json`."""
    line = mapping(value)
    return _is_session(line.get("sessionID")) and text(line.get("type")) in (*PARTS, "error")


def is_serve_line(value: Any) -> bool:
    """Return whether a line is an event of `opencode serve`, or the first line of the bridge."""
    line = mapping(value)
    event_id = line.get("id")
    is_event = isinstance(event_id, str) and event_id.startswith("evt_")
    return "properties" in line and (is_event or line.get("type") == "bridge.starting")


def _is_session(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("ses_")
