"""Sessions that Copilot stores: the events of its protocols, one file of JSON lines for each session.

`$COPILOT_HOME` (else `~/.copilot`) `/session-state/<id>/events.jsonl`. The files lack fragments and `assistant.idle`: a
turn is over when a message of the model calls no tool and nothing follows. A name that the user gave the session is in
`workspace.yaml` beside the events. Measured with 1.0.54 to 1.0.102.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.session_files import JsonLinesReader, find_session_files, parse_timestamp
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionStore,
)
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.copilot.approvals import CopilotApprovals
from agent_mux_adapters.copilot.reader import CopilotReader
from agent_mux_adapters.copilot.stored_metrics import StoredMetrics
from agent_mux_adapters.copilot.usage import tokens_of
from agent_mux_adapters.copilot.wire import agent_of


def root(place: AgentPaths) -> Path:
    """Return the directory with the directories of all sessions."""
    return place.home_of("COPILOT_HOME", ".copilot") / "session-state"


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Find the event files of all sessions."""
    return find_session_files(root(place), "*/events.jsonl")


def open_session(found: FoundSession) -> JsonLinesReader:
    """Return a cursor at the first event of a session."""
    reader = CopilotStoredEvents(found.path)
    return JsonLinesReader(found.path, reader.read, reader.at_end)


class CopilotStoredEvents:
    """Reader of the events of one stored session."""

    def __init__(self, path: Path) -> None:
        self._workspace = path.with_name("workspace.yaml")
        self._reader = self._new_reader("")
        self._is_answered = False
        """Whether the last message of the model called no tool, so that the turn may be over."""
        self._at: int | None = None
        """The time of the last event that has one, in milliseconds."""
        self._metrics = StoredMetrics()
        self._was_opened = False
        """Whether the session was started or resumed since its name was read."""

    def _new_reader(self, cwd: str) -> CopilotReader:
        context = CodecContext(agent="copilot", protocol="stored", cwd=cwd)
        return CopilotReader(context, CopilotApprovals(JsonRpcClient(with_version=True), context.cwd))

    def read(self, event: Mapping[str, Any]) -> Iterator[SessionEntry]:
        """Return the entries of one event."""
        self._at = parse_timestamp(event.get("timestamp")) or self._at
        kind, data = text(event.get("type")), mapping(event.get("data"))
        is_main = not agent_of(event)
        if kind == "user.message" and is_main and self._is_answered:
            yield from self.close()
        for fact in self._facts(kind, data, event, is_main=is_main):
            yield SessionEntry(self._at, fact)
        if is_main and kind == "assistant.message":
            self._is_answered = not rows(data.get("toolRequests"))

    def close(self) -> Iterator[SessionEntry]:
        """Return the end of the turn if the model has answered: for now, nothing follows."""
        if self._is_answered:
            self._is_answered = False
            for fact in self._reader.read({"type": "assistant.idle", "data": {}}) or ():
                yield SessionEntry(self._at, fact)

    def at_end(self) -> Iterator[SessionEntry]:
        """Return the end of the turn, as `close`, and the name of a session that was started or resumed."""
        yield from self.close()
        if self._was_opened:  # a client that renames a stored session resumes it
            self._was_opened = False
            for fact in self._named():
                yield SessionEntry(self._at, fact)

    def _facts(
        self, kind: str, data: Mapping[str, Any], event: Mapping[str, Any], *, is_main: bool
    ) -> Iterable[SessionFact]:
        match kind:
            case "session.start":
                cwd = text(mapping(data.get("context")).get("cwd"))
                self._reader = self._new_reader(cwd)
                self._was_opened = True
                yield _described(data)
            case "session.resume":
                self._was_opened = True
                yield _described(data)
            case "session.title_changed":
                yield SessionDescribed(title=text(data.get("title")) or None)
            case "user.message" if is_main:
                yield PromptSent(text(data.get("content")), text(event.get("id")))
            case "session.usage_record":
                self._metrics.has_records = True
                yield from _model_call(mapping(data.get("usage")), is_main=is_main)
            case "assistant.message":
                self._metrics.calls += 1
            case "session.shutdown":
                yield from self._metrics.at_shutdown(mapping(data.get("modelMetrics")), text(event.get("id")))
        yield from self._reader.read(event) or ()

    def _named(self) -> Iterable[SessionFact]:
        """Return the name that the user gave the session, if there is one. A generated name is its first prompt."""
        try:
            data = open_document(self._workspace.read_text("utf-8"), "yaml").data()
        except (OSError, UnicodeDecodeError, DocumentError):
            return ()
        name = text(data.get("name")) if data.get("user_named") is True else ""
        return (SessionDescribed(title=name),) if name else ()


def _described(data: Mapping[str, Any]) -> SessionDescribed:
    context = mapping(data.get("context"))
    return SessionDescribed(
        session_id=text(data.get("sessionId")) or None,
        cwd=text(context.get("cwd")) or None,
        branch=text(context.get("branch")) or None,
        version=text(data.get("copilotVersion")) or None,
    )


def _model_call(usage: Mapping[str, Any], *, is_main: bool) -> Iterable[SessionFact]:
    yield ModelCalled(
        text(usage.get("apiCallId")), text(usage.get("model")), tokens_of(usage).usage, is_inside=not is_main
    )


STORE = SessionStore(root=root, find=find, open=open_session)
