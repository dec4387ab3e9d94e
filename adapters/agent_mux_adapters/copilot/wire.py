"""The native shapes of Copilot: a typed decode for the commonest lines, plain access to all others.

Both protocols carry the same session events: `{type, data, id, timestamp, parentId, ephemeral?, agentId?}`. `json`
prints one per line; `headless` wraps it in a `session.event` notification. Source: recordings of Copilot CLI 1.0.102
and its `schemas/session-events.schema.json`.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.facts import Fact
from agent_mux_adapters._dialects.tolerant import text

_COMMON = rb'\{"type":"assistant\.(?:message_delta|reasoning_delta|streaming_delta|tool_call_delta)"'
_LINE = re.compile(_COMMON)
_NOTIFICATION = re.compile(
    rb'\{"jsonrpc":"2\.0","method":"session\.event","params":\{"sessionId":"[^"]{0,99}","event":' + _COMMON
)
"""How the lines begin that come for every few words of the model. What begins otherwise is read as an object."""


class DeltaData(msgspec.Struct, gc=False, rename="camel"):
    """A fragment of a message, of a thought, or of the input of a call."""

    message_id: str = ""
    reasoning_id: str = ""
    delta_content: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    input_delta: str = ""


class DeltaEvent(msgspec.Struct, gc=False, rename="camel"):
    """A whole line of `json`, or the event in one of `headless`, as far as fragments go."""

    type: str
    data: DeltaData
    agent_id: str | None = None


class _Params(msgspec.Struct, gc=False):
    event: DeltaEvent


class _Notification(msgspec.Struct, gc=False):
    params: _Params


_decode_event = msgspec.json.Decoder(DeltaEvent).decode
_decode_notification = msgspec.json.Decoder(_Notification).decode


def delta_of_line(line: bytes) -> DeltaEvent | None:
    """The fragment that a line of `json` carries; None for any other line."""
    if _LINE.match(line) is None:
        return None
    try:
        return _decode_event(line)
    except (ValueError, RecursionError):
        return None


def delta_of_notification(line: bytes) -> DeltaEvent | None:
    """The fragment that a message of `headless` carries; None for any other message."""
    if _NOTIFICATION.match(line) is None:
        return None
    try:
        return _decode_notification(line).params.event
    except (ValueError, RecursionError):
        return None


def agent_of(event: Mapping[str, Any]) -> str:
    """The id of the sub-agent that an event belongs to; empty for the main agent."""
    return text(event.get("agentId"))


def mapped_or_not(steps: tuple[Any, ...], ignored: type[Fact]) -> tuple[Any, ...]:
    """A line is ignored only when nothing else is said about it: `Ignored` beside other facts goes."""
    silent = [step for step in steps if isinstance(step, ignored)]
    if not silent:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (silent[0], *rest)
