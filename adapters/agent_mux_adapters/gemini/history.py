"""Which messages of a stored session of Gemini CLI are still part of it.

The file only grows. `$rewindTo` takes back a message and all that follow. A list of messages (`$set.messages`) stands
instead of all before it:

- a beginning of what was there: the rest is taken back, as after a prompt that failed or was stopped. On resume, first
  nothing but the context of the session is left; the whole list follows.
- anything else: the context was compacted. What the list leaves out was said all the same.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sessions.lines import objects_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


def taken_back(path: Path) -> Collection[str]:
    """The ids of the messages that are not part of the conversation any more."""
    history = History()
    for row in objects_of(path):
        history.take(row)
    return history.taken_back


class History:
    """Follows the list of messages, by their ids."""

    def __init__(self) -> None:
        self.taken_back: set[str] = set()
        self._ids: dict[str, None] = {}
        self._compacted: set[str] = set()

    def take(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """One more row. Where it compacts the context: the messages that stand for what was there before."""
        message_id, back_to = text(row.get("id")), text(row.get("$rewindTo"))
        messages = mapping(row.get("$set")).get("messages")
        if back_to:
            ids = list(self._ids)
            self._keep(ids[: ids.index(back_to)] if back_to in self._ids else [])
        elif message_id:
            self._add(message_id)
        elif isinstance(messages, list):
            return self._replace({text(message.get("id")): message for message in rows(messages)})
        return []

    def _replace(self, messages: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        is_compacted = not all(before == after for before, after in zip(self._ids, messages, strict=False))
        new = [message for name, message in messages.items() if is_compacted and name not in self._ids]
        if is_compacted:
            self._compacted.update(self._ids)
        self._keep(messages)
        return new

    def _keep(self, ids: Collection[str]) -> None:
        self.taken_back.update(self._ids.keys() - self._compacted)
        self._ids.clear()
        for message_id in ids:
            self._add(message_id)

    def _add(self, message_id: str) -> None:
        self._ids[message_id] = None
        self.taken_back.discard(message_id)
