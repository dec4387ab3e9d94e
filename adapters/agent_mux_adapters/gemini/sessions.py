"""The sessions that Gemini CLI stores: one file each, in one directory per project.

The path is `$GEMINI_CLI_HOME` (or `~`) `/.gemini/tmp/<project>/chats/session-<minute>-<start of the id>.jsonl`. A
message is written again when its tools are done, the header when the session is resumed; `stored_history.py` finds the
removed messages. The file does not record that a turn ended or failed; a prompt that the model never answered is
removed. Up to 0.36 the file is a single JSON object (`.json`), the header with a list of the same messages, and is
rewritten after each message. Recorded with 0.15 to 0.61.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_files import JsonLinesReader, SubagentUsageReader, find_session_files, parse_timestamp
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionReader,
    SessionStore,
)
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.gemini.credentials import gemini_directory
from agent_mux_adapters.gemini.stored_documents import GeminiDocumentReader
from agent_mux_adapters.gemini.stored_history import StoredHistory, removed_messages
from agent_mux_adapters.gemini.tools import GeminiCalls

LINES, DOCUMENT = ".jsonl", ".json"
INJECTED = (
    "<session_context>",
    "<hook_context>",
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "System: Potential loop detected.",
)
"""Prefixes of messages with the role `user` that the CLI injected."""


def root(place: AgentPaths) -> Path:
    """Return the directory that contains the directories of the projects."""
    return gemini_directory(place) / "tmp"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Find all sessions. The files of sub-agents are in subdirectories and are not sessions."""
    documents: list[FoundSession] = []
    continued: set[Path] = set()
    for found in find_session_files(root(place), "*/chats/session-*.json*"):
        if found.path.suffix == DOCUMENT:
            documents.append(found)
        elif found.path.suffix == LINES:
            continued.add(found.path)
            yield found
    yield from (found for found in documents if found.path.with_suffix(LINES) not in continued)


def open_session(found: FoundSession) -> SessionReader:
    """Open a session for reading from its first row."""
    if found.path.suffix == DOCUMENT:
        return GeminiDocumentReader(found.path, GeminiStoredRows(found.path, set()))
    return _WithSubagents(found.path)


class _WithSubagents:
    """A session and the usage of its sub-agents, whose files are in a directory named after it."""

    def __init__(self, path: Path) -> None:
        self._stored = GeminiStoredRows(path, removed_messages(path))
        self._rows = JsonLinesReader(path, self._stored.read, self._stored.close)
        self._chats = path.parent
        self._inside = SubagentUsageReader(lambda: _used_inside)

    def read(self) -> Iterator[SessionEntry]:
        """Yield the new entries. See `Cursor.read`."""
        yield from self._rows.read()
        if not self._stored.session_id:
            return
        yield from self._inside.read(sorted((self._chats / Path(self._stored.session_id).name).glob("*.jsonl")))


def _used_inside(row: Mapping[str, Any]) -> Iterable[SessionEntry]:
    call = _model_call(row)
    return () if call is None else (SessionEntry(parse_timestamp(row.get("timestamp")), call),)


