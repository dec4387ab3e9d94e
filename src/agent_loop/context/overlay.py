"""A stored compaction: the history stays complete, and requests begin with a shorter replacement.

Later turns reuse the overlay, so that provider caches stay valid and no summary is computed twice.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from agent_loop.messages import Message
from agent_loop.messages.formatting import encode_json


class Overlay(msgspec.Struct, frozen=True):
    """The number of replaced messages at the beginning of a history, and their replacement."""

    covered: int
    replacement: tuple[Message, ...]

    def apply(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages to send for this history."""
        return (*self.replacement, *messages[self.covered :])


class _StoredOverlay(msgspec.Struct, frozen=True):
    """An overlay as plain data. A number refers to a message of the stored history by its index."""

    fingerprint: str
    covered: int
    parts: tuple[int | Message, ...]


def make_overlay(view: Sequence[Message], compacted: Sequence[Message], history_length: int, fresh: int) -> Overlay:
    """Return the overlay that turns a history into `compacted`.

    `fresh`: number of messages at the end of `view` that are unchanged messages of the history.
    """
    kept = 0
    while kept < min(fresh, len(compacted)) and compacted[-1 - kept] is view[-1 - kept]:
        kept += 1
    return Overlay(history_length - kept, tuple(compacted[: len(compacted) - kept]))


def save_overlay(overlay: Overlay, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the overlay as plain data for `AgentState.extra`."""
    covered = messages[: overlay.covered]
    index_of = {id(each): index for index, each in enumerate(covered)}
    parts = tuple(index_of.get(id(each), each) for each in overlay.replacement)
    plain: dict[str, Any] = msgspec.to_builtins(
        _StoredOverlay(_fingerprint(covered), overlay.covered, parts), enc_hook=str
    )
    return plain


def load_overlay(plain: Mapping[str, Any], messages: Sequence[Message]) -> Overlay | None:
    """Return the overlay if it was made of this history; None for other histories and invalid data."""
    try:
        data = msgspec.convert(plain, _StoredOverlay)
    except msgspec.ValidationError:
        return None
    covered = messages[: data.covered]
    is_valid = 0 <= data.covered <= len(messages) and all(
        0 <= part < data.covered for part in data.parts if isinstance(part, int)
    )
    if not is_valid or data.fingerprint != _fingerprint(covered):
        return None
    return Overlay(data.covered, tuple(messages[part] if isinstance(part, int) else part for part in data.parts))


def _fingerprint(messages: Sequence[Message]) -> str:
    hashed = sha256()
    for message in messages:
        hashed.update(encode_json(message) + b"\n")
    return hashed.hexdigest()
