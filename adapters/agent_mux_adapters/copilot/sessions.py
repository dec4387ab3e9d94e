"""The sessions that Copilot stores: its own events, the same as in its protocols, in one file of JSON lines each.

`$COPILOT_HOME` (else `~/.copilot`) `/session-state/<id>/events.jsonl`. Fragments are left out, and `assistant.idle`: a
turn is over when the model has called no tool and nothing follows. Recorded with 1.0.102.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.adapter import CodecContext
from agent_mux.place import Place
from agent_mux.sessions.lines import LineCursor, files_below, milliseconds_of
from agent_mux.sessions.store import Described, Entry, Found, ModelCalled, Prompted, SessionStore, Told
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.copilot.events import SessionEvents
from agent_mux_adapters.copilot.meter import tokens_of
from agent_mux_adapters.copilot.requests import Requests
from agent_mux_adapters.copilot.wire import agent_of


def root(place: Place) -> Path:
    """Where the directories of the sessions are."""
    return place.home_of("COPILOT_HOME", ".copilot") / "session-state"


def find(place: Place) -> Iterator[Found]:
    """All sessions."""
    return files_below(root(place), "*/events.jsonl")


def open_session(found: Found) -> LineCursor:
    """From its first event."""
    events = StoredEvents()
    return LineCursor(found.path, events.read, events.close)


class StoredEvents:
    """Reads the events of one session."""

    def __init__(self) -> None:
        self._events = self._new_events("")
        self._is_over = False
        """The model has called no tool."""
        self._at: int | None = None

    def _new_events(self, cwd: str) -> SessionEvents:
        context = CodecContext(agent="copilot", protocol="stored", cwd=cwd)
        return SessionEvents(context, Requests(JsonRpcClient(with_version=True)))

    def read(self, event: Mapping[str, Any]) -> Iterator[Entry]:
        """What an event says."""
        self._at = milliseconds_of(event.get("timestamp")) or self._at
        kind, data = text(event.get("type")), mapping(event.get("data"))
        is_main = not agent_of(event)
        if kind == "user.message" and is_main and self._is_over:
            yield from self.close()
        for fact in self._facts(kind, data, event, is_main=is_main):
            yield Entry(self._at, fact)
        if is_main and kind == "assistant.message":
            self._is_over = not rows(data.get("toolRequests"))

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        if self._is_over:
            self._is_over = False
            for fact in self._events.tell({"type": "assistant.idle", "data": {}}) or ():
                yield Entry(self._at, fact)

    def _facts(self, kind: str, data: Mapping[str, Any], event: Mapping[str, Any], *, is_main: bool) -> Iterable[Told]:
        match kind:
            case "session.start":
                cwd = text(mapping(data.get("context")).get("cwd"))
                self._events = self._new_events(cwd)
                yield _described(data)
            case "session.resume":
                yield _described(data)
            case "session.title_changed":
                yield Described(title=text(data.get("title")) or None)
            case "user.message" if is_main:
                yield Prompted(text(data.get("content")))
            case "session.usage_record":
                yield from _called(mapping(data.get("usage")), is_main=is_main)
        yield from self._events.tell(event) or ()


def _described(data: Mapping[str, Any]) -> Described:
    context = mapping(data.get("context"))
    return Described(
        session_id=text(data.get("sessionId")) or None,
        cwd=text(context.get("cwd")) or None,
        branch=text(context.get("branch")) or None,
        version=text(data.get("copilotVersion")) or None,
    )


def _called(usage: Mapping[str, Any], *, is_main: bool) -> Iterable[Told]:
    yield ModelCalled(
        text(usage.get("apiCallId")), text(usage.get("model")), tokens_of(usage).usage, is_inside=not is_main
    )


STORE = SessionStore(root=root, find=find, open=open_session)
