"""Common behaviour of all session stores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.errors import SessionError, SessionNotFoundError
from agent_loop.events import ToolResulted, TurnStart
from agent_loop.messages import ToolCall, assistant, tool_message, user
from agent_loop.sessions import FileSessionStore, LoopConfig, LoopRecord, MemorySessionStore, Session, SessionStore
from agent_loop.state import AgentState, ReadMark, Todo
from agent_loop.tools.effects import CommandRan
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio
BOUND = 60.0

STORES: dict[str, Callable[[Path], SessionStore]] = {
    "file": FileSessionStore,
    "memory": lambda _: MemorySessionStore(clock=lambda: 0.0),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    return STORES[request.param](tmp_path / "sessions")


def session(name: str = "s", **known: Any) -> Session:
    return Session(session_id=name, **{"agent_id": "agent", **known})


def full_session() -> Session:
    """Return a session with a value in every field."""
    result = tool_message("a", "run", "ok", details={"exit_code": 0})
    record = LoopRecord(
        loop_id="s.c.1",
        parent_loop_id="elsewhere.c.1",
        continuation_kind="branch",
        started_at=1,
        ended_at=2,
        status="failed",
        rejection="r",
        error="e",
        config=LoopConfig(config_id="c", provider="p", model="m", thinking="low", max_tokens=5, temperature=0.5),
        messages=[user("u"), assistant("a", ToolCall("a", "run", {"n": [1, {"m": None}]}), native={"x": 1}), result],
        usage=Usage(input_tokens=1, cost_usd=0.5),
        turns=1,
        metadata={"k": [1]},
        events=[
            TurnStart(loop_id="s.c.1", turn=0, trigger="branch"),
            ToolResulted(loop_id="s.c.1", message=result, effects=(CommandRan(0, "out"),), duration_ms=3),
        ],
    )
    state = AgentState(
        todos=[Todo("1", "dig", "done")], files={"a": "hash"}, reads={"a": ReadMark("h", 0, 1, 2, 3)}, extra={"m": [1]}
    )
    return session(created_at=1, last_active_at=2, formation="inactivity", forked_from="r", state=state, loops=[record])


async def test_save_and_load_give_back_everything(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        await store.save(full_session())

        assert await store.load("s") == full_session()


async def test_sessions_are_copied_in_and_out(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        given = full_session()
        await store.save(given)
        given.loops[0].messages.clear()
        given.state.extra["m"].append(2)
        (await store.load("s")).loops.clear()
        (await store.list_for_agent("agent"))[0].state.todos.clear()

        assert await store.load("s") == full_session()


async def test_save_replaces_what_was_there(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        await store.save(full_session())
        await store.save(session())

        assert await store.load("s") == session()
        assert await store.list_ids() == ["s"]


async def test_list_ids_returns_last_active_first(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        assert await store.list_ids() == []
        for name, active in (("b", 2000), ("c", 3000), ("a", 1000), ("d", 3000)):
            await store.save(session(name, last_active_at=active))

        assert await store.list_ids() == ["d", "c", "b", "a"]


async def test_list_for_agent_returns_only_its_sessions_last_active_first(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        for name, agent, active in (("a", "x", 1000), ("b", "y", 2000), ("c", "x", 3000)):
            await store.save(session(name, agent_id=agent, last_active_at=active))

        assert [found.session_id for found in await store.list_for_agent("x")] == ["c", "a"]
        assert await store.list_for_agent("nobody") == []


async def test_delete_removes_it(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        await store.save(session("a"))
        await store.save(session("b"))
        await store.delete("a")

        assert await store.list_ids() == ["b"]
        with pytest.raises(SessionNotFoundError, match="session 'a'"):
            await store.load("a")
        with pytest.raises(SessionNotFoundError, match="session 'a'"):
            await store.delete("a")


async def test_a_session_that_would_go_round_in_circles_is_not_stored(store: SessionStore) -> None:
    circle = [LoopRecord(loop_id="a", parent_loop_id="b"), LoopRecord(loop_id="b", parent_loop_id="a")]
    for loops, words in (
        (circle, "'a' that precedes its parent"),
        ([LoopRecord(loop_id="a")] * 2, "two loops 'a'"),
        ([LoopRecord(loop_id="a", base=-1)], "with the invalid base -1"),
    ):
        with anyio.fail_after(BOUND), pytest.raises(SessionError, match=words):
            await store.save(session(loops=loops))


async def test_odd_values_never_keep_a_session_from_being_stored(store: SessionStore) -> None:
    odd = session(loops=[LoopRecord(loop_id="a", messages=[user("half \ud83d")], metadata={"path": Path("/x")})])
    with anyio.fail_after(BOUND):
        await store.save(odd)
        loaded = await store.load("s")

    assert loaded.loops[0].messages == [user("half \ufffd")]
    assert loaded.loops[0].metadata == {"path": "/x"}


async def test_many_sessions_are_written_at_once(store: SessionStore) -> None:
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(store.save, session(f"s{number}", last_active_at=number))

        assert await store.list_ids() == [f"s{number}" for number in reversed(range(20))]
