"""Which messages of a stored session of Gemini CLI are still part of it.

Rows are only appended. `$rewindTo` removes a message and all that follow. A list of messages (`$set.messages`) replaces
all before it:

- without new messages: the messages after its last one are removed, as after a prompt that failed or was stopped. On
  resume only the context of the session remains at first; the complete list follows and restores the rest.
- with new messages in place of old ones: the context was compacted. The omitted messages stay part of the conversation.

Lists have gaps, because in the ACP mode two parts of the CLI write the file and neither knows all messages.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_mux.sdk.session_files import read_json_objects
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


def removed_messages(path: Path) -> Collection[str]:
    """Return the ids of the messages that are no longer part of the conversation."""
    history = StoredHistory()
    for row in read_json_objects(path):
        history.apply(row)
    return history.removed - {""}  # messages without an id are not tracked


class StoredHistory:
    """Tracks the list of messages by their ids."""

    def __init__(self) -> None:
        self.removed: set[str] = set()
        self._ids: dict[str, None] = {}
        self._last_removed: Sequence[str] = ()

    def apply(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Apply a row; when it compacts the context, return the messages that replace earlier ones."""
        message_id, back_to = text(row.get("id")), text(row.get("$rewindTo"))
        messages = mapping(row.get("$set")).get("messages")
        if back_to:
            ids = list(self._ids)
            self._remove(ids[ids.index(back_to) :] if back_to in self._ids else ids)
        elif message_id:
            self._add(message_id)
        elif isinstance(messages, list):
            return self._replace({text(message.get("id")): message for message in rows(messages)})
        return []

    def _replace(self, messages: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        known = self._ids.keys() | self.removed
        new = [message for name, message in messages.items() if name not in known]
        if new and not self._ids.keys() <= messages.keys():
            self._ids = dict.fromkeys(messages)
            return new
        ids = list(self._ids)
        before = self._last_removed
        self._remove(ids[_end(ids, messages) :])
        for message_id in (*before[: _end(before, messages)], *messages):
            self._add(message_id)
        return []

    def _remove(self, ids: Sequence[str]) -> None:
        if ids:
            self._last_removed = ids
        for message_id in ids:
            del self._ids[message_id]
            self.removed.add(message_id)

    def _add(self, message_id: str) -> None:
        self._ids[message_id] = None
        self.removed.discard(message_id)


def _end(ids: Sequence[str], among: Collection[str]) -> int:
    """Return the position after the last of these ids that is among the others; 0 when none is."""
    return max((position for position, name in enumerate(ids, 1) if name in among), default=0)
