"""The sessions that OpenClaw stores: a SQLite database for each of its agents, one row for each event.

`$OPENCLAW_STATE_DIR` (else `~/.openclaw`) `/agents/<agent>/agent/openclaw-agent.sqlite`. A session has a key; under it
there is one transcript after the other, each with an id. Whoever goes back to an earlier prompt leaves a branch behind:
an index of OpenClaw's own tells what belongs to the last one. Recorded with 2026.9.6.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection, Row

from agent_mux.place import Place
from agent_mux.sessions.databases import DatabaseCursor, reading
from agent_mux.sessions.store import Described, Entry, Found, SessionStore, UnreadableError
from agent_mux_adapters._dialects.tolerant import text, whole
from agent_mux_adapters.openclaw.packed import event_of
from agent_mux_adapters.openclaw.stored import StoredEvents

BRIDGED = ":acp-bridge:"
"""In the key of a session that was opened over ACP. Behind it is the id that ACP knows."""
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


def root(place: Place) -> Path:
    """Where the directories of the agents are."""
    return place.home_of("OPENCLAW_STATE_DIR", ".openclaw") / "agents"


def find(place: Place) -> Iterator[Found]:
    """All transcripts in which there is anything."""
    for path in sorted(root(place).parent.glob(_DATABASES)):
        try:
            with reading(path) as database:
                for row in database.execute(_SESSIONS):
                    yield Found(path, row["session_id"], row["last"] + 1, whole(row["updated_at"]) * _NANOSECONDS)
        except UnreadableError:
            yield Found(path, "", 0, 0)  # whoever opens it is told why; the other databases are read


def open_session(found: Found) -> DatabaseCursor:
    """From its first event."""
    session = _StoredSession(found.key)
    return DatabaseCursor(found.path, session.rows, session.events.close)


class _StoredSession:
    """Reads one transcript."""

    def __init__(self, transcript: str) -> None:
        self._transcript = transcript
        self.events = StoredEvents()
        self._next = 0

    def rows(self, database: Connection, _: int) -> Iterator[tuple[int, Iterable[Entry]]]:
        """Its events that were not read yet. The first has number 0."""
        for row in database.execute(_SESSION, (self._transcript,)):
            yield self._next, (Entry(None, _described(self._transcript, row)),)
        kept = {row["event_seq"] for row in database.execute(_KEPT, (self._transcript,))}
        newest = max(kept, default=-1)  # the index may come later than the events
        for row in database.execute(_EVENTS, (self._transcript, self._next - 1)):
            seq = row["seq"]
            self._next = seq + 1
            yield seq, self.events.read(event_of(row), is_left=seq <= newest and seq not in kept)


def _described(transcript: str, row: Row) -> Described:
    is_current = transcript == row["current_session_id"]
    source = text(row["fork_source_session_id"])
    return Described(
        session_id=_id_of(text(row["session_key"]), transcript) if is_current else transcript,
        title=text(row["display_name"]) or text(row["label"]) or None,
        forked_from=_id_of(text(row["fork_source_session_key"]), source) if source and is_current else None,
    )


def _id_of(key: str, transcript: str) -> str:
    """What continues it."""
    return key.partition(BRIDGED)[2] or transcript


STORE = SessionStore(root=root, find=find, open=open_session)
