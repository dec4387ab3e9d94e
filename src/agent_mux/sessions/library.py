"""The session library: lists, finds and reads the stored sessions of all agents.

See docs/spec/run-api.md, section 6.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, structs

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.sessions import FoundSession, SessionReader, SessionStore, UnreadableSessionError
from agent_mux.sessions.cache import SummaryCache, decode
from agent_mux.sessions.conversation import ConversationBuilder, Session
from agent_mux.sessions.spending import PricedCall
from agent_mux.sessions.summary import (
    ALL,
    SessionFilter,
    SessionSummary,
    SummarizedSession,
    Summarizer,
    choose_session,
    only_of,
)
from agent_mux.sessions.tags import SessionTags, TagsOf

Sort = Literal["date", "cost", "turns"]
Order = Literal["desc", "asc"]
"""The direction of a sorted list: the largest or latest first, or the smallest or oldest first."""
MAX_NAMED_KINDS = 5  # kinds of unknown rows that a reason names


class SkippedFile(Struct, frozen=True, kw_only=True):
    """A file that cannot be read as a session."""

    agent: str
    path: Annotated[str, Meta(description="The file, or the directory of the sessions if that cannot be read.")]
    reason: Annotated[str, Meta(description="Why it cannot be read.")]

    def __str__(self) -> str:
        return f"{self.path} is skipped: {self.reason}"


class SessionListing(list[SessionSummary]):
    """Summaries of sessions, and the files that may contain more."""

    def __init__(self, summaries: Iterable[SessionSummary] = (), skipped: Iterable[SkippedFile] = ()) -> None:
        super().__init__(summaries)
        self.skipped = tuple(skipped)
        """Files of the same agents that cannot be read. They may contain sessions that the filter excludes."""


_OnSkipped = Callable[[SkippedFile], None]


class StoredSession(NamedTuple):
    """A stored session: its adapter, its location and its summary with the model calls."""

    adapter: Adapter
    found: FoundSession
    summarized: SummarizedSession

    @property
    def summary(self) -> SessionSummary:
        """The summary of the session, including its tags."""
        return self.summarized.summary

    @property
    def calls(self) -> tuple[PricedCall, ...]:
        """The model calls of the session."""
        return self.summarized.calls


class SessionLibrary:
    """Reads the sessions that agents stored. All methods block and read the disk on every call."""

    def __init__(  # noqa: PLR0913  # all have a default
        self,
        adapters: AdapterRegistry | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        cache: Path | None = None,
        tags: SessionTags | None = None,
        on_read: Callable[[FoundSession], None] | None = None,
        on_skipped: _OnSkipped | None = None,
    ) -> None:
        """Create a library without reading anything.

        Args:
            adapters: The agents; default: the adapters of the entry points.
            environ: The environment that determines where agents keep their files; default: that of this process.
            cache: A file for summaries; None: every session is read on every call.
            tags: Provides the tags of sessions; None: sessions have no tags.
            on_read: Called for each session that was not cached, after it was read.
            on_skipped: Called for each file that cannot be read as a session; default: log a warning.
        """
        self._adapters = adapters if adapters is not None else AdapterRegistry()
        self._environ = os.environ if environ is None else environ
        self._cache = SummaryCache(cache)
        self.tags = tags
        self._on_read = on_read or (lambda _: None)
        self._on_skipped = on_skipped or (lambda skipped: logging.getLogger(LOGGER).warning("%s", skipped))

    # -- listing

    def list(
        self, wanted: SessionFilter = ALL, *, sort: Sort = "date", order: Order = "desc", limit: int | None = 100
    ) -> SessionListing:
        """Return the summaries of sessions, and which files could not be read.

        Args:
            wanted: Which sessions; default: those of every agent whose store can be read.
            sort: By last change, cost or number of turns.
            order: `desc`: the largest first; `asc`: the smallest first.
            limit: The maximum number of sessions; None: no limit.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND; CAPABILITY_ERROR if the agent's sessions cannot be read.
        """
        skipped: list[SkippedFile] = []
        summaries = [known.summary for known in self._known(wanted, skipped.append)]
        summaries.sort(key=_SORT_KEYS[sort], reverse=order == "asc")
        return SessionListing(summaries[:limit], skipped)

    def known(self, wanted: SessionFilter = ALL) -> Iterator[StoredSession]:
        """Yield sessions with their summaries, unordered. Raises the errors of `list`."""
        return self._known(wanted, lambda _: None)

    def _known(self, wanted: SessionFilter, on_skipped: _OnSkipped) -> Iterator[StoredSession]:
        def skip(skipped: SkippedFile) -> None:
            self._on_skipped(skipped)
            on_skipped(skipped)

        paths = AgentPaths(environ=self._environ, directory=wanted.directory)
        tags_of = None if self.tags is None else self.tags.load()
        for adapter, store in self._stores(wanted.agent):
            for untagged in self._sessions_of(adapter, store, paths, skip):
                session = untagged if tags_of is None else _with_tags(untagged, tags_of)
                if wanted.matches(session.summary):
                    yield session

    def _stores(self, agent: str | None) -> Iterator[tuple[Adapter, SessionStore]]:
        if agent is not None:
            adapter = self._adapters.get(agent)
            store = adapter.sessions()
            if store is None:
                raise CapabilityError(adapter.agent, "stored sessions")
            yield adapter, store
            return
        for adapter in self._adapters:
            store = adapter.sessions()
            if store is not None:
                yield adapter, store

    def _sessions_of(
        self, adapter: Adapter, store: SessionStore, paths: AgentPaths, skip: _OnSkipped
    ) -> Iterator[StoredSession]:
        cached = self._cache.load(adapter.agent)
        fresh: list[tuple[FoundSession, SummarizedSession]] = []
        try:
            for found in _find_all(adapter, store, paths, skip):
                size, modified, stored = cached.pop((str(found.path), found.key), (-1, -1, b""))
                summarized = decode(stored) if (size, modified) == (found.size, found.modified) else None
                if summarized is None:
                    summarized = _summarize(adapter, store, found, skip)
                    self._on_read(found)
                    if summarized is None:
                        continue
                    fresh.append((found, summarized))
                if summarized.is_session:
                    yield StoredSession(adapter, found, summarized)
                elif summarized.unknown_rows and not summarized.is_part:
                    kinds = ", ".join(summarized.unknown_rows[:MAX_NAMED_KINDS])
                    skip(_skipped(adapter, found.path, f"no message in it can be read, only unknown rows ({kinds})"))
        finally:
            gone = [key for key in cached if not Path(key[0]).exists()]
            self._cache.store(adapter.agent, fresh, gone)

    # -- one session

    def latest(self, wanted: SessionFilter = ALL) -> SessionSummary:
        """Return the session that changed last. Raises SESSION_NOT_FOUND if none matches, and the errors of `list`."""
        return only_of(self.list(wanted, limit=1))

    def find(self, session: str, wanted: SessionFilter = ALL) -> StoredSession:
        """Return the session with this id.

        Args:
            session: The unified id (`claude:0b1c...`), the agent's own id, or an unambiguous beginning of it.
            wanted: Which sessions to search.

        Raises:
            AgentMuxError: SESSION_NOT_FOUND if no session, or more than one, matches; AGENT_NOT_FOUND.
        """
        wanted, native_id = self._split(session, wanted)
        return choose_session(session, native_id, self.known(wanted), lambda known: known.summary)

    def _split(self, session: str, wanted: SessionFilter) -> tuple[SessionFilter, str]:
        # Native ids may contain colons, so only the name of a registered agent is split off.
        named, colon, native_id = session.partition(":")
        if not colon or named not in self._adapters:
            return wanted, session
        agent = self._adapters.get(named).agent
        if wanted.agent is not None and self._adapters.get(wanted.agent).agent != agent:
            return wanted, session
        return replace(wanted, agent=agent), native_id

    def get(self, session: str, wanted: SessionFilter = ALL) -> Session:
        """Return a session with all its messages. Arguments and errors are those of `find`."""
        return self.read(self.find(session, wanted))

    def read(self, known: StoredSession) -> Session:
        """Return all messages of a session. Raises SESSION_NOT_FOUND if it was removed since it was found."""
        builder = ConversationBuilder(prices_of(known.adapter.models()))
        try:
            builder.read(self.open(known))
        except (OSError, UnreadableSessionError) as error:
            message = f"{known.summary.id} can no longer be read: {error}"
            raise AgentMuxError("SESSION_NOT_FOUND", message) from error
        summarized = builder.summarizer.result(known.adapter.agent, known.found)
        summary = structs.replace(summarized.summary, tags=known.summary.tags)
        return Session(summary=summary, messages=builder.messages)

    def open(self, known: StoredSession) -> SessionReader:
        """Return a cursor at the beginning of the session."""
        store = known.adapter.sessions()
        assert store is not None  # noqa: S101  # the session was found in this store
        return store.open(known.found)


def _find_all(adapter: Adapter, store: SessionStore, paths: AgentPaths, skip: _OnSkipped) -> Iterator[FoundSession]:
    try:
        yield from store.find(paths)
    except OSError as error:
        skip(_skipped(adapter, store.root(paths), error.strerror or str(error)))
    except UnreadableSessionError as error:
        skip(_skipped(adapter, store.root(paths), str(error)))


def _summarize(
    adapter: Adapter, store: SessionStore, found: FoundSession, skip: _OnSkipped
) -> SummarizedSession | None:
    summarizer = Summarizer(prices_of(adapter.models()))
    try:
        summarizer.read(store.open(found))
    except OSError as error:
        reason = error.strerror or str(error)
    except UnreadableSessionError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  # an error in an adapter must not fail the whole listing
        reason = f"the adapter failed to read it: {error!r}"
    else:
        if summarizer.native_id:
            return summarizer.result(adapter.agent, found)
        reason = "it has no session id"
    skip(_skipped(adapter, found.path, reason))
    return None


def _skipped(adapter: Adapter, path: Path, reason: str) -> SkippedFile:
    return SkippedFile(agent=adapter.agent, path=str(path), reason=reason)


def _with_tags(session: StoredSession, tags_of: TagsOf) -> StoredSession:
    tags = tags_of(session.summary)
    if not tags:
        return session
    summary = structs.replace(session.summary, tags=tags)
    return session._replace(summarized=structs.replace(session.summarized, summary=summary))


_SORT_KEYS: Mapping[Sort, Callable[[SessionSummary], tuple[float, str]]] = {
    "date": lambda summary: (-summary.updated_at, summary.id),
    "cost": lambda summary: (-summary.cost.total_usd, summary.id),
    "turns": lambda summary: (-summary.turn_count, summary.id),
}
