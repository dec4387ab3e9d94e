"""Sessions in memory are evicted when they are unused."""

import anyio
import pytest

from agent_loop.errors import SessionNotFoundError
from agent_loop.sessions import MemorySessionStore, Session

pytestmark = pytest.mark.anyio
BOUND = 60.0


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def session(name: str = "s") -> Session:
    return Session(session_id=name, agent_id="agent")


async def test_load_or_create_returns_the_stored_session_or_a_new_one() -> None:
    with anyio.fail_after(BOUND):
        store = MemorySessionStore(clock=Clock())
        created = await store.load_or_create("s", "agent", created_at=5)
        created.last_active_at = 9
        await store.save(created)

        assert (created.session_id, created.agent_id, created.created_at) == ("s", "agent", 5)
        assert await store.load_or_create("s", "other") == created
        assert await store.list_ids() == ["s"]


async def test_get_returns_none_for_an_unknown_session() -> None:
    with anyio.fail_after(BOUND):
        store = MemorySessionStore(clock=Clock())
        assert await store.get("s") is None
        await store.save(session())
        assert await store.get("s") == session()


async def test_a_session_is_forgotten_after_an_hour_without_use() -> None:
    with anyio.fail_after(BOUND):
        clock = Clock()
        store = MemorySessionStore(clock=clock)
        await store.save(session())
        clock.now = 3600.0
        assert await store.get("s") is not None
        clock.now = 7200.1

        assert await store.get("s") is None
        assert await store.list_ids() == []


async def test_save_refreshes_the_last_access() -> None:
    with anyio.fail_after(BOUND):
        clock = Clock()
        store = MemorySessionStore(ttl=10.0, clock=clock)
        for clock.now in (0.0, 9.0, 18.0):
            await store.save(session())
        clock.now = 28.0
        assert await store.list_ids() == ["s"]
        clock.now = 28.1
        assert await store.list_ids() == []


async def test_expired_session_is_never_returned_between_evictions() -> None:
    with anyio.fail_after(BOUND):
        clock = Clock()
        store = MemorySessionStore(ttl=10.0, clock=clock)
        await store.save(session())
        clock.now = 11.0

        assert len(store) == 1
        assert await store.list_for_agent("agent") == []
        with pytest.raises(SessionNotFoundError):
            await store.load("s")
        with pytest.raises(SessionNotFoundError):
            await store.delete("s")


async def test_eviction_every_five_minutes_frees_the_memory_of_idle_sessions() -> None:
    with anyio.fail_after(BOUND):
        clock = Clock()
        store = MemorySessionStore(ttl=10.0, clock=clock)
        for number in range(5):
            await store.save(session(f"s{number}"))
        clock.now = 299.9
        await store.save(session("new"))
        assert len(store) == 6
        clock.now = 300.0
        await store.get("nobody")

        assert len(store) == 1
        assert await store.list_ids() == ["new"]


async def test_eviction_on_demand_returns_the_number_of_sessions() -> None:
    with anyio.fail_after(BOUND):
        clock = Clock()
        store = MemorySessionStore(ttl=10.0, clock=clock)
        await store.save(session("a"))
        clock.now = 10.1
        await store.save(session("b"))

        assert store.evict() == 1
        assert await store.list_ids() == ["b"]
