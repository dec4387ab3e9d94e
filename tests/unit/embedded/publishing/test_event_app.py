"""The HTTP interface of an event bus: streams, positions, authorization, control and refusals, on both event loops."""

import json
import re
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from tests.unit.embedded.loop.harness import WAIT, agent

from agent_loop import Agent, EventBus, ScriptedProvider
from agent_loop.errors import ConfigurationError
from agent_loop.events import LoopEvent, Noted, OutputProduced
from agent_loop.messages import UserMessage
from agent_loop.providers.script import call, say
from agent_loop.publishing.http import MAX_BODY, AsgiApp, EventRequest, bearer_token, event_app
from agent_loop.publishing.published import PublishedEvent
from agent_loop.tools.builtin import AskUserTool

pytestmark = pytest.mark.anyio

TOKEN = "a-token-of-the-test"  # noqa: S105  # of no service
SIGNED = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}


class Exchange:
    """One request to an ASGI application, and what it sends."""

    def __init__(self, app: AsgiApp, method: str, target: str, headers: dict[str, str], *body: bytes) -> None:
        path, _, query = target.partition("?")
        self.app = app
        self.scope: dict[str, Any] = {
            "type": "http", "method": method, "path": path, "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
        }  # fmt: skip
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self._parts = [*body] or [b""]
        self._gone = anyio.Event()
        self._frames: list[bytes] = []
        self._arrived = anyio.Event()

    async def run(self) -> "Exchange":
        with anyio.fail_after(WAIT):
            await self.app(self.scope, self._receive, self._send)
        return self

    def disconnect(self) -> None:
        self._gone.set()

    async def chunk(self) -> str:
        """Return the next part of the stream."""
        with anyio.fail_after(WAIT):
            while not self._frames:
                self._arrived = anyio.Event()
                await self._arrived.wait()
        return self._frames.pop(0).decode()

    async def frame(self) -> dict[str, str]:
        """Return the fields of the next frame of the stream."""
        text = await self.chunk()
        assert text.endswith("\n\n")
        return dict(line.split(": ", 1) for line in text.strip().splitlines())

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.body += message.get("body", b"")
        if message.get("more_body"):
            self._frames.append(message["body"])
            self._arrived.set()
            await anyio.lowlevel.checkpoint()


async def asked(app: AsgiApp, method: str, target: str, *body: bytes, **headers: str) -> Exchange:
    """Return the whole exchange of a request with the token."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await Exchange(app, method, target, SIGNED | JSON | named, *body).run()


@asynccontextmanager
async def streaming(app: AsgiApp, target: str, **headers: str) -> AsyncIterator[Exchange]:
    """Run a request whose response does not end, and disconnect at the end of the block."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    exchange = Exchange(app, "GET", target, SIGNED | named)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(exchange.run)
        yield exchange
        exchange.disconnect()


def serving(bus: EventBus, **options: Any) -> AsgiApp:
    return event_app(bus, authorize=bearer_token(TOKEN), **options)


def filled(count: int, **options: Any) -> EventBus:
    bus = EventBus(**options)
    for number in range(count):
        bus.publish("s", Noted(loop_id="s.c.1", text=str(number)))
    return bus


async def ended(bus: EventBus, target: str, **headers: str) -> list[dict[str, str]]:
    """Return all frames of a stream of a closed bus."""
    bus.close()
    exchange = await asked(serving(bus), "GET", target, **headers)
    assert exchange.status == 200
    frames = exchange.body.decode().split("\n\n")[:-1]
    return [dict(line.split(": ", 1) for line in each.splitlines()) for each in frames]


def numbers(frames: list[dict[str, str]]) -> list[int]:
    return [json.loads(each["data"])["number"] for each in frames if "event" not in each and "data" in each]


