"""Session store in memory that evicts unused sessions.

Eviction needs no background task: each use of the store evicts expired sessions if the last eviction was long ago. An
expired session is never returned, whether it was evicted or not.
"""

import time
from collections.abc import Callable, Sequence

from agent_loop.errors import SessionLockedError, SessionNotFoundError
from agent_loop.sessions.session import Session
from agent_loop.sessions.store import decode_session, encode_session

EVICTION_INTERVAL = 300.0
"""Seconds between two evictions."""


class _Entry:
    def __init__(self, session: Session, now: float) -> None:
        self.data = encode_session(session)
        """Encoded, so that callers cannot change the stored session."""
        self.agent_id = session.agent_id
        self.last_active_at = session.last_active_at
        self.last_access = now


class MemorySessionStore:
    """Sessions of this process. `ttl`: seconds without use until eviction; `clock` returns seconds.

    Sessions are copied when they are saved and loaded.
    """

    def __init__(self, ttl: float = 3600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._held: set[str] = set()
        self._last_eviction = clock()

    async def save(self, session: Session) -> None:
        """Store the session and mark it as used. Raises `SessionError` if it cannot be encoded."""
        self._evict_if_due()
        self._entries[session.session_id] = _Entry(session, self._clock())

    async def load(self, session_id: str) -> Session:
        """Return the session and mark it as used. Raises `SessionNotFoundError`."""
        found = await self.get(session_id)
        if found is None:
            raise SessionNotFoundError(session_id, "memory")
        return found

    async def hold(self, session_id: str) -> None:
        """Lock the session for a run. Raises `SessionLockedError`."""
        if session_id in self._held:
            raise SessionLockedError(session_id)
        self._held.add(session_id)

    async def release(self, session_id: str) -> None:
        """Release the lock of a session."""
        self._held.discard(session_id)

    async def get(self, session_id: str) -> Session | None:
        """Return the session or None, and mark it as used."""
        self._evict_if_due()
        entry = self._entries.get(session_id)
        if entry is None or self._is_idle(entry):
            return None
        entry.last_access = self._clock()
        return decode_session(entry.data, f"session {session_id!r}")

    async def load_or_create(self, session_id: str, agent_id: str, *, created_at: int = 0) -> Session:
        """Return the session, or store and return a new empty one; mark it as used."""
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
        """Return all session ids, the last active one first."""
        self._evict_if_due()
        alive = {key: entry for key, entry in self._entries.items() if not self._is_idle(entry)}
        return sorted(alive, key=lambda key: (alive[key].last_active_at, key), reverse=True)

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Return the sessions of one agent, the last active one first."""
        own = [key for key in await self.list_ids() if self._entries[key].agent_id == agent_id]
        return [decode_session(self._entries[key].data, f"session {key!r}") for key in own]

    async def delete(self, session_id: str) -> None:
        """Delete the session. Raises `SessionNotFoundError`."""
        self._evict_if_due()
        entry = self._entries.pop(session_id, None)
        if entry is None or self._is_idle(entry):
            raise SessionNotFoundError(session_id, "memory")

    def evict(self) -> int:
        """Evict all expired sessions and return their number."""
        self._last_eviction = self._clock()
        idle = [key for key, entry in self._entries.items() if self._is_idle(entry)]
        for key in idle:
            del self._entries[key]
        return len(idle)

    def __len__(self) -> int:
        """Return the number of sessions in memory, including expired ones."""
        return len(self._entries)

    def _evict_if_due(self) -> None:
        if self._clock() - self._last_eviction >= EVICTION_INTERVAL:
            self.evict()

    def _is_idle(self, entry: _Entry) -> bool:
        return self._clock() - entry.last_access > self._ttl
