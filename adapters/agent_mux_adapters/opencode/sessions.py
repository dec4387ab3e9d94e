"""The sessions that OpenCode stores: in an SQLite database, all of them, as its server tells them.

`$XDG_DATA_HOME` (else `~/.local/share`) `/opencode/opencode.db`; `$OPENCODE_DB` may name another. A session has
messages, these have parts, and each row is an object in JSON. A session with a parent is a sub-agent's.
Recorded with 1.18.33.
"""

from collections.abc import Iterator
from pathlib import Path

from agent_mux.place import Place
from agent_mux.sessions.databases import DatabaseCursor, reading
from agent_mux.sessions.store import Found, SessionStore
from agent_mux_adapters.opencode.places import data_directory
from agent_mux_adapters.opencode.stored import StoredSession

# The index has all that is counted.
_SESSIONS = """
SELECT id, time_updated, (SELECT count(*) FROM message WHERE session_id = session.id) AS messages
FROM session WHERE parent_id IS NULL
"""


def root(place: Place) -> Path:
    """The database."""
    named = place.environ.get("OPENCODE_DB") if place.directory is None else None
    return data_directory(place) / (named or "opencode.db")


def find(place: Place) -> Iterator[Found]:
    """All sessions but those of sub-agents."""
    path = root(place)
    if not path.is_file():
        return
    with reading(path) as database:
        for row in database.execute(_SESSIONS):
            yield Found(path, row["id"], row["messages"], row["time_updated"] * 1_000_000)


def open_session(found: Found) -> DatabaseCursor:
    """From its first message."""
    session = StoredSession(found.key)
    return DatabaseCursor(found.path, session.rows, session.close)


STORE = SessionStore(root=root, find=find, open=open_session)
