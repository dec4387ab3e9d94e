"""Lines of OpenCode: the hot path of its server's events, and how a line is accounted for."""

# MERGED DOC: """Which lines can only be OpenCode's."""
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent_mux.adapter import Step
from agent_mux.facts import Fact, Ignored, Unknown

_StepT = TypeVar("_StepT", bound=Step)


class DeltaProperties(msgspec.Struct, gc=False):
    """A fragment of a part."""

    session: str = msgspec.field(name="sessionID")
    part: str = msgspec.field(name="partID")
    field: str
    delta: str


class Delta(msgspec.Struct, gc=False):
    """A whole line that streams a fragment: the hot path, decoded in one go."""

    properties: DeltaProperties


DELTA = "message.part.delta"
DELTA_MARK = f'","type":"{DELTA}",'.encode()
MARK_AT = 37
"""Where a line says its type: behind an id, which always has the same length."""
decode_delta = msgspec.json.Decoder(Delta).decode

PARTS = {
    "reasoning": "reasoning",
    "step_finish": "step-finish",
    "step_start": "step-start",
    "text": "text",
    "tool_use": "tool",
}
"""Type of a line -> type of the part that it carries."""

_WRAP = 1 << 36


def delay_until(moment: int, event_id: str) -> int:
    """Milliseconds from an event to a moment (since the epoch).

    The ids of OpenCode begin with their time: six bytes in hex, milliseconds times 4096, without the highest bits.
    """
    try:
        now = int(event_id.removeprefix("evt_")[:12], 16) >> 12
    except ValueError:
        return 0
    delay = (moment - now) % _WRAP
    return delay if delay < _WRAP // 2 else 0


def unknown_line(kind: str, line: bytes) -> tuple[Unknown]:
    """A line that is not known."""
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def drop_redundant_ignored(steps: tuple[_StepT, ...]) -> tuple[_StepT, ...]:
    """A line is ignored only when nothing else is said about it."""
    ignored = [step for step in steps if isinstance(step, Ignored)]
    if not ignored:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (ignored[0], *rest)


def is_run_line(line: Mapping[str, Any]) -> bool:
    """A line of `opencode run --format json`."""
    return _is_session(line.get("sessionID")) and (line.get("type") in PARTS or line.get("type") == "error")


def is_serve_line(line: Mapping[str, Any]) -> bool:
    """An event of `opencode serve`, or the first line of the bridge."""
    event_id = line.get("id")
    is_event = isinstance(event_id, str) and event_id.startswith("evt_")
    return "properties" in line and (is_event or line.get("type") == "bridge.starting")


def _is_session(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("ses_")