async def test_stream_has_each_event_in_its_wire_form_with_an_id() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([say("hello")]), event_bus=bus)
    received: list[LoopEvent] = []

    async def collect(event: LoopEvent) -> None:
        received.append(event)

    with anyio.fail_after(WAIT):
        async with streaming(serving(bus), f"/sessions/{one.session_id}/events") as exchange:
            assert await exchange.frame() == {"id": f"{bus.bus_id}--1"}  # a position without an event
            await one.run("go", on_event=collect)
            frames = [await exchange.frame() for _ in received]
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert exchange.headers["cache-control"] == "no-store"
    assert [each["id"] for each in frames] == [f"{bus.bus_id}-{number}" for number in range(len(received))]
    items = [msgspec.json.decode(each["data"], type=PublishedEvent) for each in frames]
    assert [item.event for item in items] == received
    assert {item.session_id for item in items} == {one.session_id}


async def test_last_event_id_continues_the_stream_and_overrides_the_query() -> None:
    bus = filled(5)
    assert numbers(await ended(bus, "/events?after=-1")) == [0, 1, 2, 3, 4]
    assert numbers(await ended(bus, "/events?after=2")) == [3, 4]
    assert numbers(await ended(bus, "/events?after=-1", last_event_id=f"{bus.bus_id}-3")) == [4]
    assert numbers(await ended(bus, "/events")) == []


async def test_client_that_reconnects_before_its_first_event_misses_none() -> None:
    bus = filled(2)
    async with streaming(serving(bus), "/events") as exchange:
        position = (await exchange.frame())["id"]
    bus.publish("s", Noted(loop_id="s.c.1", text="between"))
    assert numbers(await ended(bus, "/events", last_event_id=position)) == [2]


async def test_events_that_the_buffer_no_longer_has_are_a_gap() -> None:
    bus = filled(8, buffer=2)
    frames = await ended(bus, "/events", last_event_id=f"{bus.bus_id}-1")
    assert frames[1] == {"event": "gap", "id": f"{bus.bus_id}-5", "data": '{"type":"gap","first":2,"last":5}'}
    assert numbers(frames) == [6, 7]


async def test_position_of_another_bus_begins_again_and_says_so() -> None:
    before, bus = filled(9), filled(2)
    frames = await ended(bus, "/events", last_event_id=f"{before.bus_id}-8")
    assert frames[0] == {"event": "restart", "data": '{"type":"restart"}'}
    assert numbers(frames) == [0, 1]


async def test_filters_of_the_query_select_types_and_loops() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([say("a"), say("b")]), event_bus=bus)
    with anyio.fail_after(WAIT):
        await one.run("go")
        await one.run("go")
    loop = one.session.loops[1].loop_id
    frames = await ended(bus, f"/sessions/{one.session_id}/events?after=-1&types=final,loop_end&loop={loop}&token=x")
    assert [json.loads(each["data"])["event"]["type"] for each in frames[1:]] == ["final", "loop_end"]


async def test_silent_stream_has_heartbeats_with_its_position() -> None:
    bus = filled(3)
    app = serving(bus, heartbeat=0.01)
    async with streaming(app, "/events?types=loop_end") as exchange:
        assert await exchange.frame() == {"id": f"{bus.bus_id}-2"}
        with anyio.fail_after(WAIT):
            assert await exchange.chunk() == f": ping\nid: {bus.bus_id}-2\n\n"
            bus.publish("s", Noted(loop_id="s.c.1", text="not wanted"))
            while await exchange.chunk() != f": ping\nid: {bus.bus_id}-3\n\n":
                pass


async def test_event_that_json_cannot_hold_is_a_gap() -> None:
    bus = EventBus()
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    bus.publish("s", OutputProduced(loop_id="s.c.1", value=deep))
    frames = await ended(bus, "/events?after=-1")
    assert frames[1]["data"] == '{"type":"gap","first":0,"last":0}'


async def test_disconnected_client_ends_its_stream_and_frees_its_place() -> None:
    bus = filled(1)
    app = serving(bus, max_streams=1)
    async with streaming(app, "/events") as exchange:
        await exchange.frame()
        refused = await asked(app, "GET", "/events")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert not bus._waiters
    async with streaming(app, "/events") as exchange:
        await exchange.frame()
    assert exchange.status == 200


