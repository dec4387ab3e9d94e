"""`AgentMux.sessions`: the session library with search, costs, export, comparison and events.

See docs/spec/run-api.md, section 6.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_mux._util.paths import config_dir
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.sdk.session_changes import RewindScope
from agent_mux.sessions import export, queries
from agent_mux.sessions.administration import cannot_delete, commands_of, delete_session, rename_session
from agent_mux.sessions.checkpoints import (
    Checkpoint,
    Rewound,
    checkpoints_of,
    choose_checkpoint,
    resolve_scope,
    rewind_to,
)
from agent_mux.sessions.events import SessionEventConverter, SessionWatcher
from agent_mux.sessions.library import SessionLibrary, StoredSession
from agent_mux.sessions.names import NamedSession, NamedSessions
from agent_mux.sessions.reservations import reserve_session
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary
from agent_mux.sessions.tag_store import change_tags


class Sessions(SessionLibrary):
    """The sessions that the agents stored. Never writes agents' files itself; every method except `watch` blocks."""

    def search(self, text: str, wanted: SessionFilter = ALL, **options: Any) -> list[queries.Hit]:
        """Return the sessions that contain a text in a prompt, an answer, thinking, or a tool's input or output.

        Args:
            text: What to search for; case is ignored.
            wanted: Which sessions to search.
            **options: `sort` (`relevance`, by number of occurrences, or as in `list`), `order` and `limit` as in
                `list`, and `mask`, a function that hides secrets in a text before it is searched.

        Raises:
            AgentMuxError: As `list`.
        """
        return queries.search(self, text, wanted, **options)

    def total_cost(self, wanted: SessionFilter = ALL, *, group_by: queries.GroupBy = "agent") -> queries.CostReport:
        """Return the costs of sessions in US dollars, by group and over all groups. Errors are those of `list`."""
        return queries.cost_report(self, wanted, group_by=group_by)

    def export(self, session: str, form: export.Format, wanted: SessionFilter = ALL) -> str:
        """Return a session as a document. Arguments and errors are those of `find`."""
        return export.export(self.get(session, wanted), form)

    def diff(self, first: str, second: str) -> queries.SessionDiff:
        """Compare two sessions. Errors are those of `find`."""
        return queries.diff(self.get(first), self.get(second))

    def events(self, session: str, wanted: SessionFilter = ALL) -> Iterator[AgentEvent]:
        """Yield a session as events, as a run would have emitted them. Arguments and errors are those of `find`."""
        return self.events_of(self.find(session, wanted))

    def events_of(self, known: StoredSession) -> Iterator[AgentEvent]:
        """Yield the events of a session that `find` or `known` returned."""
        converter = SessionEventConverter(known.adapter, known.summary)
        yield from converter.read(self.open(known))
        yield from converter.end()

    def tag(
        self, session: str, wanted: SessionFilter = ALL, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Add and remove tags of a session; return all its tags. The tags are kept on our side.

        Arguments and errors are those of `find`; VALIDATION_ERROR for an invalid tag, and for one to be removed that a
        run gave; CONFIG_ERROR.
        """
        known = self.find(session, wanted)
        change_tags(self._own_directory(), known.summary.id, add=add, remove=remove)
        return self.find(known.summary.id).summary.tags

    def summary(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the summary of a session. Arguments and errors are those of `find`."""
        return self.find(session, wanted).summary

    def deletable(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the summary of a session that `delete` can delete.

        Arguments and errors are those of `find`; `CapabilityError` if the agent cannot delete sessions.
        """
        known = self.find(session, wanted)
        if commands_of(known).delete is None:
            raise cannot_delete(known)
        return known.summary

    def delete(self, session: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Delete a session with its agent's own program, and return its last summary.

        Arguments and errors are those of `find` and `agent_mux.sessions.administration.delete_session`; also
        INVALID_STATE_TRANSITION while a run of this machine uses the session.
        """
        known = self.find(session, wanted)
        with self._reserved(known, "deleted"):
            delete_session(known)
        if any(one.summary.id == known.summary.id for one in self.known(SessionFilter(agent=known.adapter.agent))):
            raise AgentMuxError("AGENT_CRASH", f"{known.adapter.agent} reported no error but kept {known.summary.id}")
        return known.summary

    def rename(self, session: str, title: str, wanted: SessionFilter = ALL) -> SessionSummary:
        """Set the title of a session with its agent's own program, and return its new summary.

        Arguments and errors are those of `find` and `agent_mux.sessions.administration.rename_session`; also
        INVALID_STATE_TRANSITION while a run of this machine uses the session.
        """
        known = self.find(session, wanted)
        with self._reserved(known, "renamed"):
            rename_session(known, title)
        return self.find(known.summary.id, wanted).summary

    def checkpoints(self, session: str, wanted: SessionFilter = ALL) -> tuple[Checkpoint, ...]:
        """Return the states of a session before each of its prompts, to which `rewind` can go back.

        Arguments and errors are those of `find`; `CapabilityError` if the agent cannot rewind sessions.
        """
        known = self.find(session, wanted)
        return checkpoints_of(known, self.open(known))

    def rewind(
        self, session: str, checkpoint: str, wanted: SessionFilter = ALL, *, scope: RewindScope | None = None
    ) -> Rewound:
        """Rewind a session to the state before a prompt, with its agent's own program.

        Where the shorter conversation is a new session, the names of the session continue that one.

        Args:
            session: As for `find`.
            checkpoint: Id of a checkpoint, or an unambiguous beginning of it.
            wanted: Which sessions to search.
            scope: Rewind the conversation, the files that the agent edited, or both; default: both where the agent can
                and has saved the files, else the conversation.

        Raises:
            AgentMuxError: The errors of `find` and `agent_mux.sessions.administration.rewind_session`;
                INVALID_STATE_TRANSITION while a run of this machine uses the session; VALIDATION_ERROR if there is no
                such checkpoint, or it has no files to restore.
        """
        known = self.find(session, wanted)
        found = checkpoints_of(known, self.open(known))
        chosen = choose_checkpoint(known.summary.id, checkpoint, found)
        with self._reserved(known, "rewound"):
            done = rewind_to(known, found, chosen, scope)
        if done.is_new:
            shorter = done.session.removeprefix(f"{known.adapter.agent}:")
            NamedSessions(self._own_directory()).move(known.adapter.agent, known.summary.native_id, shorter)
        return done

    def plan_rewind(
        self, session: str, checkpoint: str, wanted: SessionFilter = ALL, *, scope: RewindScope | None = None
    ) -> Rewound:
        """Return what `rewind` would change, except for the files. Arguments and errors are those of `rewind`."""
        known = self.find(session, wanted)
        chosen = choose_checkpoint(known.summary.id, checkpoint, checkpoints_of(known, self.open(known)))
        changed = resolve_scope(known, chosen, scope)
        return Rewound(session=known.summary.id, checkpoint=chosen, changed=changed)

    @contextmanager
    def _reserved(self, known: StoredSession, verb: str) -> Iterator[None]:
        """Keep runs from a session while it is changed. Raises INVALID_STATE_TRANSITION while a run uses it."""

        def in_use(run: str) -> str:
            if not run:  # another change, or a run that has not yet written its id
                return f"{known.summary.id} is in use and cannot be {verb}; try again later"
            step = f"wait for its end, or end it with `amux runs abort {run}`"
            return f"{known.summary.id} is used by run {run} and cannot be {verb}; {step}"

        agent, native_id = known.adapter.agent, known.summary.native_id
        release = reserve_session(self._own_directory(), agent, native_id, "", in_use)
        try:
            yield
        finally:
            release()

    def names(self, *, agent: str | None = None, directory: Path | None = None) -> tuple[NamedSession, ...]:
        """Return the named sessions, the latest first; see `RunOptions.session_name`. Raises AGENT_NOT_FOUND."""
        registered = None if agent is None else self._adapters.get(agent).agent
        return NamedSessions(self._own_directory()).list(agent=registered, directory=directory)

    def forget_name(
        self, name: str, *, agent: str | None = None, directory: Path | None = None
    ) -> tuple[NamedSession, ...]:
        """Remove a name and return what it stood for. The session is kept. Raises SESSION_NOT_FOUND for a new name."""
        registered = None if agent is None else self._adapters.get(agent).agent
        return NamedSessions(self._own_directory()).forget(name, agent=registered, directory=directory)

    def _own_directory(self) -> Path:
        return self.tags.directory if self.tags is not None else config_dir()

    def watch(
        self, session: str | None = None, wanted: SessionFilter = ALL, *, from_start: bool = True
    ) -> SessionWatcher:
        """Return an iterator over the events of a session, including those that its agent adds later.

        Arguments and errors are those of `find`; None: those of `latest`. `from_start=False` skips the events that are
        stored already.
        """
        known = self.find(self.latest(wanted).id if session is None else session, wanted)
        return SessionWatcher(known, self.open(known), from_start=from_start)
