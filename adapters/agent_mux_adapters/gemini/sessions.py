"""The sessions that Gemini CLI stores: one file of JSON lines each, in a directory for each project.

`$GEMINI_CLI_HOME` (else `~`) `/.gemini/tmp/<project>/chats/session-<minute>-<beginning of the id>.jsonl`. A message is
written again when its tools are done; the header is, when the session is resumed. `history.py` says what is taken back.
Nothing says that a turn is over, or that it failed: a prompt that the model never answered is taken back. Recorded with
0.61.0.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux import facts
from agent_mux.place import Place
from agent_mux.sessions.lines import LineCursor, SubagentCalls, files_below, milliseconds_of
from agent_mux.sessions.store import Cursor, Described, Entry, Found, ModelCalled, Prompted, SessionStore
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.gemini.credentials import gemini_directory
from agent_mux_adapters.gemini.stored_history import StoredHistory, removed_messages
from agent_mux_adapters.gemini.tools import GeminiCalls

INJECTED = (
    "<session_context>",
    "<hook_context>",
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "System: Potential loop detected.",
)
"""How a message begins that has the role of the user, and is the CLI's."""


def root(place: Place) -> Path:
    """Where the directories of the projects are."""
    return gemini_directory(place) / "tmp"


def find(place: Place) -> Iterator[Found]:
    """All sessions. What sub-agents said is in directories below, and is no session."""
    return files_below(root(place), "*/chats/session-*.jsonl")


def open_session(found: Found) -> Cursor:
    """From its first row."""
    return _WithSubagents(found.path)


class _WithSubagents:
    """A session, and what its sub-agents used: they have files of their own, in a directory named after it."""

    def __init__(self, path: Path) -> None:
        self._stored = StoredRows(path)
        self._rows = LineCursor(path, self._stored.read, self._stored.close)
        self._chats = path.parent
        self._inside = SubagentCalls(lambda: _used_inside)

    def read(self) -> Iterator[Entry]:
        """See `Cursor.read`."""
        yield from self._rows.read()
        if not self._stored.session_id:
            return
        yield from self._inside.read(sorted((self._chats / Path(self._stored.session_id).name).glob("*.jsonl")))


def _used_inside(row: Mapping[str, Any]) -> Iterable[Entry]:
    call = _called(row)
    return () if call is None else (Entry(milliseconds_of(row.get("timestamp")), call),)


class StoredRows:
    """Reads the rows of one session."""

    def __init__(self, path: Path) -> None:
        self.session_id = ""
        self._cwd = _directory_of(path)
        self._calls = GeminiCalls(self._cwd, unasked=True)
        self._taken_back = removed_messages(path)
        self._history = StoredHistory()
        self._last = ""
        """The id of the message that was told last: it may be written again."""
        self._with_calls = ""
        """The id of the message that had calls last, and may get more: in the ACP mode it gets those of others, too."""
        self._told: set[str] = set()
        """The ids of its calls."""
        self._answered: Entry | None = None
        """The model called no tool: the turn is over, unless the message is written again."""

    def read(self, row: Mapping[str, Any]) -> Iterator[Entry]:
        """What a row says."""
        at = milliseconds_of(row.get("timestamp"))
        compacted = (_words(message.get("content")) for message in self._history.take(row))
        summary = next((words for words in compacted if words and not _is_injected(words)), None)
        if summary is not None:
            yield Entry(at, facts.ContextCompacted(summary))
        if "sessionId" in row:
            self.session_id = text(row.get("sessionId"))
            yield Entry(
                milliseconds_of(row.get("startTime")), Described(session_id=self.session_id, cwd=self._cwd or None)
            )
        title = text(mapping(row.get("$set")).get("summary"))
        if title:
            yield Entry(at, Described(title=title))
        match row.get("type"):
            case "user" if row.get("id") not in self._taken_back:
                yield from self._user(at, row)
            case "gemini":
                yield from self._gemini(at, row)

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        answered, self._answered = self._answered, None
        if answered is not None:
            yield answered

    def _user(self, at: int | None, row: Mapping[str, Any]) -> Iterator[Entry]:
        said = _words(row.get("displayContent") or row.get("content"))
        if any("functionResponse" in part for part in rows(row.get("content"))) or _is_injected(said):
            return
        yield from self.close()
        yield Entry(at, Prompted(said))

    def _gemini(self, at: int | None, row: Mapping[str, Any]) -> Iterator[Entry]:
        message_id, calls = text(row.get("id")), rows(row.get("toolCalls"))
        is_kept, call = message_id not in self._taken_back, _called(row)
        # What has calls and no tokens was said by another message.
        if is_kept and message_id != self._last and (call is not None or not calls):
            self._last = message_id
            for fact in _said(row):
                yield Entry(at, fact)
        if call is not None:
            yield Entry(at, call)
        if is_kept:
            self._answered = None if calls or not _words(row.get("content")) else Entry(at, facts.TurnDone())
            yield from self._tools(at, message_id, calls)

    def _tools(self, at: int | None, message_id: str, calls: list[Mapping[str, Any]]) -> Iterator[Entry]:
        if calls and message_id != self._with_calls:
            self._with_calls, self._told = message_id, set()
        calls = [call for call in calls if text(call.get("id")) not in self._told]
        for call in calls:
            call_id = text(call.get("id"))
            self._told.add(call_id)
            yield Entry(at, self._calls.begun(call_id, text(call.get("name")), mapping(call.get("args"))))
        for call in calls:
            for fact in self._calls.ended(text(call.get("id")), stored_result(call), created=has_created(call)):
                yield Entry(milliseconds_of(call.get("timestamp")), fact)


