"""All stored sessions of all agents: listed, fetched, searched. Source: run API, section 6."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import structs

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.sessions import Cursor, Found, SessionStore, UnreadableError
from agent_mux.sessions.cache import SummaryCache, decode
from agent_mux.sessions.conversation import Conversation, Session
from agent_mux.sessions.spending import PricedCall
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary, SummarizedSession, Summarizer, choose_session
from agent_mux.sessions.tags import SessionTags, TagsOf

Sort = Literal["date", "cost", "turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file that is passed over."""

    agent: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is passed over: {self.reason}"


class StoredSession(NamedTuple):
    """A session of which the summary is known."""

    adapter: Adapter
    found: Found
    summarized: SummarizedSession

    @property
    def summary(self) -> SessionSummary:
        """The summary, with tags."""
        return self.summarized.summary

    @property
    def calls(self) -> tuple[PricedCall, ...]:
        """The model calls of the session."""
        return self.summarized.calls


class SessionLibrary:
    """Reads what the agents stored. Blocking; every call looks at the disk again."""

    def __init__(  # noqa: PLR0913  # all have a default
        self,
        adapters: AdapterRegistry | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        cache: Path | None = None,
        tags: SessionTags | None = None,
        on_read: Callable[[Found], None] | None = None,
        on_skipped: Callable[[SkippedFile], None] | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            adapters: Instead of those of the entry points.
            environ: Instead of the environment of this process: says where the agents keep their files.
            cache: A file to remember summaries in. None: everything is read each time.
            tags: Knows the tags of sessions. None: they have none.
            on_read: Is told of each session that was not remembered, once it is read.
            on_skipped: Is told of each file that cannot be read as a session; by default, the log is.
        """
        self._adapters = adapters if adapters is not None else AdapterRegistry()
        self._environ = os.environ if environ is None else environ
        self._cache = SummaryCache(cache)
        self._tags = tags
        self._on_read = on_read or (lambda _: None)
        self._on_skipped = on_skipped or (lambda skipped: logging.getLogger(LOGGER).warning("%s", skipped))

    # -- listing

    def list(
        self, wanted: SessionFilter = ALL, *, sort: Sort = "date", limit: int | None = 100
    ) -> "list[SessionSummary]":
        """The sessions that are wanted: the latest, the dearest or the longest first.

        Args:
            wanted: Which ones; by default those of every agent whose store can be read.
            sort: By last change, cost or number of turns.
            limit: How many at most; None: all.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND; CAPABILITY_ERROR when this agent's sessions cannot be read.
        """
        summaries = [known.summary for known in self.known(wanted)]
        summaries.sort(key=_SORTED[sort])
        return summaries[:limit]

    def known(self, wanted: SessionFilter = ALL) -> Iterator[StoredSession]:
        """Every session that is wanted, with its summary, in no order. Raises as `list` does."""
        place = AgentPaths(environ=self._environ, directory=wanted.directory)
        tags_of = None if self._tags is None else self._tags.look()
        for adapter, store in self._stores(wanted.agent):
            for untagged in self._known_of(adapter, store, place):
                known = untagged if tags_of is None else _tagged(untagged, tags_of)
                if wanted.matches(known.summary):
                    yield known

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

    def _known_of(self, adapter: Adapter, store: SessionStore, place: AgentPaths) -> Iterator[StoredSession]:
        remembered = self._cache.load(adapter.agent)
        fresh: list[tuple[Found, SummarizedSession]] = []
        try:
            for found in self._found(adapter, store, place):
                at = (str(found.path), found.key)
                size, modified, stored = remembered.pop(at, (-1, -1, b""))
                made = decode(stored) if (size, modified) == (found.size, found.modified) else None
                if made is None:
                    made = self._summarized(adapter, store, found)
                    self._on_read(found)
                    if made is None:
                        continue
                    fresh.append((found, made))
                if made.is_session:
                    yield StoredSession(adapter, found, made)
        finally:
            gone = [key for key in remembered if not Path(key[0]).exists()]
            self._cache.store(adapter.agent, fresh, gone)

    def _found(self, adapter: Adapter, store: SessionStore, place: AgentPaths) -> Iterator[Found]:
        try:
            yield from store.find(place)
        except OSError as error:
            self._skip(adapter, store.root(place), error.strerror or str(error))
        except UnreadableError as error:
            self._skip(adapter, store.root(place), str(error))

    def _summarized(self, adapter: Adapter, store: SessionStore, found: Found) -> SummarizedSession | None:
        summarizer = Summarizer(prices_of(adapter.models()))
        try:
            summarizer.read(store.open(found))
        except OSError as error:
            reason = error.strerror or str(error)
        except UnreadableError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001  # an adapter may have an error: no listing fails for one session
            reason = f"its reader failed: {error!r}"
        else:
            if summarizer.native_id:
                return summarizer.result(adapter.agent, found)
            reason = "it does not say which session it is"
        self._skip(adapter, found.path, reason)
        return None

    def _skip(self, adapter: Adapter, path: Path, reason: str) -> None:
        self._on_skipped(SkippedFile(agent=adapter.agent, path=str(path), reason=reason))

    # -- one session

    def find(self, session: str, wanted: SessionFilter = ALL) -> StoredSession:
        """The session with this id.

        Args:
            session: Unified (`claude:0b1c...`), or the agent's own id; its beginning, if no other begins so.
            wanted: Where to look for it.

        Raises:
            AgentMuxError: SESSION_NOT_FOUND: none, or several; AGENT_NOT_FOUND.
        """
        wanted, native_id = self._split(session, wanted)
        return choose_session(session, native_id, self.known(wanted), lambda known: known.summary)

    def _split(self, session: str, wanted: SessionFilter) -> tuple[SessionFilter, str]:
        """Ids of agents may have colons, too: only the name of an agent in front is taken for one."""
        named, colon, native_id = session.partition(":")
        if not colon or named not in self._adapters:
            return wanted, session
        agent = self._adapters.get(named).agent
        if wanted.agent is not None and self._adapters.get(wanted.agent).agent != agent:
            return wanted, session
        return replace(wanted, agent=agent), native_id

    def get(self, session: str, wanted: SessionFilter = ALL) -> Session:
        """A session with all its messages. Arguments and errors as for `find`."""
        return self.read(self.find(session, wanted))

    def read(self, known: StoredSession) -> Session:
        """The same, of one that was found already. Raises SESSION_NOT_FOUND when it cannot be read any more."""
        conversation = Conversation(prices_of(known.adapter.models()))
        try:
            conversation.read(self.open(known))
        except (OSError, UnreadableError) as error:
            gone = f"{known.summary.id} cannot be read any more: {error}"
            raise AgentMuxError("SESSION_NOT_FOUND", gone) from error
        made = conversation.summarizer.result(known.adapter.agent, known.found)
        summary = structs.replace(made.summary, tags=known.summary.tags)
        return Session(summary=summary, messages=conversation.messages)

    def open(self, known: StoredSession) -> Cursor:
        """Read it from its beginning."""
        store = known.adapter.sessions()
        assert store is not None  # noqa: S101  # it was found there
        return store.open(known.found)


def _tagged(known: StoredSession, tags_of: TagsOf) -> StoredSession:
    tags = tags_of(known.summary)
    if not tags:
        return known
    return known._replace(
        summarized=structs.replace(known.summarized, summary=structs.replace(known.summary, tags=tags))
    )


_SORTED: Mapping[Sort, Callable[[SessionSummary], tuple[float, str]]] = {
    "date": lambda summary: (-summary.updated_at, summary.id),
    "cost": lambda summary: (-summary.cost.total_usd, summary.id),
    "turns": lambda summary: (-summary.turn_count, summary.id),
}
