"""The sessions that OpenCode stores: in an SQLite database, all of them, as its server tells them.

`$XDG_DATA_HOME` (else `~/.local/share`) `/opencode/opencode.db`; `$OPENCODE_DB` may name another. A session has
messages, these have parts, and each row is an object in JSON. A session with a parent is a sub-agent's.
Recorded with 1.18.33.
"""

# MERGED DOC: """One stored session of OpenCode: its messages in their order, and what its sub-agents used."""
# MERGED DOC: """The parts of stored messages. Those of an answer may still be written: then they are read again."""
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux import facts
from agent_mux.native_json import load_object
from agent_mux.place import Place
from agent_mux.sessions.databases import DatabaseCursor, reading
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Described, Entry, Found, ModelCalled, Prompted, SessionStore, UnreadableError
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, text
from agent_mux_adapters.opencode.outcome import failure_of, is_abort
from agent_mux_adapters.opencode.paths import data_directory
from agent_mux_adapters.opencode.tools import McpToolNames, OpencodeToolCalls
from agent_mux_adapters.opencode.usage import read_usage

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
    session = OpencodeStoredSession(found.key)
    return DatabaseCursor(found.path, session.rows, session.close)


STORE = SessionStore(root=root, find=find, open=open_session)


DEFAULT_TITLE = "New session - "
"""How a title begins that OpenCode made of the time."""
TOOL_CALLS = "tool-calls"
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

Fields = Mapping[str, Any]


