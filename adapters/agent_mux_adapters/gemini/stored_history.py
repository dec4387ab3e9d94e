"""Which messages of a stored session of Gemini CLI are still part of it.

The file only grows. `$rewindTo` takes back a message and all that follow. A list of messages (`$set.messages`) stands
instead of all before it:

- without anything new: what follows its last message is taken back, as after a prompt that failed or was stopped. On
  resume, first nothing but the context of the session is left; the whole list follows, and brings it back.
- with something new instead of something old: the context was compacted. What the list leaves out was said even so.

Lists have gaps: in the ACP mode two parts of the CLI write the file, and neither knows all messages.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_mux.sessions.lines import objects_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


def removed_messages(path: Path) -> Collection[str]:
    """The ids of the messages that are not part of the conversation any more."""
    history = StoredHistory()
    for row in objects_of(path):
        history.take(row)
    return history.taken_back


class StoredHistory:
    """Follows the list of messages, by their ids."""

    def __init__(self) -> None:
        self.taken_back: set[str] = set()
        self._ids: dict[str, None] = {}
        self._last_taken_back: Sequence[str] = ()

    def take(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """One more row. Where it compacts the context: the messages that stand for what was there before."""
        message_id, back_to = text(row.get("id")), text(row.get("$rewindTo"))
        messages = mapping(row.get("$set")).get("messages")
        if back_to:
            ids = list(self._ids)
            self._take_back(ids[ids.index(back_to) :] if back_to in self._ids else ids)
        elif message_id:
            self._add(message_id)
        elif isinstance(messages, list):
            return self._replace({text(message.get("id")): message for message in rows(messages)})
        return []

    def _replace(self, messages: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        known = self._ids.keys() | self.taken_back
        new = [message for name, message in messages.items() if name not in known]
        if new and not self._ids.keys() <= messages.keys():
            self._ids = dict.fromkeys(messages)
            return new
        ids = list(self._ids)
        before = self._last_taken_back
        self._take_back(ids[_end(ids, messages) :])
        for message_id in (*before[: _end(before, messages)], *messages):
            self._add(message_id)
        return []

    def _take_back(self, ids: Sequence[str]) -> None:
        if ids:
            self._last_taken_back = ids
        for message_id in ids:
            del self._ids[message_id]
            self.taken_back.add(message_id)

    def _add(self, message_id: str) -> None:
        self._ids[message_id] = None
        self.taken_back.discard(message_id)


def _end(ids: Sequence[str], among: Collection[str]) -> int:
    """Where the last of these is that is among the others."""
    return max((place for place, name in enumerate(ids, 1) if name in among), default=0)
