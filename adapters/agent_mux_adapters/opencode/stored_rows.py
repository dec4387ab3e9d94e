"""The rows of OpenCode's sessions, whatever contains them, and those in its SQLite database."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.tolerant import text

Fields = Mapping[str, Any]
_SESSION = "SELECT title, directory, version, revert FROM session WHERE id = ?"
_MESSAGES = """
SELECT id, time_created, data FROM message WHERE session_id = ? AND time_created >= ? ORDER BY time_created, id
"""
_PARTS = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
_SUBAGENT_MESSAGES = """
WITH RECURSIVE inside(id) AS (
    SELECT id FROM session WHERE parent_id = ?
    UNION SELECT session.id FROM session JOIN inside ON session.parent_id = inside.id
)
SELECT message.id, message.data FROM message JOIN inside ON message.session_id = inside.id
"""


class SessionSource(Protocol):
    """Reads the parts of sessions by their ids."""

    def session(self, session_id: str) -> Fields | None:
        """Return title, directory, version and revert of a session; None if there is none."""
        ...

    def messages(self, session_id: str, since: int) -> Iterable[tuple[str, int, Fields]]:
        """Return id, time and fields of the messages since a time, in order."""
        ...

    def parts(self, message_id: str) -> Iterable[tuple[str, Fields]]:
        """Return the parts of a message with their ids, in order."""
        ...

    def messages_of_subagents(self, session_id: str) -> Iterable[tuple[str, Fields]]:
        """Return the messages of all sessions below a session, with their ids."""
        ...


class Database:
    """Reads sessions from the database; implements `SessionSource`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def session(self, session_id: str) -> Fields | None:
        """Return the row of the session."""
        row = self._database.execute(_SESSION, (session_id,)).fetchone()
        return None if row is None else {**dict(row), "revert": _object(row["revert"])}

    def messages(self, session_id: str, since: int) -> Iterable[tuple[str, int, Fields]]:
        """Return the messages by their time."""
        for row in self._database.execute(_MESSAGES, (session_id, since)):
            yield row["id"], row["time_created"], _object(row["data"])

    def parts(self, message_id: str) -> Iterable[tuple[str, Fields]]:
        """Return the parts by their ids, which ascend."""
        return ((row["id"], _object(row["data"])) for row in self._database.execute(_PARTS, (message_id,)))

    def messages_of_subagents(self, session_id: str) -> Iterable[tuple[str, Fields]]:
        """Return the messages of the sessions below it, at any depth."""
        rows = self._database.execute(_SUBAGENT_MESSAGES, (session_id,))
        return ((row["id"], _object(row["data"])) for row in rows)


def _object(value: Any) -> Fields:
    return load_object(text(value).encode("utf-8", "replace")) or {}
