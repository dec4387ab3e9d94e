"""The stored sessions of a service's machine, over HTTP: the interface of `agent_mux.sessions.client`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import msgspec

from agent_mux.api.costs import CostView, cost_from_view
from agent_mux.api.headers import SKIPPED_FILES
from agent_mux.client.remote.connection import ServiceConnection, fetch, path_of, to_milliseconds
from agent_mux.client.remote.responses import decode_response, unsupported
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.sdk.session_changes import RewindScope
from agent_mux.sessions import export, queries
from agent_mux.sessions.checkpoints import Checkpoint, Rewound
from agent_mux.sessions.conversation import Session
from agent_mux.sessions.library import Order, SessionListing, SkippedFile, Sort
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary, choose_session, only_of

CHANGE_TIMEOUT = 300.0  # seconds: an agent's program may take two minutes, and changes are carried out one at a time

_Hits = list[queries.Hit]
_Page = list[Any]
MAX_PAGE_SIZE = 1000
_USE_NAMES_COMMAND = "use `amux sessions names` on the machine of the service"
_NO_FILES = "files are on another machine; use `get`, `events` or `export`"


class _AgentName(msgspec.Struct):
    """The part of an agent's capabilities that names it."""

    agent: str


class RemoteSessions:
    """The stored sessions of a service: the interface of `Sessions`. Every call is a blocking request.

    In addition to the errors of `Sessions`, every method raises the error that the service returns, and UNAVAILABLE
    when it cannot be reached. Methods that concern files of the service's machine raise `CapabilityError`.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(
        self, wanted: SessionFilter = ALL, *, sort: Sort = "date", order: Order = "desc", limit: int | None = 100
    ) -> SessionListing:
        """Return the sessions that match. See `Sessions.list`.

        More than 1000 sessions take several requests, and files that cannot be read take one more.
        """
        found, has_skipped = self._paged(
            SessionSummary, limit, "sessions", **_parameters(wanted), sort=sort, order=order
        )
        if not has_skipped:
            return SessionListing(found)
        skipped = fetch(self._connection, list[SkippedFile], "sessions", "skipped", agent=wanted.agent)
        return SessionListing(found, skipped)

    def latest(self, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the session that changed last. See `Sessions.latest`."""
        return only_of(self.list(wanted, limit=1))

    def search(self, text: str, wanted: SessionFilter = ALL, **how: Any) -> _Hits:
        """Return where a text occurs. `how`: `sort`, `order` and `limit`, see `Sessions.search`.

        Raises VALIDATION_ERROR for a blank text.
        """
        return self._searched(text, wanted, **how)

    def _searched(
        self,
        text: str,
        wanted: SessionFilter,
        *,
        sort: queries.SearchOrder = "relevance",
        order: Order = "desc",
        limit: int | None = 50,
    ) -> _Hits:
        where = {**_parameters(wanted), "q": text, "sort": sort, "order": order}
        found, _ = self._paged(queries.Hit, limit, "sessions", "search", **where)
        return found

    def total_cost(self, wanted: SessionFilter = ALL, *, group_by: queries.GroupBy = "agent") -> queries.CostReport:
        """Return the cost of the sessions that match, in US dollars by group. See `Sessions.total_cost`.

        Days are those of the service's time zone.
        """
        return cost_from_view(fetch(self._connection, CostView, "cost", **_parameters(wanted), by=group_by))

    def get(self, session: str, wanted: SessionFilter = ALL) -> Session:
        """Return a session with all its messages. See `Sessions.get`."""
        found: Session = fetch(self._connection, Session, "sessions", *self._locate(session, wanted))
        return found

    def export(self, session: str, form: export.Format, wanted: SessionFilter = ALL) -> str:
        """Return a session as a document, with times in the service's time zone. See `Sessions.export`."""
        path = path_of("sessions", *self._locate(session, wanted), "export", format=form)
        return self._connection.request_blocking("GET", path, is_idempotent=True, accept="*/*").decode(
            "utf-8", "replace"
        )

    def diff(self, first: str, second: str) -> queries.SessionDiff:
        """Return the differences between two sessions. See `Sessions.diff`."""
        return queries.diff(self.get(first), self.get(second))

    def events(self, session: str, wanted: SessionFilter = ALL) -> Iterator[AgentEvent]:
        """Yield a session as the events of a run, as they arrive. See `Sessions.events`."""
        path = path_of("sessions", *self._locate(session, wanted), "events", accumulated="false")
        rebuilder = Rebuilder()
        for line in self._connection.iter_lines(path):
            try:
                event = rebuilder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise AgentMuxError("UNAVAILABLE", f"an event of the service cannot be read: {error}") from error
            yield event  # type: ignore[misc]  # an event type of a newer service is passed on unchanged

    def find(self, session: str, wanted: SessionFilter = ALL) -> NoReturn:  # noqa: ARG002  # here and below: the signatures of Sessions
        """Raise `CapabilityError`: a stored session is a file on the service's machine."""
        raise unsupported("finding the file of a session", _NO_FILES)

    def known(self, wanted: SessionFilter = ALL) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`, as `find` does."""
        raise unsupported("listing the files of sessions", "files are on another machine; use `list`")

    def read(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`, as `find` does."""
        raise unsupported("reading the file of a session", _NO_FILES)

    def open(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`, as `find` does."""
        raise unsupported("opening the file of a session", _NO_FILES)

    def events_of(self, known: Any) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`, as `find` does."""
        raise unsupported("reading the file of a session", _NO_FILES)

    def watch(self, session: str, wanted: SessionFilter = ALL, *, from_start: bool = True) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: a service streams the events of runs, but not changes of stored sessions."""
        raise unsupported("watching a stored session", "watch its run (`attach`), or use `AgentMux` on that machine")

    def tag(self, session: str, wanted: SessionFilter = ALL, **changes: Any) -> NoReturn:  # noqa: ARG002  # here and below
        """Raise `CapabilityError`: tags are in files of the service's machine."""
        raise unsupported("changing tags of sessions", "use `amux sessions tag` on the machine of the service")

    def summary(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the summary of a session. See `Sessions.summary`."""
        return self.get(session, wanted).summary

    def deletable(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the summary of a session. Unlike `Sessions.deletable`, only `delete` asks whether the agent can."""
        return self.summary(session, wanted)

    def delete(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Delete a session with its agent's own program, and return its last summary. See `Sessions.delete`.

        Needs the scope `admin`, as the other changes. Raises FORBIDDEN without it, and for a session that worked
        outside of the roots of the service.
        """
        done: SessionSummary = self._changed("DELETE", SessionSummary, session, wanted)
        return done

    def rename(self, session: str, title: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Set the title of a session, and return its new summary. See `Sessions.rename`; raises also as `delete`."""
        done: SessionSummary = self._changed("PATCH", SessionSummary, session, wanted, payload={"title": title})
        return done

    def checkpoints(self, session: str, wanted: SessionFilter = ALL) -> tuple[Checkpoint, ...]:
        """Return the states of a session before each of its prompts. See `Sessions.checkpoints`."""
        where = self._locate(session, wanted)
        found: tuple[Checkpoint, ...] = fetch(
            self._connection, tuple[Checkpoint, ...], "sessions", *where, "checkpoints"
        )
        return found

    def rewind(
        self, session: str, checkpoint: str, wanted: SessionFilter = ALL, *, scope: RewindScope | None = None
    ) -> Rewound:
        """Rewind a session to the state before a prompt. See `Sessions.rewind`; raises also as `delete`."""
        return self._rewound(session, checkpoint, wanted, scope, dry_run=False)

    def plan_rewind(
        self, session: str, checkpoint: str, wanted: SessionFilter = ALL, *, scope: RewindScope | None = None
    ) -> Rewound:
        """Return what `rewind` would change. See `Sessions.plan_rewind`; raises also as `delete`."""
        return self._rewound(session, checkpoint, wanted, scope, dry_run=True)

    def _rewound(
        self, session: str, checkpoint: str, wanted: SessionFilter, scope: RewindScope | None, *, dry_run: bool
    ) -> Rewound:
        payload = {"checkpoint": checkpoint, "scope": scope, "dryRun": dry_run}
        done: Rewound = self._changed("POST", Rewound, session, wanted, "rewind", payload=payload)
        return done

    def _changed(
        self, method: str, kind: Any, session: str, wanted: SessionFilter, *names: str, payload: Any = None
    ) -> Any:
        path = path_of("sessions", *self._locate(session, wanted), *names)
        body = self._connection.request_blocking(method, path, payload, timeout=CHANGE_TIMEOUT)
        return decode_response(body, kind)

    def names(self, **which: Any) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the names are in a file of the service's machine."""
        raise unsupported("listing session names", _USE_NAMES_COMMAND)

    def forget_name(self, name: str, **which: Any) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the names are in a file of the service's machine."""
        raise unsupported("removing session names", _USE_NAMES_COMMAND)

    def _paged(self, kind: Any, limit: int | None, *names: str, **parameters: object) -> tuple[_Page, bool]:
        """Return the results of as many requests as needed, and whether files were skipped."""
        maximum = None if limit is None or limit < 0 else limit  # as in a slice
        found: list[Any] = []
        has_skipped = False
        while maximum is None or len(found) < maximum:
            size = MAX_PAGE_SIZE if maximum is None else min(maximum - len(found), MAX_PAGE_SIZE)
            response = self._connection.get_blocking(path_of(*names, **parameters, limit=size, offset=len(found)))
            has_skipped = has_skipped or SKIPPED_FILES in response.headers
            page = decode_response(response.content, list[kind])
            found += page
            if len(page) < size:
                break
        return found[:limit], has_skipped

    def _locate(self, session: str, wanted: SessionFilter) -> tuple[str, str]:
        """Return the agent and the native id of a session. Raises SESSION_NOT_FOUND, AGENT_NOT_FOUND."""
        agent, native_id = self._split(session, wanted)
        others = replace(wanted, agent=None)
        if agent is not None and native_id and others == ALL:
            return agent, native_id
        known = self.list(replace(wanted, agent=agent), limit=None)
        found = choose_session(session, native_id, known, lambda summary: summary)
        return found.agent, found.native_id

    def _split(self, session: str, wanted: SessionFilter) -> tuple[str | None, str]:
        """Split `agent:id`, as `SessionLibrary` does: a prefix that is not the name of an agent is part of the id."""
        named, colon, native_id = session.partition(":")
        agent = self._agent_name(named) if colon else None
        if agent is None or (wanted.agent is not None and self._agent_name(wanted.agent) != agent):
            return wanted.agent, session
        return agent, native_id

    def _agent_name(self, name: str) -> str | None:
        """Return the registered name of an agent, None if the service has none with this name or alias."""
        if not name:
            return None
        try:
            found: _AgentName = fetch(self._connection, _AgentName, "agents", name, "capabilities")
        except AgentMuxError as error:
            if error.code != "AGENT_NOT_FOUND":
                raise
            return None
        return found.agent


def _parameters(wanted: SessionFilter) -> dict[str, Any]:
    if wanted.directory is not None:
        allowed = "None: a service reads the agents' own directories of its machine"
        raise ValidationError([FieldError("directory", str(wanted.directory), allowed)])
    return {
        "agent": wanted.agent,
        "model": wanted.model,
        "since": to_milliseconds(wanted.since),
        "until": to_milliseconds(wanted.until),
        "tag": wanted.tags,
        "cwd": wanted.cwd,
    }
