"""A queued run can be withdrawn without a trace, so that a restarted service can start it again."""

from pathlib import Path

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux.errors import AgentMuxError

pytestmark = pytest.mark.anyio
WAITS = "read(); emit(text='hi'); time.sleep(1000)"


async def test_queued_run_is_withdrawn_without_a_trace(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            first, second = mux.run(prompt="one"), mux.run(prompt="two")
            assert second.queue_position == 1
            assert second.withdraw()
            assert not second.withdraw()
            with pytest.raises(AgentMuxError, match="withdrawn before it began") as caught:
                await second
            assert caught.value.code == "RUN_NOT_ACTIVE"
            assert [event async for event in second] == []
            assert (second.is_withdrawn, second.state, second.queue_position) == (True, "spawned", None)
            assert await second.abort() == "unneeded"
            await first.abort()
    assert [path.stem for path in tmp_path.rglob("*.journal")] == [first.run_id]  # noqa: ASYNC240  # a short operation


async def test_started_or_ending_run_is_not_withdrawn(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            first, second = mux.run(prompt="one"), mux.run(prompt="two")
            assert not first.withdraw()
            second.kill()
            assert not second.withdraw()
            await second
            assert second.state == "aborted"
            await first.abort()
            assert not first.withdraw()
            assert not first.is_withdrawn


async def test_run_after_a_withdrawn_one_is_started(make_client: MakeClient) -> None:
    body = "read(); emit(text='hi'); emit(done=True); drain()"
    with anyio.fail_after(30):
        async with make_client(body, max_concurrent_runs=1) as mux:
            first, second, third = (mux.run(prompt=text) for text in ("one", "two", "three"))
            assert second.withdraw()
            assert (await first).ok
            assert (await third).ok
