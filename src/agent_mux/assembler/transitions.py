"""The states of an event stream, and one table with every transition between them.

Pausing is independent of these states: `SessionAssembler` pauses and resumes.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class StreamState(StrEnum):
    """What is open in the stream."""

    IDLE = "idle"
    """No turn: none has begun, or the agent handed back."""
    NOTICED = "noticed"
    """A turn for an event that is not work of the agent, so that its last closing message stays valid."""
    WORKING = "working"
    """A turn in which the agent works."""
    HELD = "held"
    """A turn that the agent handed back, and that ends when the last of its sub-agents reports."""
    ENDED = "ended"
    """Nothing: `session_end` was emitted, and only diagnostics may follow."""


class StreamInput(StrEnum):
    """What the facts ask for. `StreamAssembler` has the input of each class of facts."""

    MENTION = "mention"
    """An event that may lie anywhere in the session."""
    NOTICE = "notice"
    """An event that must lie in a turn, but is not work."""
    WORK = "work"
    """The agent works: content, a step, a request, a repeated model call."""
    HAND_BACK = "hand_back"
    """The agent's closing message, while no sub-agent is open."""
    DELEGATE = "delegate"
    """The agent's closing message, while a sub-agent is open."""
    REPORT = "report"
    """The last open sub-agent reported."""
    RESTART = "restart"
    """A new process begins with the prompt again."""
    END = "end"
    """The run is over."""


class StreamEffect(StrEnum):
    """What a transition emits; `StreamStateMachine` performs it."""

    START = "start"
    """Emit `session_start`, unless that happened."""
    RENEW = "renew"
    """Forget the closing message; its failure becomes a recoverable error, because the run continues."""
    OPEN = "open"
    """Emit `turn_start`."""
    SETTLE = "settle"
    """Close the content and the requests of a turn that has a closing message, and count its cost."""
    CUT = "cut"
    """Close the sub-agents, the content and the requests of a turn without a closing message, and count its cost."""
    HOLD = "hold"
    """End the step, and keep the cost of the turn for its delayed `turn_end`."""
    CLOSE = "close"
    """Emit `turn_end`."""
    RELEASE = "release"
    """Emit the delayed `turn_end`."""


class Transition(NamedTuple):
    """The effects of an input, in this order, and the state after them."""

    effects: tuple[StreamEffect, ...]
    next_state: StreamState


_IDLE, _NOTICED, _WORKING, _HELD, _ENDED = StreamState
_MENTION, _NOTICE, _WORK, _HAND_BACK, _DELEGATE, _REPORT, _RESTART, _END = StreamInput
_START, _RENEW, _OPEN, _SETTLE, _CUT, _HOLD, _CLOSE, _RELEASE = StreamEffect


def _to(next_state: StreamState, *effects: StreamEffect) -> Transition:
    return Transition(effects, next_state)


# A closing message is always preceded by WORK, so HAND_BACK and DELEGATE occur in WORKING only. A sub-agent is open in
# a turn only, so REPORT does not occur in IDLE.
TRANSITIONS: Mapping[StreamState, Mapping[StreamInput, Transition | None]] = {
    _IDLE: {
        _MENTION: _to(_IDLE, _START),
        _NOTICE: _to(_NOTICED, _START, _OPEN),
        _WORK: _to(_WORKING, _START, _RENEW, _OPEN),
        _HAND_BACK: None,
        _DELEGATE: None,
        _REPORT: None,
        _RESTART: _to(_IDLE, _START, _CUT, _RENEW),
        _END: _to(_ENDED, _START, _CUT),
    },
    _NOTICED: {
        _MENTION: _to(_NOTICED),
        _NOTICE: _to(_NOTICED),
        _WORK: _to(_WORKING, _RENEW),
        _HAND_BACK: None,
        _DELEGATE: None,
        _REPORT: _to(_NOTICED),
        _RESTART: _to(_IDLE, _CUT, _CLOSE, _RENEW),
        _END: _to(_ENDED, _CUT, _CLOSE),
    },
    _WORKING: {
        _MENTION: _to(_WORKING),
        _NOTICE: _to(_WORKING),
        _WORK: _to(_WORKING),
        _HAND_BACK: _to(_IDLE, _SETTLE, _CLOSE),
        _DELEGATE: _to(_HELD, _SETTLE, _HOLD),
        _REPORT: _to(_WORKING),
        _RESTART: _to(_IDLE, _CUT, _CLOSE, _RENEW),
        _END: _to(_ENDED, _CUT, _CLOSE),
    },
    _HELD: {
        _MENTION: _to(_HELD),
        _NOTICE: _to(_NOTICED, _RELEASE, _OPEN),
        _WORK: _to(_WORKING, _RELEASE, _RENEW, _OPEN),
        _HAND_BACK: None,
        _DELEGATE: None,
        _REPORT: _to(_IDLE, _RELEASE),
        _RESTART: _to(_IDLE, _CUT, _RELEASE, _RENEW),
        _END: _to(_ENDED, _CUT, _RELEASE),
    },
    _ENDED: dict.fromkeys(StreamInput),
}
"""The transition for each state and input; None: the input is ignored, and so is the fact that caused it."""
