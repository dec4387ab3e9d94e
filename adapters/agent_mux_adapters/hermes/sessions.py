"""The sessions that Hermes stores: all in one SQLite database, its messages in OpenAI's shape.

`$HERMES_HOME` (else `~/.hermes`) `/state.db`, and another one for each of its profiles. Tokens are counted for a
session and a model, and not for a call. What sub-agents said is stored as sessions, too, and is none of ours: only
what they used is. Recorded with 0.19.0 (schema 22).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection, Row

from agent_mux import facts
from agent_mux.place import Place
from agent_mux.sessions.databases import DatabaseCursor, reading
from agent_mux.sessions.store import Described, Entry, Found, ModelCalled, SessionStore, UnreadableError
from agent_mux_adapters._dialects.tolerant import dollars, text, whole
from agent_mux_adapters.hermes.stored import StoredMessages, time_of

_CHILD = "CASE WHEN json_valid(model_config) THEN json_extract(model_config, '$._delegate_from') END"
_SESSIONS = f"""
SELECT session_id, MAX(messages.id) + SUM(1 - active) AS size, MAX(timestamp) AS last,
       (SELECT MAX(last_seen) FROM session_model_usage AS used WHERE used.session_id = messages.session_id) AS used
FROM messages JOIN sessions ON sessions.id = session_id WHERE {_CHILD} IS NULL GROUP BY session_id
"""  # noqa: S608  # nothing in it comes from outside
_SESSION = """
SELECT title, cwd, git_branch, started_at,
       CASE WHEN json_valid(model_config) THEN json_extract(model_config, '$._branched_from') END AS origin,
       EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id AND finish_reason IS NOT NULL) AS gives_reasons
FROM sessions WHERE id = ?
"""
_MESSAGES = """
SELECT id, role, content, tool_call_id, tool_calls, tool_name, timestamp, finish_reason, reasoning, reasoning_content,
       active, compacted
FROM messages WHERE session_id = ? AND id > ? ORDER BY id
"""
_USED = f"""
WITH RECURSIVE family(id) AS (
    SELECT ? UNION SELECT sessions.id FROM sessions JOIN family ON parent_session_id = family.id WHERE {_CHILD} NOT NULL
)
SELECT session_id, model, billing_provider, billing_base_url, billing_mode, task, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd, actual_cost_usd, cost_status
FROM session_model_usage JOIN family ON session_id = family.id ORDER BY first_seen
"""  # noqa: S608  # nothing in it comes from outside
_PRICED = frozenset({"actual", "estimated", "included"})
_NANOSECONDS = 1_000_000  # in a millisecond
_Counts = tuple[float, ...]


def root(place: Place) -> Path:
    """The database of the user; those of profiles are in directories below."""
    return place.home_of("HERMES_HOME", ".hermes") / "state.db"


def find(place: Place) -> Iterator[Found]:
    """All sessions in which anything was said."""
    own = root(place)
    for path in (own, *sorted(own.parent.glob("profiles/*/state.db"))):
        if path.is_file():
            try:
                yield from _sessions_in(path)
            except UnreadableError:
                yield Found(path, "", 0, 0)  # whoever opens it is told why; the other databases are read


def _sessions_in(path: Path) -> Iterator[Found]:
    with reading(path) as database:
        for row in database.execute(_SESSIONS):
            changed = max(time_of(row["last"]) or 0, time_of(row["used"]) or 0)
            yield Found(path, text(row["session_id"]), whole(row["size"]), changed * _NANOSECONDS)


def open_session(found: Found) -> DatabaseCursor:
    """From its first message."""
    session = _StoredSession(found.key)
    return DatabaseCursor(found.path, session.rows, session.close)


class _StoredSession:
    """Reads one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._messages: StoredMessages | None = None
        self._counted: dict[tuple[str, ...], _Counts] = {}
        """By model and task: what was told of the counts."""
        self._at: int | None = None

    def rows(self, database: Connection, position: int) -> Iterator[tuple[int, Iterable[Entry]]]:
        """Its messages behind the one with this id."""
        for row in database.execute(_SESSION, (self._session,)):
            self._at = time_of(row["started_at"]) if self._at is None else self._at
            if self._messages is None:
                # What a fork was copied from has lost its reasons.
                gives_reasons = bool(row["gives_reasons"]) and not row["origin"]
                self._messages = StoredMessages(text(row["cwd"]), gives_reasons=gives_reasons)
            yield position, (Entry(self._at, _described(self._session, row)),)
        if self._messages is None:
            return
        for row in database.execute(_MESSAGES, (self._session, position)):
            self._at = time_of(row["timestamp"]) or self._at
            yield row["id"], self._messages.read(row)
        yield position, [*self._used(database)]

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        return iter(()) if self._messages is None else self._messages.close()

    def _used(self, database: Connection) -> Iterator[Entry]:
        """What was added to the counts."""
        for row in database.execute(_USED, (self._session,)):
            what, now = tuple(map(str, row[:6])), _counts(row)
            before, self._counted[what] = self._counted.get(what, (0,) * len(now)), now
            new = [max(count - told, 0) for count, told in zip(now, before, strict=True)]
            if not any(new):
                continue
            fresh, out, read, written, thought, usd = new
            usage = facts.Usage(int(fresh), int(out), int(thought), int(read), int(written), of_one_call=False)
            priced = usd if row["cost_status"] in _PRICED else None
            is_inside = row["session_id"] != self._session
            yield Entry(self._at, ModelCalled("", text(row["model"]), usage, priced, is_inside))


def _counts(row: Row) -> _Counts:
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    usd = dollars(row["actual_cost_usd"]) or dollars(row["estimated_cost_usd"])
    return *(whole(row[name]) for name in tokens), usd


def _described(session: str, row: Row) -> Described:
    return Described(
        session_id=session,
        title=text(row["title"]) or None,
        cwd=text(row["cwd"]) or None,
        branch=text(row["git_branch"]) or None,
        forked_from=text(row["origin"]) or None,
    )


STORE = SessionStore(root=root, find=find, open=open_session)
