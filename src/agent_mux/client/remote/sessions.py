"""The stored sessions of the machine of a service: as `agent_mux.sessions.client`, over HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import msgspec

from agent_mux.api.costs import CostView, cost_from
from agent_mux.client.remote.asking import answer, milliseconds, path_of, refused
from agent_mux.client.remote.connection import Line
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.sessions import export, queries
from agent_mux.sessions.conversation import Session
from agent_mux.sessions.library import Sort
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary, choose_session

_Hits = list[queries.Hit]
_Page = list[Any]
LARGEST_PAGE = 1000
_FILES = "it is about files of another machine; use `get`, `events` or `export`"


class _Named(msgspec.Struct):
    """Something of an agent."""

    agent: str


class RemoteSessions:
    """What `AgentMux.sessions` is there. Blocking; every call asks the service. Raises what the service says, too."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line

    def list(
        self, wanted: SessionFilter = ALL, *, sort: Sort = "date", limit: int | None = 100
    ) -> "list[SessionSummary]":
        """The sessions that are wanted. As `Sessions.list`; what is more than 1000 comes in pages."""
        return self._paged(SessionSummary, limit, "sessions", **_parameters(wanted), sort=sort)

    def search(self, text: str, wanted: SessionFilter = ALL, **how: Any) -> _Hits:
        """Where a text occurs. As `Sessions.search`: `sort` and `limit`. Raises VALIDATION_ERROR for a blank text."""
        return self._searched(text, wanted, **how)

    def _searched(
        self, text: str, wanted: SessionFilter, *, sort: queries.SearchOrder = "relevance", limit: int | None = 50
    ) -> _Hits:
        where = {**_parameters(wanted), "q": text, "sort": sort}
        return self._paged(queries.Hit, limit, "sessions", "search", **where)

    def total_cost(self, wanted: SessionFilter = ALL, *, group_by: queries.GroupBy = "agent") -> queries.CostReport:
        """What they cost, by group. As `Sessions.total_cost`; days are those of the time zone of the service."""
        return cost_from(answer(self._line, CostView, "cost", **_parameters(wanted), by=group_by))

    def get(self, session: str, wanted: SessionFilter = ALL) -> Session:
        """A session with all its messages. As `Sessions.get`."""
        found: Session = answer(self._line, Session, "sessions", *self._place(session, wanted))
        return found

    def export(self, session: str, form: export.Format, wanted: SessionFilter = ALL) -> str:
        """A session as a document. As `Sessions.export`; times are in the time zone of the service."""
        path = path_of("sessions", *self._place(session, wanted), "export", format=form)
        return self._line.ask_blocking("GET", path, again=True, accept="*/*").decode("utf-8", "replace")

    def diff(self, first: str, second: str) -> queries.SessionDiff:
        """Where two sessions part. As `Sessions.diff`."""
        return queries.diff(self.get(first), self.get(second))

    def events(self, session: str, wanted: SessionFilter = ALL) -> Iterator[AgentEvent]:
        """A session as the events that a run of it would have had, as they come. As `Sessions.events`."""
        path = path_of("sessions", *self._place(session, wanted), "events", accumulated="false")
        rebuilder = Rebuilder()
        for line in self._line.lines_blocking(path):
            try:
                event = rebuilder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise AgentMuxError("UNAVAILABLE", f"what the service says cannot be read: {error}") from error
            yield event  # type: ignore[misc]  # of a newer service: as it is

    def find(self, session: str, wanted: SessionFilter = ALL) -> NoReturn:  # noqa: ARG002  # here and below: as there
        """Refused, as what it finds is a file of the machine of the service."""
        raise refused("finding the file of a session", _FILES)

    def known(self, wanted: SessionFilter = ALL) -> NoReturn:  # noqa: ARG002
        """Refused, as `find`."""
        raise refused("listing the files of sessions", "it is about files of another machine; use `list`")

    def read(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Refused, as `find`."""
        raise refused("reading the file of a session", _FILES)

    def open(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Refused, as `find`."""
        raise refused("opening the file of a session", _FILES)

    def events_of(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Refused, as `find`."""
        raise refused("reading the file of a session", _FILES)

    def watch(self, session: str, wanted: SessionFilter = ALL, *, from_start: bool = True) -> NoReturn:  # noqa: ARG002
        """Refused: the service tells of runs while they work, and of sessions as they are stored."""
        raise refused("watching a stored session", "watch its run (`attach`), or use `AgentMux` on that machine")

    def _paged(self, kind: Any, limit: int | None, *names: str, **parameters: object) -> _Page:
        most = None if limit is None or limit < 0 else limit  # as slices have it
        found: list[Any] = []
        while most is None or len(found) < most:
            size = LARGEST_PAGE if most is None else min(most - len(found), LARGEST_PAGE)
            page = answer(self._line, list[kind], *names, **parameters, limit=size, offset=len(found))
            found += page
            if len(page) < size:
                break
        return found[:limit]

    def _place(self, session: str, wanted: SessionFilter) -> tuple[str, str]:
        """The agent and the id that the service is asked by. Raises SESSION_NOT_FOUND, AGENT_NOT_FOUND."""
        agent, native_id = self._split(session, wanted)
        others = replace(wanted, agent=None)
        if agent is not None and native_id and others == ALL:
            return agent, native_id
        known = self.list(replace(wanted, agent=agent), limit=None)
        found = choose_session(session, native_id, known, lambda summary: summary)
        return found.agent, found.native_id

    def _split(self, session: str, wanted: SessionFilter) -> tuple[str | None, str]:
        """As `SessionLibrary` does: only the name of an agent in front is taken for one."""
        named, colon, native_id = session.partition(":")
        agent = self._agent(named) if colon else None
        if agent is None or (wanted.agent is not None and self._agent(wanted.agent) != agent):
            return wanted.agent, session
        return agent, native_id

    def _agent(self, name: str) -> str | None:
        """The registered name of an agent; None: there is none of this name."""
        if not name:
            return None
        try:
            told: _Named = answer(self._line, _Named, "agents", name, "capabilities")
        except AgentMuxError as error:
            if error.code != "AGENT_NOT_FOUND":
                raise
            return None
        return told.agent


def _parameters(wanted: SessionFilter) -> dict[str, Any]:
    if wanted.directory is not None:
        ours = "None: a service reads the agents' own directories of its machine"
        raise ValidationError([FieldError("directory", str(wanted.directory), ours)])
    return {
        "agent": wanted.agent,
        "model": wanted.model,
        "since": milliseconds(wanted.since),
        "until": milliseconds(wanted.until),
        "tag": wanted.tags,
        "cwd": wanted.cwd,
    }
