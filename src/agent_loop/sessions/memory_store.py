"""Sessions in memory, forgotten when nobody asks for them. Source: hooks seed, section 3.2, "ThreadStore".

Forgetting needs no task of its own: every use of the store looks whether it is time again. A session that is older than
its time is never given out, whenever the last look was.
"""

import time
from collections.abc import Callable, Sequence

from agent_loop.errors import SessionLockedError, SessionNotFoundError
from agent_loop.sessions.session import Session
from agent_loop.sessions.store import decode_session, encode_session

EVICTION_INTERVAL = 300.0
"""Seconds between two looks at all sessions. Source: hooks seed, "Eviction interval"."""


class _Entry:
    def __init__(self, session: Session, now: float) -> None:
        self.data = encode_session(session)
        """As bytes: nobody outside can change what is in here."""
        self.agent_id = session.agent_id
        self.last_active_at = session.last_active_at
        self.last_access = now


class MemorySessionStore:
    """Sessions of this process. `ttl`: seconds without use after which one is forgotten; `clock` gives seconds.

    What goes in and what comes out are copies.
    """

    def __init__(self, ttl: float = 3600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._held: set[str] = set()
        self._last_eviction = clock()

    async def save(self, session: Session) -> None:
        """Keep it. Counts as a use. Raises `SessionError` for one that cannot be stored."""
        self._evict_if_due()
        self._entries[session.session_id] = _Entry(session, self._clock())

    async def load(self, session_id: str) -> Session:
        """The session. Counts as a use. Raises `SessionNotFoundError`."""
        found = await self.get(session_id)
        if found is None:
            raise SessionNotFoundError(session_id, "memory")
        return found

    async def hold(self, session_id: str) -> None:
        """Keep other agents from going on with it. Raises `SessionLockedError`."""
        if session_id in self._held:
            raise SessionLockedError(session_id)
        self._held.add(session_id)

    async def release(self, session_id: str) -> None:
        """Let others go on with it."""
        self._held.discard(session_id)

    async def get(self, session_id: str) -> Session | None:
        """The session, or None. Counts as a use."""
        self._evict_if_due()
        entry = self._entries.get(session_id)
        if entry is None or self._is_idle(entry):
            return None
        entry.last_access = self._clock()
        return decode_session(entry.data, f"session {session_id!r}")

    async def load_or_create(self, session_id: str, agent_id: str, *, created_at: int = 0) -> Session:
        """The session, or a new, empty one, which is kept as well. Counts as a use."""
        found = await self.get(session_id)
        if found is not None:
            return found
        created = Session(
            session_id=session_id,
            agent_id=agent_id,
            created_at=created_at,
            last_active_at=created_at,
            formation="explicit",
        )
        await self.save(created)
        return created

    async def list_ids(self) -> Sequence[str]:
        """All there are, the last active one first."""
        self._evict_if_due()
        alive = {key: entry for key, entry in self._entries.items() if not self._is_idle(entry)}
        return sorted(alive, key=lambda key: (alive[key].last_active_at, key), reverse=True)

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Those of one agent, the last active one first."""
        own = [key for key in await self.list_ids() if self._entries[key].agent_id == agent_id]
        return [decode_session(self._entries[key].data, f"session {key!r}") for key in own]

    async def delete(self, session_id: str) -> None:
        """Forget it. Raises `SessionNotFoundError`."""
        self._evict_if_due()
        entry = self._entries.pop(session_id, None)
        if entry is None or self._is_idle(entry):
            raise SessionNotFoundError(session_id, "memory")

    def evict(self) -> int:
        """Forget now what nobody used for its time; how many that were."""
        self._last_eviction = self._clock()
        idle = [key for key, entry in self._entries.items() if self._is_idle(entry)]
        for key in idle:
            del self._entries[key]
        return len(idle)

    def __len__(self) -> int:
        """How many are in memory, forgotten at the next look or not."""
        return len(self._entries)

    def _evict_if_due(self) -> None:
        if self._clock() - self._last_eviction >= EVICTION_INTERVAL:
            self.evict()

    def _is_idle(self, entry: _Entry) -> bool:
        return self._clock() - entry.last_access > self._ttl