class OpencodeStoredSession:
    """Reads the rows of one session."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._emitted: set[str] = set()
        """The ids of messages of which all is told."""
        self._counted: set[str] = set()
        """The ids of messages of which it is told what they cost."""
        self._parts = OpencodeStoredParts()
        self._closing: Entry | None = None
        """How the turn ended, unless it goes on: the context is compacted, say."""

    def rows(self, database: sqlite3.Connection, position: int) -> Iterator[tuple[int, Iterable[Entry]]]:
        """The messages from this time on (milliseconds since the epoch), as far as they are not told yet."""
        session = database.execute(_SESSION, (self._id,)).fetchone()
        if session is None:
            raise UnreadableError("the database does not have this session any more")
        yield position, (self._described(session),)
        reverted = load_object(text(session["revert"]).encode("utf-8", "replace")) or {}
        is_reverted, all_emitted = False, True
        for row in database.execute(_MESSAGES, (self._id, position)):
            is_first = row["id"] == reverted.get("messageID")
            is_reverted = is_reverted or (is_first and not reverted.get("partID"))
            if row["id"] not in self._emitted:
                parts = _parts_before(database.execute(_PARTS, (row["id"],)), reverted.get("partID"))
                yield position, self._message(row["id"], _object(row), None if is_reverted else parts)
            is_reverted = is_reverted or is_first
            all_emitted = all_emitted and row["id"] in self._emitted
            position = row["time_created"] if all_emitted else position
        yield position, self._subagent_usage(database)

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        closing, self._closing = self._closing, None
        if closing is not None:
            yield closing

    def _described(self, session: sqlite3.Row) -> Entry:
        cwd, title = text(session["directory"]), text(session["title"])
        self._parts.set_directory(cwd)
        described = Described(
            session_id=self._id,
            title=None if title.startswith(DEFAULT_TITLE) else title or None,
            cwd=cwd or None,
            version=text(session["version"]) or None,
        )
        return Entry(None, described)  # a fork begins with messages that are older than it

    def _message(self, message_id: str, info: Fields, parts: Iterable[tuple[str, Fields]] | None) -> Iterator[Entry]:
        """`parts`: None where the message is reverted."""
        match info.get("role"):
            case "assistant":
                if parts is not None:
                    yield from self._parts.entries(info, parts)
                    self._end(info)
                yield from self._model_call(message_id, info)
                is_emitted = "completed" in mapping(info.get("time"))
            case "user" if parts is not None:
                rows = [part for _, part in parts]
                yield from self._prompt_entries(info, rows)
                is_emitted = bool(rows)  # they are stored after their message
            case _:
                is_emitted = True
        if is_emitted:
            self._emitted.add(message_id)

    def _prompt_entries(self, info: Fields, parts: list[Fields]) -> Iterator[Entry]:
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
        elif ended is None or finish == TOOL_CALLS:
            self._closing = None
        elif finish:
            self._closing = Entry(at, facts.TurnDone(structured_output=info.get("structured")))

    def _model_call(self, message_id: str, info: Fields, *, is_inside: bool = False) -> Iterator[Entry]:
        usage, usd = read_usage(info)
        used = usage.input_tokens or usage.output_tokens or usage.cached_tokens or usage.cache_creation_tokens
        if not used or message_id in self._counted:
            return
        self._counted.add(message_id)
        model = f"{text(info.get('providerID'))}/{text(info.get('modelID'))}".strip("/")
        # A fork has messages of its own, with the times of those that they are copied from.
        key = f"{_created(info)}/{usage.input_tokens}/{usage.output_tokens}/{usage.cached_tokens}"
        # A model without a price costs 0 in OpenCode's eyes: that is no figure.
        yield Entry(_created(info), ModelCalled(key, model, usage, usd or None, is_inside))

    def _subagent_usage(self, database: sqlite3.Connection) -> Iterator[Entry]:
        for row in database.execute(_SUBAGENT_MESSAGES, (self._id,)):
            yield from self._model_call(row["id"], _object(row), is_inside=True)


def _created(info: Fields) -> int | None:
    return milliseconds_of(mapping(info.get("time")).get("created"))


def _object(row: sqlite3.Row) -> Fields:
    return load_object(text(row["data"]).encode("utf-8", "replace")) or {}


def _parts_before(rows: Iterable[sqlite3.Row], reverted: Any) -> Iterator[tuple[str, Fields]]:
    """The parts with their ids, up to the one that was reverted."""
    for row in rows:
        if row["id"] == reverted:
            return
        yield row["id"], _object(row)


Part = Mapping[str, Any]
_PROSE: dict[str, type[facts.Text] | type[facts.Thinking]] = {"text": facts.Text, "reasoning": facts.Thinking}


class OpencodeStoredParts:
    """Reads the parts of answers."""

    def __init__(self) -> None:
        self._cwd = ""
        self._calls = OpencodeToolCalls("", McpToolNames())
        self._emitted: set[str] = set()
        """The ids of those that will not change any more, in the answer that is still written."""

    def set_directory(self, cwd: str) -> None:
        """Where the session is at home."""
        if cwd != self._cwd:
            self._cwd, self._calls = cwd, OpencodeToolCalls(cwd, McpToolNames())

    def entries(self, info: Part, parts: Iterable[tuple[str, Part]]) -> Iterator[Entry]:
        """What the parts of this answer say that was not told yet."""
        time = mapping(info.get("time"))
        is_complete = "completed" in time
        for part_id, part in parts:
            if part_id in self._emitted or not (is_complete or _is_settled(part)):
                continue
            if _state(part) != "running":
                self._emitted.add(part_id)
            began, ended = _times_of(part, time.get("created"))
            for fact in self._facts(part, is_summary=info.get("summary") is True):
                begins = isinstance(fact, facts.ToolReady | facts.McpBegin | facts.SubagentBegin)
                yield Entry(began if begins else ended, fact)
        if is_complete:
            self._emitted.clear()

    def _facts(self, part: Part, *, is_summary: bool) -> Iterable[facts.Fact]:
        kind, content = text(part.get("type")), text(part.get("text"))
        if kind == "tool":
            return self._model_call(part)
        if is_summary:
            return (facts.ContextCompacted(content),) if kind == "text" else ()
        if kind == "step-start":
            return (facts.StepBegin(),)
        prose = _PROSE.get(kind)
        return (prose(content),) if prose is not None and content and part.get("synthetic") is not True else ()

    def _model_call(self, part: Part) -> Iterable[facts.Fact]:
        try:
            entries = self._calls.read_part(part)
        except WrongShapeError:
            return ()
        return [fact for fact in entries if not isinstance(fact, facts.Ignored)]


def prompt_of(parts: Iterable[Part]) -> str | None:
    """What somebody asked for in the message with these parts; None where OpenCode wrote it itself."""
    own = [part for part in parts if part.get("synthetic") is not True and text(part.get("type")) in _PROMPT_PARTS]
    return "\n".join(filter(None, (text(part.get(_PROMPT_PARTS[part["type"]])) for part in own))) if own else None


_PROMPT_PARTS = {"text": "text", "subtask": "prompt", "file": ""}
"""The parts of a prompt -> where they have words."""


def _state(part: Part) -> Any:
    return mapping(part.get("state")).get("status")


def _is_settled(part: Part) -> bool:
    """Of an answer that is still written: prose when it is complete, a tool when its input is."""
    is_prose = text(part.get("type")) in _PROSE
    return "end" in mapping(part.get("time")) if is_prose else _state(part) != "pending"


def _times_of(part: Part, created: Any) -> tuple[int | None, int | None]:
    """When it began and when it ended, as far as it says so, else when its message began."""
    time = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
    began = milliseconds_of(time.get("start")) or milliseconds_of(created)
    return began, milliseconds_of(time.get("end")) or began