def _is_injected(words: str) -> bool:
    return words.lstrip().startswith(INJECTED)


def _said(row: Mapping[str, Any]) -> Iterator[facts.Fact]:
    yield facts.StepBegin()
    thought = "".join(_thoughts(row)).strip()
    if thought:
        yield facts.Thinking(thought)
    said = _words(row.get("content"))
    if said:
        yield facts.Text(said)


def _thoughts(row: Mapping[str, Any]) -> Iterator[str]:
    """One that has no subject goes on with the one before: they are stored as they streamed."""
    for thought in rows(row.get("thoughts")):
        subject, rest = text(thought.get("subject")), text(thought.get("description"))
        yield f"\n\n**{subject}**\n{rest}" if subject else rest


def _called(row: Mapping[str, Any]) -> ModelCalled | None:
    tokens = mapping(row.get("tokens"))
    taken, given, thought, cached = (whole(tokens.get(name)) for name in ("input", "output", "thoughts", "cached"))
    if not taken and not given and not thought:
        return None
    usage = facts.Usage(max(taken - cached, 0), given + thought, thought, cached)
    return ModelCalled(text(row.get("id")), text(row.get("model")), usage)


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(part.get("text")) for part in rows(content) if "text" in part and not part.get("thought"))


def _directory_of(path: Path) -> str:
    """The working directory of the project; empty where nobody says."""
    try:
        return (path.parent.parent / ".project_root").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


STORE = SessionStore(root=root, find=find, open=open_session)


# TODO What came of a tool call, from the session that Gemini CLI stored: the answer that the model got.
#
# X
# it ended.

_FRAME = ("<untrusted_context>\n", "\n</untrusted_context>")
_REPORT = re.compile(r"Subagent '[^'\n]*' finished\.\nTermination Reason: \w+\nResult:\n")
_ESCAPED, _END = "&lt;/untrusted_context&gt;", "</untrusted_context>"


def stored_result(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A stored call as a `tool_result` line."""
    answers = [mapping(mapping(part.get("functionResponse")).get("response")) for part in rows(call.get("result"))]
    error = "\n".join(filter(None, (text(answer.get("error")) for answer in answers)))
    output = "\n".join(_unframed(text(answer.get("output"))) for answer in answers if "output" in answer)
    if call.get("status") == "success":
        return {"status": "success", "output": output}
    return {"status": "error", "output": output, "error": {"message": error}}


def has_created(call: Mapping[str, Any]) -> bool:
    """It wrote a file that was not there before."""
    return mapping(call.get("resultDisplay")).get("isNewFile") is True


def _unframed(output: str) -> str:
    report = _REPORT.match(output)
    if report is not None:
        return output[report.end() :]
    begin, end = _FRAME
    if not output.startswith(begin) or not output.endswith(end):
        return output
    return output[len(begin) : -len(end)].replace(_ESCAPED, _END)
