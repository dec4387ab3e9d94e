"""All there is to do with stored sessions, on one object. Source: run API, section 6."""

from collections.abc import Iterator
from typing import Any

from agent_mux.events import AgentEvent
from agent_mux.sessions import export, queries
from agent_mux.sessions.events import SessionEvents
from agent_mux.sessions.library import SessionLibrary, StoredSession
from agent_mux.sessions.summary import ALL, SessionFilter


class Sessions(SessionLibrary):
    """The sessions that the agents stored. Reads and never writes; blocking, but for `watch`."""

    def search(self, text: str, wanted: SessionFilter = ALL, **how: Any) -> list[queries.Hit]:
        """Where a text occurs. `sort` and `limit`: see `agent_mux.sessions.queries.search`."""
        return queries.search(self, text, wanted, **how)

    def total_cost(self, wanted: SessionFilter = ALL, *, group_by: queries.GroupBy = "agent") -> queries.CostReport:
        """What they cost, by group. See `agent_mux.sessions.queries.cost_report`."""
        return queries.cost_report(self, wanted, group_by=group_by)

    def export(self, session: str, form: export.Format, wanted: SessionFilter = ALL) -> str:
        """A session as a document. Arguments and errors as for `find`."""
        return export.export(self.get(session, wanted), form)

    def diff(self, first: str, second: str) -> queries.SessionDiff:
        """Where two sessions part. Errors as for `find`."""
        return queries.diff(self.get(first), self.get(second))

    def events(self, session: str, wanted: SessionFilter = ALL) -> Iterator[AgentEvent]:
        """A session as the events that a run of it would have had. Arguments and errors as for `find`."""
        return self.events_of(self.find(session, wanted))

    def events_of(self, known: StoredSession) -> Iterator[AgentEvent]:
        """The same, of one that was found already."""
        events = SessionEvents(known.adapter, known.summary)
        yield from events.read(self.open(known))
        yield from events.end()

    def watch(self, session: str, wanted: SessionFilter = ALL, *, from_start: bool = True) -> queries.Watcher:
        """The events of a session, and those that come while its agent works. Arguments and errors as for `find`.

        `from_start`: with what is there already, or else with what comes next.
        """
        known = self.find(session, wanted)
        return queries.Watcher(known, self.open(known), from_start=from_start)
