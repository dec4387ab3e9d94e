"""Stored sessions of OpenClaw: a SQLite database for each of its agents, with one row for each event.

The databases are `$OPENCLAW_STATE_DIR` (else `~/.openclaw`) `/agents/<agent>/agent/openclaw-agent.sqlite`. A session
has a key and several transcripts, one after the other, each with an id. Going back to an earlier prompt leaves a branch
behind; an index of OpenClaw lists the events of the current branch. Recorded with 2026.9.6.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.session_databases import DatabaseReader, open_database
from agent_mux.sdk.session_files import redact_bytes
from agent_mux.sdk.sessions import FoundSession, SessionDescribed, SessionEntry, SessionStore, UnreadableSessionError
from agent_mux.sdk.zstandard import decompress
from agent_mux_adapters._dialects.tolerant import text, whole
from agent_mux_adapters.openclaw.stored_events import StoredEvents

_ACP_MARKER = ":acp-bridge:"
"""In the key of a session that was opened over ACP, before the id that ACP uses."""
_DATABASES = "agents/*/agent/openclaw-agent.sqlite"
_SESSIONS = """
SELECT transcript.session_id, MAX(seq) AS last, updated_at
FROM session_windows AS transcript JOIN transcript_events AS event ON event.session_id = transcript.session_id
GROUP BY transcript.session_id
"""
_SESSION = """
SELECT session.session_key, current_session_id, label, session.display_name, fork_source_session_key,
       fork_source_session_id
FROM session_windows AS transcript JOIN session_nodes AS session ON session.session_key = transcript.session_key
WHERE session_id = ?
"""
_KEPT = "SELECT event_seq FROM session_transcript_active_events WHERE session_id = ?"
_EVENTS = "SELECT seq, event_json, event_zstd FROM transcript_events WHERE session_id = ? AND seq > ? ORDER BY seq"
_NANOSECONDS = 1_000_000


def root(place: AgentPaths) -> Path:
    """Return the directory that holds the directories of the agents."""
    return place.home_of("OPENCLAW_STATE_DIR", ".openclaw") / "agents"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Yield all transcripts with events. An unreadable database yields one entry; opening it raises the error."""
    for path in sorted(root(place).parent.glob(_DATABASES)):
        try:
            with open_database(path) as database:
                for row in database.execute(_SESSIONS):
                    yield FoundSession(
                        path, row["session_id"], row["last"] + 1, whole(row["updated_at"]) * _NANOSECONDS
                    )
        except UnreadableSessionError:
            yield FoundSession(path, "", 0, 0)


def open_session(found: FoundSession) -> DatabaseReader:
    """Return a cursor at the first event of a transcript."""
    session = _StoredSession(found.key)
    return DatabaseReader(found.path, session.rows, session.events.close)


class _StoredSession:
    """Reads one transcript, in several passes while it grows."""

    def __init__(self, transcript: str) -> None:
        self._transcript = transcript
        self.events = StoredEvents()
        self._next = 0

    def rows(self, database: Connection, _: int) -> Iterator[tuple[int, Iterable[SessionEntry]]]:
        """Yield the entries of the events since the last pass. The first event has number 0."""
        for row in database.execute(_SESSION, (self._transcript,)):
            yield self._next, (SessionEntry(None, _described(self._transcript, row)),)
        current = {row["event_seq"] for row in database.execute(_KEPT, (self._transcript,))}
        newest = max(current, default=-1)  # the index may be behind the events
        for row in database.execute(_EVENTS, (self._transcript, self._next - 1)):
            seq = row["seq"]
            self._next = seq + 1
            yield seq, self.events.read(_event_of(row), is_abandoned=seq <= newest and seq not in current)


def _described(transcript: str, row: Row) -> SessionDescribed:
    is_current = transcript == row["current_session_id"]
    source = text(row["fork_source_session_id"])
    return SessionDescribed(
        session_id=_session_id(text(row["session_key"]), transcript) if is_current else transcript,
        title=text(row["display_name"]) or text(row["label"]) or None,
        forked_from=_session_id(text(row["fork_source_session_key"]), source) if source and is_current else None,
    )


def _session_id(key: str, transcript: str) -> str:
    """Return the id under which the session can be resumed."""
    return key.partition(_ACP_MARKER)[2] or transcript


MAX_EVENT_SIZE = 4_194_304  # bytes; OpenClaw compresses events of more than a kilobyte, and no longer ones


def _event_of(row: Row) -> dict[str, Any]:
    """Return the event of a row; an empty one when it is damaged."""
    plain = row["event_json"]
    if plain is None:
        event = redact_bytes(decompress(row["event_zstd"], MAX_EVENT_SIZE))
    else:
        event = plain.encode("utf-8", "replace")
    return load_object(event) or {}


STORE = SessionStore(root=root, find=find, open=open_session)
