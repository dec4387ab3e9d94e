"""Where two sessions part: a fork from its origin, or two agents with the same task."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Literal

import msgspec

from agent_mux.sessions.conversation import Session, SessionMessage
from agent_mux.sessions.summary import SessionSummary


class Difference(msgspec.Struct, frozen=True, rename="camel", tag_field="op", tag="change"):
    """A part of one session that the other one has not, or has otherwise."""

    at: int
    """Where in the first session: the number of its first message, from 0."""
    removed: list[SessionMessage]
    """Messages that only the first one has."""
    added: list[SessionMessage]
    """Messages that only the second one has."""


class SessionDiff(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Two sessions side by side."""

    first: SessionSummary
    second: SessionSummary
    common: int
    """Messages that both begin with."""
    changes: list[Difference]

    @property
    def is_same(self) -> bool:
        """The same was said and done in both."""
        return not self.changes


def diff(first: Session, second: Session) -> SessionDiff:
    """Compare what was said and done; times, models and the ids of calls do not matter."""
    left, right = _keys(first.messages), _keys(second.messages)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    matcher = SequenceMatcher(None, left[common:], right[common:], autojunk=False)
    changes = [
        Difference(common + a, first.messages[common + a : common + b], second.messages[common + c : common + d])
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]
    return SessionDiff(first=first.summary, second=second.summary, common=common, changes=changes)


def _keys(messages: Sequence[SessionMessage]) -> list[bytes]:
    return [msgspec.json.encode(_key(message)) for message in messages]


def _key(message: SessionMessage) -> tuple[Literal["user", "assistant"], str, list[Any]]:
    return message.role, message.text, [(tool.name, tool.input, tool.output, tool.error) for tool in message.tools]
