"""Stored sessions of Hermes: one SQLite database with messages in OpenAI's format, and one more for each profile.

The databases are `$HERMES_HOME` (else `~/.hermes`) `/state.db` and `profiles/*/state.db` below it. Tokens are counted
by session and model, not by call. The sessions of sub-agents are stored, too; only their usage is read, as a part of
the session that started them. Recorded with 0.19.0 (schema 22).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection, Row

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_databases import DatabaseReader, modified_at, open_database
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    SessionDescribed,
    SessionEntry,
    SessionStore,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.tolerant import dollars, text, whole
from agent_mux_adapters.hermes.stored_messages import StoredMessages, time_of

_CHILD = "CASE WHEN json_valid(model_config) THEN json_extract(model_config, '$._delegate_from') END"
_SESSIONS = f"""
SELECT session_id, title, MAX(messages.id) + SUM(1 - active) AS size, MAX(timestamp) AS last,
       (SELECT MAX(last_seen) FROM session_model_usage AS used WHERE used.session_id = messages.session_id) AS used
FROM messages JOIN sessions ON sessions.id = session_id WHERE {_CHILD} IS NULL GROUP BY session_id
"""  # noqa: S608  # all of it is constant
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
"""  # noqa: S608  # all of it is constant
_USAGE_KEY_LENGTH = 6
"""The first columns of `_USED` identify a counter: session, model, billing and task."""
_PRICED = frozenset({"actual", "estimated", "included"})
_Counts = tuple[float, ...]


def root(place: AgentPaths) -> Path:
    """Return the user's database; those of profiles are in directories below it."""
    return place.home_of("HERMES_HOME", ".hermes") / "state.db"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Yield all sessions that have messages. An unreadable database yields one entry; opening it raises the error."""
    user_database = root(place)
    for path in (user_database, *sorted(user_database.parent.glob("profiles/*/state.db"))):
        if path.is_file():
            try:
                yield from _sessions_in(path)
            except UnreadableSessionError:
                yield FoundSession(path, "", 0, 0)


def _sessions_in(path: Path) -> Iterator[FoundSession]:
    with open_database(path) as database:
        for row in database.execute(_SESSIONS):
            changed = max(time_of(row["last"]) or 0, time_of(row["used"]) or 0)
            modified = modified_at(changed, text(row["title"]))
            yield FoundSession(path, text(row["session_id"]), whole(row["size"]), modified)


def open_session(found: FoundSession) -> DatabaseReader:
    """Return a cursor at the first message of a session."""
    session = _StoredSession(found.key)
    return DatabaseReader(found.path, session.rows, session.close)


class _StoredSession:
    """Reads one session, in several passes while it grows."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._messages: StoredMessages | None = None
        self._counts: dict[tuple[str, ...], _Counts] = {}
        """The counts that were already reported, by session, model and task."""
        self._time: int | None = None

    def rows(self, database: Connection, position: int) -> Iterator[tuple[int, Iterable[SessionEntry]]]:
        """Yield the entries of the messages after the one with the id `position`, then the usage."""
        for row in database.execute(_SESSION, (self._session,)):
            self._time = time_of(row["started_at"]) if self._time is None else self._time
            if self._messages is None:
                # Messages that a fork copied have no finish reasons.
                gives_reasons = bool(row["gives_reasons"]) and not row["origin"]
                self._messages = StoredMessages(text(row["cwd"]), gives_reasons=gives_reasons)
            yield position, (SessionEntry(self._time, _described(self._session, row)),)
        if self._messages is None:
            return
        for row in database.execute(_MESSAGES, (self._session, position)):
            self._time = time_of(row["timestamp"]) or self._time
            yield row["id"], self._messages.read(row)
        yield position, [*self._usage(database)]

    def close(self) -> Iterator[SessionEntry]:
        """Yield what was held back, as no message follows for now."""
        return iter(()) if self._messages is None else self._messages.close()

    def _usage(self, database: Connection) -> Iterator[SessionEntry]:
        """Yield what was added to the counts since the last pass."""
        for row in database.execute(_USED, (self._session,)):
            key, latest = tuple(map(str, row[:_USAGE_KEY_LENGTH])), _counts_in(row)
            before, self._counts[key] = self._counts.get(key, (0,) * len(latest)), latest
            added = [max(count - reported, 0) for count, reported in zip(latest, before, strict=True)]
            if not any(added):
                continue
            uncached, output, cache_read, cache_written, thinking, usd = added
            usage = facts.Usage(
                int(uncached), int(output), int(thinking), int(cache_read), int(cache_written), of_one_call=False
            )
            cost = usd if row["cost_status"] in _PRICED else None
            is_subagent = row["session_id"] != self._session
            yield SessionEntry(self._time, ModelCalled("", text(row["model"]), usage, cost, is_subagent))


def _counts_in(row: Row) -> _Counts:
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    usd = dollars(row["actual_cost_usd"]) or dollars(row["estimated_cost_usd"])
    return *(whole(row[name]) for name in tokens), usd


def _described(session: str, row: Row) -> SessionDescribed:
    return SessionDescribed(
        session_id=session,
        title=text(row["title"]) or None,
        cwd=text(row["cwd"]) or None,
        branch=text(row["git_branch"]) or None,
        forked_from=text(row["origin"]) or None,
    )


STORE = SessionStore(root=root, find=find, open=open_session)
