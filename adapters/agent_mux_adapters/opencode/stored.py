"""One stored session of OpenCode: its messages in their order, and what its sub-agents used."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.native_json import load_object
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Described, Entry, ModelCalled, Prompted, UnreadableError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.accounting import usage_of
from agent_mux_adapters.opencode.failures import failure_of, is_abort
from agent_mux_adapters.opencode.stored_parts import StoredParts, prompt_of

UNNAMED = "New session - "
"""How a title begins that OpenCode made of the time."""
GOES_ON = "tool-calls"
_SESSION = "SELECT title, directory, version, revert FROM session WHERE id = ?"
_MESSAGES = """
SELECT id, time_created, data FROM message WHERE session_id = ? AND time_created >= ? ORDER BY time_created, id
"""
_PARTS = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
_INSIDE = """
WITH RECURSIVE inside(id) AS (
    SELECT id FROM session WHERE parent_id = ?
    UNION SELECT session.id FROM session JOIN inside ON session.parent_id = inside.id
)
SELECT message.id, message.data FROM message JOIN inside ON message.session_id = inside.id
"""

Fields = Mapping[str, Any]


class StoredSession:
    """Reads the rows of one session."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._told: set[str] = set()
        """The ids of messages of which all is told."""
        self._counted: set[str] = set()
        """The ids of messages of which it is told what they cost."""
        self._parts = StoredParts()
        self._closing: Entry | None = None
        """How the turn ended, unless it goes on: the context is compacted, say."""

    def rows(self, database: sqlite3.Connection, position: int) -> Iterator[tuple[int, Iterable[Entry]]]:
        """The messages from this time on (milliseconds since the epoch), as far as they are not told yet."""
        session = database.execute(_SESSION, (self._id,)).fetchone()
        if session is None:
            raise UnreadableError("the database does not have this session any more")
        yield position, (self._described(session),)
        reverted = load_object(text(session["revert"]).encode("utf-8", "replace")) or {}
        is_reverted, all_told = False, True
        for row in database.execute(_MESSAGES, (self._id, position)):
            is_first = row["id"] == reverted.get("messageID")
            is_reverted = is_reverted or (is_first and not reverted.get("partID"))
            if row["id"] not in self._told:
                parts = _before(database.execute(_PARTS, (row["id"],)), reverted.get("partID"))
                yield position, self._message(row["id"], _object(row), None if is_reverted else parts)
            is_reverted = is_reverted or is_first
            all_told = all_told and row["id"] in self._told
            position = row["time_created"] if all_told else position
        yield position, self._used_inside(database)

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        closing, self._closing = self._closing, None
        if closing is not None:
            yield closing

    def _described(self, session: sqlite3.Row) -> Entry:
        cwd, title = text(session["directory"]), text(session["title"])
        self._parts.take_directory(cwd)
        described = Described(
            session_id=self._id,
            title=None if title.startswith(UNNAMED) else title or None,
            cwd=cwd or None,
            version=text(session["version"]) or None,
        )
        return Entry(None, described)  # a fork begins with messages that are older than it

    def _message(self, message_id: str, info: Fields, parts: Iterable[tuple[str, Fields]] | None) -> Iterator[Entry]:
        """`parts`: None where the message is reverted."""
        match info.get("role"):
            case "assistant":
                if parts is not None:
                    yield from self._parts.told(info, parts)
                    self._end(info)
                yield from self._called(message_id, info)
                is_told = "completed" in mapping(info.get("time"))
            case "user" if parts is not None:
                rows = [part for _, part in parts]
                yield from self._asked(info, rows)
                is_told = bool(rows)  # they are stored after their message
            case _:
                is_told = True
        if is_told:
            self._told.add(message_id)

    def _asked(self, info: Fields, parts: list[Fields]) -> Iterator[Entry]:
        prompt = prompt_of(parts)
        if prompt is not None:
            yield from self.close()
            yield Entry(_created(info), Prompted(prompt))

    def _end(self, info: Fields) -> None:
        """What the last message says of the turn.

        A command that a person ran has neither a reason nor an error, and a summary of the context ends no turn.
        """
        ended, error = mapping(info.get("time")).get("completed"), info.get("error")
        finish = text(info.get("finish"))
        at = milliseconds_of(ended)
        if error is not None:
            how = facts.TurnStopped() if is_abort(error) else facts.TurnFailed(failure_of(error))
            self._closing = Entry(at, how)
        elif info.get("summary") is True:
            return
        elif ended is None or finish == GOES_ON:
            self._closing = None
        elif finish:
            self._closing = Entry(at, facts.TurnDone(structured_output=info.get("structured")))

    def _called(self, message_id: str, info: Fields, *, is_inside: bool = False) -> Iterator[Entry]:
        usage, usd = usage_of(info)
        used = usage.input_tokens or usage.output_tokens or usage.cached_tokens or usage.cache_creation_tokens
        if not used or message_id in self._counted:
            return
        self._counted.add(message_id)
        model = f"{text(info.get('providerID'))}/{text(info.get('modelID'))}".strip("/")
        # A fork has messages of its own, with the times of those that they are copied from.
        key = f"{_created(info)}/{usage.input_tokens}/{usage.output_tokens}/{usage.cached_tokens}"
        # A model without a price costs 0 in OpenCode's eyes: that is no figure.
        yield Entry(_created(info), ModelCalled(key, model, usage, usd or None, is_inside))

    def _used_inside(self, database: sqlite3.Connection) -> Iterator[Entry]:
        for row in database.execute(_INSIDE, (self._id,)):
            yield from self._called(row["id"], _object(row), is_inside=True)


def _created(info: Fields) -> int | None:
    return milliseconds_of(mapping(info.get("time")).get("created"))


def _object(row: sqlite3.Row) -> Fields:
    return load_object(text(row["data"]).encode("utf-8", "replace")) or {}


def _before(rows: Iterable[sqlite3.Row], reverted: Any) -> Iterator[tuple[str, Fields]]:
    """The parts with their ids, up to the one that was reverted."""
    for row in rows:
        if row["id"] == reverted:
            return
        yield row["id"], _object(row)