async def test_client_that_fails_to_receive_ends_its_stream_only() -> None:
    bus = filled(1)
    exchange = Exchange(serving(bus), "GET", "/events?after=-1", SIGNED)

    async def broken(message: MutableMapping[str, Any]) -> None:
        raise ConnectionResetError

    with anyio.fail_after(WAIT):
        await exchange.app(exchange.scope, exchange._receive, broken)


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer no"}, {"authorization": "Bearer ä"}, {"authorization": TOKEN}]
)
@pytest.mark.parametrize("target", ["/events", "/sessions/s/events", "/sessions/unknown/events"])
async def test_request_without_the_token_is_unauthorized(headers: dict[str, str], target: str) -> None:
    exchange = await Exchange(serving(filled(1)), "GET", target, headers).run()
    assert (exchange.status, exchange.headers["www-authenticate"]) == (401, "Bearer")
    assert exchange.headers["content-type"] == "application/problem+json"
    assert json.loads(exchange.body)["detail"].startswith("the request is not authorized")


async def test_authorize_decides_by_session_action_and_scope() -> None:
    seen: list[EventRequest] = []

    async def authorize(request: EventRequest) -> bool:
        seen.append(request)
        if request.action != "events":
            raise PermissionError("/etc/secret")
        return request.query.get("user") == "ada"

    app = event_app(filled(1), authorize=authorize, control=True)
    assert (await asked(app, "GET", "/sessions/s/events?user=eve")).status == 401
    refused = await asked(app, "POST", "/sessions/s/steer", b'{"text": "x"}')
    assert (refused.status, "secret" in refused.body.decode()) == (403, False)
    assert [(each.action, each.session_id) for each in seen] == [("events", "s"), ("steer", "s")]
    assert seen[0].headers["authorization"] == SIGNED["authorization"]
    async with streaming(app, "/sessions/s/events?user=ada") as exchange:
        await exchange.frame()
    assert exchange.status == 200


@pytest.mark.parametrize("authorize", [None, "token", True])
def test_app_without_a_function_that_authorizes_is_refused(authorize: Any) -> None:
    with pytest.raises(ConfigurationError, match="event_app needs authorize=: a function"):
        event_app(EventBus(), authorize=authorize)
    with pytest.raises(TypeError):
        event_app(EventBus())  # type: ignore[call-arg]


def test_empty_bearer_token_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="bearer token is empty"):
        bearer_token(" ")


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/events/", 404),
        ("GET", "/sessions/unknown/events", 404),
        ("GET", "/sessions/../events", 404),
        ("GET", "/sessions/s/../s/events", 404),
        ("GET", "/sessions/s/x/events", 404),
        ("GET", f"/sessions/{'s' * 201}/events", 404),
        ("POST", "/sessions/unknown/steer", 404),
        ("POST", "/events", 405),
        ("HEAD", "/sessions/s/events", 405),
        ("GET", "/sessions/s/steer", 405),
        ("GET", "/events?types=txt", 422),
        ("GET", "/events?after=9", 422),
        ("GET", "/events?after=x", 422),
    ],
)
async def test_wrong_requests_are_refused(method: str, target: str, status: int) -> None:
    exchange = await asked(serving(filled(1), control=True), method, target, b'{"text": "x"}')
    assert exchange.status == status
    assert json.loads(exchange.body)["status"] == status
    assert exchange.headers.get("allow") == (
        {"POST": "GET", "HEAD": "GET", "GET": "POST"}[method] if status == 405 else None
    )


async def test_paths_below_a_mount_point_are_those_of_the_app() -> None:
    bus = filled(1)
    bus.close()
    exchange = Exchange(serving(bus), "GET", "/agent/sessions/s/events?after=-1", SIGNED)
    exchange.scope["root_path"] = "/agent"
    assert (await exchange.run()).status == 200


# -- control --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def active(bus: EventBus) -> AsyncIterator[tuple[Agent, Callable[[], None]]]:
    """Run an agent whose model waits until the returned function is called, or the run is aborted."""
    model = ScriptedProvider([say("one", wait="released"), say("two")])
    one = agent(model, event_bus=bus)
    events = bus.subscribe(types=["turn_start"])
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.attempt, "go")
            await anext(events)
            yield one, lambda: model.release("released")


