"""The sessions that OpenCode stores, in the shapes of its server's API.

They are in one SQLite database, `opencode/opencode.db` below `$XDG_DATA_HOME` (default ~/.local/share); `$OPENCODE_DB`
may name another file. Up to 1.1 they are JSON files in `opencode/storage`, which remain when a newer release copies
them to the database. A session has messages, and these have parts. A session with a parent belongs to a sub-agent.
Recorded with 1.1.53 to 1.18.33.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_databases import DatabaseReader, modified_at, open_database
from agent_mux.sdk.session_files import parse_timestamp
from agent_mux.sdk.sessions import (
    FilesSaved,
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionReader,
    SessionStore,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, text
from agent_mux_adapters.opencode.outcome import failure_of, is_abort
from agent_mux_adapters.opencode.paths import data_directory
from agent_mux_adapters.opencode.stored_files import (
    FilesReader,
    find_first_files,
    find_session_files_of,
    is_first_format,
)
from agent_mux_adapters.opencode.stored_rows import Database, Fields, SessionSource
from agent_mux_adapters.opencode.tools import McpToolNames, OpencodeToolCalls
from agent_mux_adapters.opencode.usage import read_usage

_SESSIONS = """
SELECT id, time_updated, title, (SELECT count(*) FROM message WHERE session_id = session.id) AS messages
FROM session WHERE parent_id IS NULL
"""
DEFAULT_TITLE = "New session - "
"""Prefix of the titles that OpenCode generates from the time."""
TOOL_CALLS = "tool-calls"
Part = Mapping[str, Any]
_PROSE: dict[str, type[facts.WholeText] | type[facts.WholeThinking]] = {
    "text": facts.WholeText,
    "reasoning": facts.WholeThinking,
}
_PROMPT_PARTS = {"text": "text", "subtask": "prompt", "file": ""}
"""The parts of a prompt -> the field with their text."""


def root(place: AgentPaths) -> Path:
    """Return the path of the database."""
    named = place.environ.get("OPENCODE_DB") if place.directory is None else None
    return data_directory(place) / (named or "opencode.db")


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Yield all sessions but those of sub-agents."""
    path = root(place)
    copied: set[str] = set()
    unreadable: UnreadableSessionError | None = None
    if path.is_file():
        try:
            with open_database(path) as database:
                for row in database.execute(_SESSIONS):
                    copied.add(row["id"])
                    modified = modified_at(row["time_updated"], text(row["title"]))
                    yield FoundSession(path, row["id"], row["messages"], modified)
        except UnreadableSessionError as error:
            unreadable = error
    files = chain(find_session_files_of(data_directory(place)), find_first_files(data_directory(place)))
    yield from (found for found in files if found.path.stem not in copied)
    if unreadable is not None:
        raise unreadable


def open_session(found: FoundSession) -> SessionReader:
    """Return a cursor at the session's first message."""
    if found.key:
        session = OpencodeStoredSession(found.key)
        return DatabaseReader(
            found.path, lambda database, since: session.rows(Database(database), since), session.close
        )
    if is_first_format(found.path):
        raise UnreadableSessionError("it has the format of OpenCode before 0.6, which agent-mux does not read")
    return FilesReader(found.path, OpencodeStoredSession(found.path.stem))


STORE = SessionStore(root=root, find=find, open=open_session)


