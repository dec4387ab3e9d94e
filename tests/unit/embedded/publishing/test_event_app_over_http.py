"""The HTTP interface of an event bus behind a real server, mounted in an application; runs are in another thread."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import anyio
import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.unit.embedded.loop.harness import WAIT, agent

from agent_loop import Agent, EventBus, ScriptedProvider, bearer_token, event_app
from agent_loop.messages import UserMessage
from agent_loop.providers.script import say

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TOKEN = "a-token-of-the-test"  # noqa: S105  # of no service


@contextmanager
def served(bus: EventBus) -> Iterator[str]:
    """Serve the bus on loopback for the block, below a path of an application, and return its address."""
    app = Starlette(routes=[Mount("/agent", event_app(bus, authorize=bearer_token(TOKEN), control=True))])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/agent"
        bus.close()  # ends the streams, for which the server waits
        server.should_exit = True
        thread.join(WAIT)
        assert not thread.is_alive()


def client_of(address: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT)


async def frames_of(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    found: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            found[name] = value
        else:
            yield found
            found = {}


async def follow_until_end(client: httpx.AsyncClient, one: Agent, ids: list[str], types: list[str]) -> None:
    """Follow a session, with a new connection after each five frames, until its run has ended."""
    while types[-1:] != ["loop_end"]:
        headers = {"Last-Event-ID": ids[-1]} if ids else {}
        async with client.stream("GET", f"/sessions/{one.session_id}/events?after=-1", headers=headers) as response:
            assert response.status_code == 200
            count = 0
            async for frame in frames_of(response):
                ids.append(frame["id"])
                types += [json.loads(frame["data"])["event"]["type"]] if "data" in frame else []
                count += 1
                if count == 5 or types[-1:] == ["loop_end"]:
                    break


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_follow_steer_and_abort_runs_over_http() -> None:
    bus = EventBus()
    model = ScriptedProvider([say("one", wait="steered"), say("two"), say("three", wait="never")])
    one = agent(model, event_bus=bus)
    followed: list[tuple[list[str], list[str]]] = [([], []), ([], [])]
    with served(bus) as address, anyio.fail_after(3 * WAIT):
        async with client_of(address) as client:
            async with anyio.create_task_group() as tasks:
                for ids, types in followed:
                    tasks.start_soon(follow_until_end, client, one, ids, types)
                turns = bus.subscribe(types=["turn_start"])
                tasks.start_soon(one.attempt, "go")
                await anext(turns)
                steered = await client.post(f"/sessions/{one.session_id}/steer", json={"text": "The door"})
                assert steered.status_code == 202
                model.release("steered")
            assert [each.text for each in one.messages if isinstance(each, UserMessage)] == ["go", "The door"]
            turns = bus.subscribe(types=["turn_start"])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.attempt, "again")
                await anext(turns)
                aborted = await client.post(f"/sessions/{one.session_id}/abort", json={"reason": "enough"})
                assert aborted.status_code == 202
            assert one.session.loops[-1].error == "enough"
            assert (await client.get("/events", headers={"Authorization": "Bearer no"})).status_code == 401
            async with client.stream("GET", "/events?after=-1") as response:
                bus.close()
                every = [frame async for frame in frames_of(response)]
    first_run = [json.loads(each["data"])["event"]["type"] for each in every if "data" in each]
    for _, types in followed:
        assert types == first_run[: first_run.index("loop_end") + 1]