@pytest.mark.parametrize(("action", "origin"), [("steer", "steering"), ("follow-up", "follow_up")])
async def test_posted_text_reaches_the_active_run(action: str, origin: str) -> None:
    bus = EventBus()
    async with active(bus) as (one, release):
        exchange = await asked(
            serving(bus, control=True), "POST", f"/sessions/{one.session_id}/{action}", b'{"text": ', b'"The door"}'
        )
        release()
    assert (exchange.status, json.loads(exchange.body)) == (202, {"session_id": one.session_id})
    injected = [each for each in one.messages if isinstance(each, UserMessage) and each.origin == origin]
    assert [each.text for each in injected] == ["The door"]


@pytest.mark.parametrize(("body", "reason"), [(b"", "aborted by a client"), (b'{"reason": "enough"}', "enough")])
async def test_posted_abort_ends_the_active_run(body: bytes, reason: str) -> None:
    bus = EventBus()
    async with active(bus) as (one, _):
        exchange = await asked(serving(bus, control=True), "POST", f"/sessions/{one.session_id}/abort", body)
    assert exchange.status == 202
    assert (one.session.loops[0].status, one.session.loops[0].error) == ("aborted", reason)


async def test_posted_answer_reaches_the_tool_that_asks() -> None:
    bus = EventBus(answers=True)
    app = serving(bus, control=True)
    one = agent(
        ScriptedProvider([call("ask_user", question="Which door?"), say("{{result}}")]), AskUserTool(), event_bus=bus
    )
    async with streaming(app, f"/sessions/{one.session_id}/events?types=question_asked") as exchange:
        await exchange.frame()
        with anyio.fail_after(WAIT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.run, "go")
                question = json.loads((await exchange.frame())["data"])["event"]
                body = json.dumps({"question_id": question["question_id"], "answer": "The left one."}).encode()
                target = f"/sessions/{one.session_id}/answer"
                statuses = [(await asked(app, "POST", target, body)).status for _ in range(2)]
    assert (question["question"], statuses) == ("Which door?", [202, 409])
    assert one.messages[-1].text == "The left one."


async def test_session_without_an_active_run_is_a_conflict() -> None:
    exchange = await asked(serving(filled(1), control=True), "POST", "/sessions/s/abort")
    assert (exchange.status, "no active run" in exchange.body.decode()) == (409, True)


async def test_control_is_off_by_default() -> None:
    bus = EventBus()
    async with active(bus) as (one, release):
        exchange = await asked(serving(bus), "POST", f"/sessions/{one.session_id}/steer", b'{"text": "x"}')
        release()
    assert exchange.status == 404


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [
        ("steer", b"", 422),
        ("steer", b'{"text": ""}', 422),
        ("steer", b'{"text": "  "}', 422),
        ("steer", b'{"text": 1}', 422),
        ("steer", b'{"text": "x", "role": "system"}', 422),
        ("steer", b"[" * 50_000, 422),
        ("steer", b"\xff", 422),
        ("abort", b'{"reason": null}', 422),
        ("answer", b'{"answer": "x"}', 422),
        ("answer", b'{"question_id": "unknown", "answer": "x"}', 409),
        ("steer", b'{"text": "' + b"x" * MAX_BODY + b'"}', 413),
    ],
)
async def test_invalid_bodies_are_refused(action: str, body: bytes, status: int) -> None:
    bus = EventBus()
    async with active(bus) as (one, release):
        exchange = await asked(serving(bus, control=True), "POST", f"/sessions/{one.session_id}/{action}", body)
        release()
    assert exchange.status == status
    assert one.session.loops[0].status == "completed"


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_body_of_a_form_is_refused(media_type: str) -> None:
    app = serving(filled(1), control=True)
    assert (await asked(app, "POST", "/sessions/s/abort", content_type=media_type)).status == 415


async def test_websocket_is_closed_and_other_protocols_are_unsupported() -> None:
    sent: list[Any] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    app = serving(EventBus())
    await app({"type": "websocket", "path": "/events"}, receive, send)
    assert sent == [{"type": "websocket.close"}]
    with pytest.raises(NotImplementedError, match=re.escape("HTTP only, not 'lifespan'")):
        await app({"type": "lifespan"}, receive, send)