class OpencodeStoredSession:
    """The reader of one session's rows: messages in order, and the usage of sub-agents."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._emitted: set[str] = set()
        """Ids of the messages that were emitted completely."""
        self._counted: set[str] = set()
        """Ids of the messages whose usage was emitted."""
        self._parts = OpencodeStoredParts()
        self._closing: SessionEntry | None = None
        """How the turn ended; held back, because the turn may continue, for example after a compaction."""

    def rows(self, source: SessionSource, position: int) -> Iterator[tuple[int, Iterable[SessionEntry]]]:
        """Yield the messages since this time (milliseconds since the epoch) that were not emitted yet."""
        session = source.session(self._id)
        if session is None:
            raise UnreadableSessionError("the database no longer contains this session")
        yield position, (self._described(session),)
        reverted = mapping(session.get("revert"))
        is_reverted, all_emitted = False, True
        for message_id, created, info in source.messages(self._id, position):
            is_first = message_id == reverted.get("messageID")
            is_reverted = is_reverted or (is_first and not reverted.get("partID"))
            if message_id not in self._emitted:
                parts = _parts_before(source.parts(message_id), reverted.get("partID"))
                yield position, self._message(message_id, info, None if is_reverted else parts)
            is_reverted = is_reverted or is_first
            all_emitted = all_emitted and message_id in self._emitted
            position = created if all_emitted else position
        yield position, self._subagent_usage(source)

    def close(self) -> Iterator[SessionEntry]:
        """Yield the held closing entry: the session has no more messages for now."""
        closing, self._closing = self._closing, None
        if closing is not None:
            yield closing

    def _described(self, session: Fields) -> SessionEntry:
        cwd, title = text(session.get("directory")), text(session.get("title"))
        self._parts.set_directory(cwd)
        described = SessionDescribed(
            session_id=self._id,
            title=None if title.startswith(DEFAULT_TITLE) else title or None,
            cwd=cwd or None,
            version=text(session.get("version")) or None,
            part_of=text(session.get("parentID")) or None,
        )
        return SessionEntry(None, described)  # no time: a fork begins with messages that are older than itself

    def _message(
        self, message_id: str, info: Fields, parts: Iterable[tuple[str, Fields]] | None
    ) -> Iterator[SessionEntry]:
        """Yield the entries of one message. `parts` is None for a reverted message."""
        match info.get("role"):
            case "assistant":
                if parts is not None:
                    parts = list(parts)
                    if any("snapshot" in part for _, part in parts):
                        yield SessionEntry(None, FilesSaved(text(info.get("parentID"))))
                    yield from self._parts.entries(info, parts)
                    self._end(info)
                yield from self._model_call(message_id, info)
                is_emitted = "completed" in mapping(info.get("time"))
            case "user" if parts is not None:
                rows = [part for _, part in parts]
                yield from self._prompt_entries(message_id, info, rows)
                is_emitted = bool(rows)  # parts are stored after their message
            case _:
                is_emitted = True
        if is_emitted:
            self._emitted.add(message_id)

    def _prompt_entries(self, message_id: str, info: Fields, parts: list[Fields]) -> Iterator[SessionEntry]:
        prompt = prompt_of(parts)
        if prompt is not None:
            yield from self.close()
            yield SessionEntry(_created(info), PromptSent(prompt, message_id))

    def _end(self, info: Fields) -> None:
        """Hold how the turn ended, according to an answer.

        A command that the user ran has neither a reason nor an error, and a summary of the context does not end a turn.
        """
        ended, error = mapping(info.get("time")).get("completed"), info.get("error")
        finish = text(info.get("finish"))
        at = parse_timestamp(ended)
        if error is not None:
            closing = facts.TurnStopped() if is_abort(error) else facts.TurnFailed(failure_of(error))
            self._closing = SessionEntry(at, closing)
        elif info.get("summary") is True:
            return
        elif ended is None or finish == TOOL_CALLS:
            self._closing = None
        elif finish:
            self._closing = SessionEntry(at, facts.TurnDone(structured_output=info.get("structured")))

    def _model_call(self, message_id: str, info: Fields, *, is_inside: bool = False) -> Iterator[SessionEntry]:
        usage, usd = read_usage(info)
        used = usage.input_tokens or usage.output_tokens or usage.cached_tokens or usage.cache_creation_tokens
        if not used or message_id in self._counted:
            return
        self._counted.add(message_id)
        model = f"{text(info.get('providerID'))}/{text(info.get('modelID'))}".strip("/")
        # The messages of a fork have new ids, and the times of the messages that they copy.
        key = f"{_created(info)}/{usage.input_tokens}/{usage.output_tokens}/{usage.cached_tokens}"
        # OpenCode reports a cost of 0 for a model whose price is unknown.
        yield SessionEntry(_created(info), ModelCalled(key, model, usage, usd or None, is_inside))

    def _subagent_usage(self, source: SessionSource) -> Iterator[SessionEntry]:
        for message_id, info in source.messages_of_subagents(self._id):
            yield from self._model_call(message_id, info, is_inside=True)


def _created(info: Fields) -> int | None:
    return parse_timestamp(mapping(info.get("time")).get("created"))


def _parts_before(parts: Iterable[tuple[str, Fields]], reverted: Any) -> Iterator[tuple[str, Fields]]:
    """Yield the parts with their ids, up to the reverted one."""
    for part_id, part in parts:
        if part_id == reverted:
            return
        yield part_id, part


class OpencodeStoredParts:
    """The reader of an answer's parts; an answer that is still being written is read again."""

    def __init__(self) -> None:
        self._cwd = ""
        self._calls = OpencodeToolCalls("", McpToolNames())
        self._emitted: set[str] = set()
        """Ids of the parts that are final, in the answer that is still being written."""

    def set_directory(self, cwd: str) -> None:
        """Set the session's working directory, to which paths are relative."""
        if cwd != self._cwd:
            self._cwd, self._calls = cwd, OpencodeToolCalls(cwd, McpToolNames())

    def entries(self, info: Part, parts: Iterable[tuple[str, Part]]) -> Iterator[SessionEntry]:
        """Yield what the parts of an answer contain and was not emitted yet."""
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
                yield SessionEntry(began if begins else ended, fact)
        if is_complete:
            self._emitted.clear()

    def _facts(self, part: Part, *, is_summary: bool) -> Iterable[facts.Fact]:
        kind, content = text(part.get("type")), text(part.get("text"))
        if kind == "tool":
            return self._tool_facts(part)
        if is_summary:
            return (facts.ContextCompacted(content),) if kind == "text" else ()
        if kind == "step-start":
            return (facts.StepBegin(),)
        prose = _PROSE.get(kind)
        return (prose(content),) if prose is not None and content and part.get("synthetic") is not True else ()

    def _tool_facts(self, part: Part) -> Iterable[facts.Fact]:
        try:
            emitted = self._calls.read_part(part)
        except WrongShapeError:
            return ()
        return [fact for fact in emitted if not isinstance(fact, facts.Ignored)]


def prompt_of(parts: Iterable[Part]) -> str | None:
    """Return the prompt in the parts of a message; None if OpenCode wrote the message itself."""
    own = [part for part in parts if part.get("synthetic") is not True and text(part.get("type")) in _PROMPT_PARTS]
    return "\n".join(filter(None, (text(part.get(_PROMPT_PARTS[part["type"]])) for part in own))) if own else None


def _state(part: Part) -> Any:
    return mapping(part.get("state")).get("status")


def _is_settled(part: Part) -> bool:
    """Return whether a part of an unfinished answer can be emitted: a complete text, or a tool with its input."""
    is_prose = text(part.get("type")) in _PROSE
    return "end" in mapping(part.get("time")) if is_prose else _state(part) != "pending"


def _times_of(part: Part, created: Any) -> tuple[int | None, int | None]:
    """Return when a part began and ended; without times, when its message began."""
    time = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
    began = parse_timestamp(time.get("start")) or parse_timestamp(created)
    return began, parse_timestamp(time.get("end")) or began