class GeminiStoredRows:
    """Reads the rows of one session."""

    def __init__(self, path: Path, removed: Collection[str]) -> None:
        """Leave out the messages with an id in `removed`, which are no longer part of the conversation."""
        self.session_id = ""
        self._cwd = _directory_of(path)
        self._calls = GeminiCalls(self._cwd, permitted=True)
        self._removed = removed
        self._history = StoredHistory()
        self._last = ""
        """The id of the last emitted message, which may be written again."""
        self._with_calls = ""
        """The id of the last message with calls, which may get more. In the ACP mode it also gets calls of other
        messages."""
        self._emitted_calls: set[str] = set()
        """The ids of its emitted calls."""
        self._turn_end: SessionEntry | None = None
        """The end of the turn, held because the message without calls may be written again."""

    def read(self, row: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Yield the entries of a row."""
        at = parse_timestamp(row.get("timestamp"))
        compacted = (_text_of(message.get("content")) for message in self._history.apply(row))
        summary = next((content for content in compacted if content and not _is_injected(content)), None)
        if summary is not None:
            yield SessionEntry(at, facts.ContextCompacted(summary))
        if "sessionId" in row:
            self.session_id = text(row.get("sessionId"))
            yield SessionEntry(
                parse_timestamp(row.get("startTime")),
                SessionDescribed(
                    session_id=self.session_id, title=text(row.get("summary")) or None, cwd=self._cwd or None
                ),
            )
        title = text(mapping(row.get("$set")).get("summary"))
        if title:
            yield SessionEntry(at, SessionDescribed(title=title))
        match row.get("type"):
            case "user" if text(row.get("id")) not in self._removed:
                yield from self._user(at, row)
            case "gemini":
                yield from self._gemini(at, row)

    def close(self) -> Iterator[SessionEntry]:
        """Yield the held end of the turn, because no row follows for now."""
        turn_end, self._turn_end = self._turn_end, None
        if turn_end is not None:
            yield turn_end

    def _user(self, at: int | None, row: Mapping[str, Any]) -> Iterator[SessionEntry]:
        prompt = _text_of(row.get("displayContent") or row.get("content"))
        if any("functionResponse" in part for part in rows(row.get("content"))) or _is_injected(prompt):
            return
        yield from self.close()
        yield SessionEntry(at, PromptSent(prompt))

    def _gemini(self, at: int | None, row: Mapping[str, Any]) -> Iterator[SessionEntry]:
        message_id, calls = text(row.get("id")), rows(row.get("toolCalls"))
        is_kept, call = message_id not in self._removed, _model_call(row)
        # A message with calls but without tokens repeats text of another message.
        if is_kept and message_id != self._last and (call is not None or not calls):
            self._last = message_id
            for fact in _message_facts(row):
                yield SessionEntry(at, fact)
        if call is not None:
            yield SessionEntry(at, call)
        if is_kept:
            self._turn_end = None if calls or not _text_of(row.get("content")) else SessionEntry(at, facts.TurnDone())
            yield from self._tools(at, message_id, calls)

    def _tools(self, at: int | None, message_id: str, calls: list[Mapping[str, Any]]) -> Iterator[SessionEntry]:
        if calls and message_id != self._with_calls:
            self._with_calls, self._emitted_calls = message_id, set()
        calls = [call for call in calls if text(call.get("id")) not in self._emitted_calls]
        for call in calls:
            call_id = text(call.get("id"))
            self._emitted_calls.add(call_id)
            yield SessionEntry(at, self._calls.start(call_id, text(call.get("name")), mapping(call.get("args"))))
        for call in calls:
            for fact in self._calls.finish(text(call.get("id")), stored_result(call), created=has_created(call)):
                yield SessionEntry(parse_timestamp(call.get("timestamp")), fact)


def _is_injected(content: str) -> bool:
    return content.lstrip().startswith(INJECTED)


def _message_facts(row: Mapping[str, Any]) -> Iterator[facts.Fact]:
    yield facts.StepBegin()
    thoughts = "".join(_thoughts(row)).strip()
    if thoughts:
        yield facts.WholeThinking(thoughts)
    message = _text_of(row.get("content"))
    if message:
        yield facts.WholeText(message)


def _thoughts(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of the thoughts. One without a subject continues the previous one, as it was streamed."""
    for thought in rows(row.get("thoughts")):
        subject, rest = text(thought.get("subject")), text(thought.get("description"))
        yield f"\n\n**{subject}**\n{rest}" if subject else rest


def _model_call(row: Mapping[str, Any]) -> ModelCalled | None:
    tokens = mapping(row.get("tokens"))
    counts = (whole(tokens.get(name)) for name in ("input", "output", "thoughts", "cached"))
    input_tokens, output_tokens, thinking, cached = counts
    if not input_tokens and not output_tokens and not thinking:
        return None
    usage = facts.Usage(max(input_tokens - cached, 0), output_tokens + thinking, thinking, cached)
    return ModelCalled(text(row.get("id")), text(row.get("model")), usage)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(part.get("text")) for part in rows(content) if "text" in part and not part.get("thought"))


def _directory_of(path: Path) -> str:
    """Return the working directory of the project; empty when it is unknown."""
    try:
        return (path.parent.parent / ".project_root").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# -- results of stored tool calls, which are what the model got
# stream-json has less: it shows nothing of a read file, and without `--debug` not how a command ended.

_FRAME = ("<untrusted_context>\n", "\n</untrusted_context>")
_REPORT = re.compile(r"Subagent '[^'\n]*' finished\.\nTermination Reason: \w+\nResult:\n")
_CREATED = "Successfully created and wrote to new file"
_ESCAPED, _END = "&lt;/untrusted_context&gt;", "</untrusted_context>"


def stored_result(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a stored call to a `tool_result` line."""
    answers = [mapping(mapping(part.get("functionResponse")).get("response")) for part in rows(call.get("result"))]
    error = "\n".join(filter(None, (text(answer.get("error")) for answer in answers)))
    output = "\n".join(_unframed(text(answer.get("output"))) for answer in answers if "output" in answer)
    if call.get("status") == "success":
        return {"status": "success", "output": output}
    return {"status": "error", "output": output, "error": {"message": error}}


def has_created(call: Mapping[str, Any]) -> bool:
    """Return whether the call wrote a file that did not exist before."""
    shown = call.get("resultDisplay")
    if isinstance(shown, dict):
        return shown.get("isNewFile") is True
    # In 0.15 only the text for the model shows it.
    return text(stored_result(call).get("output")).startswith(_CREATED)


def _unframed(output: str) -> str:
    report = _REPORT.match(output)
    if report is not None:
        return output[report.end() :]
    begin, end = _FRAME
    if not output.startswith(begin) or not output.endswith(end):
        return output
    return output[len(begin) : -len(end)].replace(_ESCAPED, _END)


STORE = SessionStore(root=root, find=find, open=open_session)
