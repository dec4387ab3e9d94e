"""Problems that only a remote client has: broken connections, restarted servers, foreign responses.

What a run does is tested in `tests/process`, by the tests of runs of this process.
"""

import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from tests.process.local_and_remote import ScriptedServer, scripted_server
from tests.service.cutting import cutting

from agent_mux import (
    AgentMuxError,
    Approve,
    BlockingRemoteMux,
    CapabilityError,
    RemoteMux,
    ValidationError,
    encode_event,
)
from agent_mux.client.remote import stream

pytestmark = pytest.mark.anyio
TALK = "read(); emit(session='S')\nfor n in range(300): emit(text=f'{n} ' * 5)\nemit(done=True); drain()"
WORKS = "read(); emit(session='S'); emit(text='ready'); time.sleep(1000)"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FIRST_DELAY", 0.001)


# -- connections


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
async def test_cut_connections_lose_and_repeat_no_event(here: ScriptedServer, seed: int) -> None:
    cuts = random.Random(seed)  # noqa: S311  # to be played again
    body: list[str] = []
    with anyio.fail_after(60), cutting(here.server.url, lambda: cuts.randrange(500, 30_000)) as proxy:
        async with here.client(TALK), RemoteMux(proxy.url, default_agent="scripted", reconnect_for=20) as mux:
            run = await mux.start(prompt="hi", event_buffer_size=20, collect_events=True)
            run.on("*", lambda event: body.append(event.type))
            events = [event async for event in run]
            result = await run
            late = [event async for event in run]
    assert proxy.connections > 3
    assert result.exit_reason == "completed"
    lines = here.server.http.get(
        f"/v1/runs/{run.run_id}/events?accumulated=true", headers={"accept": "application/jsonl"}
    )
    expected = lines.text.splitlines()[:-1]
    for seen in (events, late, result.events or ()):
        assert [encode_event(event).decode() for event in seen] == expected
    assert body == [event.type for event in events]


async def test_a_lost_response_is_requested_again_and_starts_no_second_run(
    here: ScriptedServer, anyio_backend: str
) -> None:
    sizes = iter([0, 10, 1 << 60])
    here.client(WORKS)
    with anyio.fail_after(30), cutting(here.server.url, lambda: next(sizes, 1 << 60)) as proxy:
        async with RemoteMux(proxy.url, default_agent="scripted") as mux:
            run = mux.run(prompt="hi", tags=[anyio_backend], grace_period=0.1)
            listed = here.server.http.get("/v1/runs", params={"tag": anyio_backend}).json()["runs"]
            assert proxy.connections >= 3
    assert [one["runId"] for one in listed] == [run.run_id]
    assert (await run).exit_reason == "aborted"


async def test_retries_end_when_a_service_stays_unreachable_and_the_result_reports_it(here: ScriptedServer) -> None:
    here.client(WORKS)
    with anyio.fail_after(30):
        async with RemoteMux(here.server.url, default_agent="scripted") as ours:
            run = await ours.start(prompt="hi", grace_period=0.1)
            with cutting(here.server.url, lambda: 1 << 60) as proxy:
                async with RemoteMux(proxy.url, reconnect_for=0.2) as mux:
                    watched = await mux.attach(run.run_id)
                    async for event in watched:
                        if event.type == "text_delta":
                            proxy.close()
                    result = await watched
                    last = [event async for event in watched][-1]
    assert (result.exit_reason, result.error and result.error.code) == ("lost", "RUN_LOST")
    assert result.text == "ready" or not result.text  # the end of the message was never reported
    assert last.type == "debug"
    assert "may continue" in last.message
    assert (await run).exit_reason == "aborted"  # it went on, until its own client left


SERVER = """
import sys
from pathlib import Path
from tests.process.scripted import scripted_adapter
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.application import make_application
from agent_mux.service.server import HttpServer
from agent_mux.service.settings import ServiceSettings
registry = AdapterRegistry()
registry.register(scripted_adapter(sys.argv[3]))
settings = ServiceSettings(config_dir=Path(sys.argv[1]), port=int(sys.argv[2]))
HttpServer(make_application(settings, registry), settings).run()
"""


def start_server(directory: Path, port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", SERVER, str(directory), str(port), WORKS]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def until_up(url: str) -> None:
    while True:
        async with RemoteMux(url, request_timeout=1) as mux:
            try:
                await mux.attach("0" * 26)
            except AgentMuxError as error:
                if error.code == "RUN_NOT_FOUND":
                    return
        await anyio.sleep(0.05)


@pytest.mark.slow
async def test_a_reader_gets_the_remaining_events_after_a_kill_and_restart(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = start_server(tmp_path, port)
    try:
        with anyio.fail_after(90):
            await until_up(url)
            async with RemoteMux(url, default_agent="scripted") as mux:
                run = await mux.start(prompt="hi")
                events = []
                async for event in run:
                    events.append(event)
                    if event.type == "text_delta":
                        server.send_signal(signal.SIGKILL)
                        server.wait(10)
                        server = start_server(tmp_path, port)
                result = await run
    finally:
        server.terminate()
        server.wait(30)
    assert (result.exit_reason, run.state) == ("lost", "lost")
    types = [event.type for event in events]
    assert types == list(dict.fromkeys(types))
    assert types[-1] == "session_end"


async def test_requests_of_an_attached_run_are_pending_at_once(here: ScriptedServer) -> None:
    body = "read(); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    with anyio.fail_after(40):
        async with here.client(body) as mux:
            run = await mux.start(prompt="hi")
            while not run.interaction.pending:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            async with here.client(body) as other:
                watched = await other.attach(run.run_id)
                (pending,) = watched.interaction.pending
                assert await watched.interaction.respond(pending.id, Approve()) == "applied"
            assert (await run.result()).text == "yes"


async def test_an_attached_run_is_followed_and_not_aborted(here: ScriptedServer) -> None:
    asks = "read(); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    with anyio.fail_after(30):
        async with here.client(asks) as ours:
            run = await ours.start(prompt="hi")
            async with RemoteMux(here.server.url) as mux:
                watched = await mux.attach(run.run_id)
                async for event in watched:
                    if event.type == "approval_request":
                        break
            async for event in run:  # its connection may be slower than the other
                if event.type == "approval_request":
                    break
            assert run.state == "running"
            async with RemoteMux(here.server.url) as mux:
                watched = await mux.attach(run.run_id)
                await watched.approve()
                assert (await watched).text == "yes"
            assert (await run).ok


# -- how a run is, between its events


@pytest.mark.slow
async def test_the_queue_position_follows_changes(tmp_path: Path) -> None:
    with anyio.fail_after(30), scripted_server(tmp_path, max_concurrent_runs=1) as there:
        async with there.client(WORKS) as mux:
            runs = [await mux.start(prompt="hi", grace_period=0.1) for _ in range(3)]
            begun = anyio.Event()
            runs[2].on_state(lambda _: begun.set())
            assert (runs[2].state, runs[2].queue_position) == ("spawned", 2)
            await runs[1].abort()
            while runs[2].queue_position != 1:  # noqa: ASYNC110  # no callback reports it
                await anyio.sleep(0.01)
            await runs[0].abort()
            await begun.wait()
            assert (runs[2].state, runs[2].queue_position) == ("running", None)


async def test_a_command_of_another_client_is_visible_before_its_events(here: ScriptedServer) -> None:
    seen: list[tuple[str, str]] = []
    with anyio.fail_after(30):
        async with here.client(WORKS) as ours, RemoteMux(here.server.url) as theirs:
            run = await ours.start(prompt="hi", grace_period=0.1)
            async for event in run:
                if event.type == "text_delta":
                    await (await theirs.attach(run.run_id)).pause()
                seen.append((event.type, run.state))
                if event.type == "paused":
                    await run.resume()
                    assert run.state == "running"
                    break
    assert seen[-1] == ("paused", "paused")


def test_snapshots_have_no_number_and_precede_events(here: ScriptedServer) -> None:
    here.client("read(); emit(session='S'); emit(text='x'); emit(done=True); drain()")
    http = here.server.http
    run_id = http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi"}).json()["runId"]
    path = f"/v1/runs/{run_id}/events"
    plain = http.get(path).text
    blocks = http.get(path, params={"snapshots": True}).text.split("\n\n")
    views = [block for block in blocks if block.startswith("event: run\n")]
    assert blocks[0] == views[0]
    assert all("\nid: " not in view for view in views)
    assert "\n\n".join(block for block in blocks if block not in views) == plain
    refused = http.get(path, params={"snapshots": True}, headers={"accept": "application/jsonl"})
    assert (refused.status_code, refused.json()["fields"][0]["path"]) == (422, "snapshots")


# -- errors


async def test_problems_become_the_errors_of_the_service(here: ScriptedServer) -> None:
    async with here.client("", approval_modes=("yolo", "deny")) as mux:
        with pytest.raises(ValidationError) as invalid:
            await mux.start(prompt="hi", max_model_calls=0, temperature=9)
        with pytest.raises(CapabilityError) as incapable:
            mux.run(prompt="hi", session_id="S")
        with pytest.raises(AgentMuxError) as unknown:
            await mux.attach("0" * 26)
        with pytest.raises(ValidationError, match="ULID"):
            await mux.attach("../tokens")
    assert {one.path for one in invalid.value.fields} == {"max_model_calls", "temperature"}
    assert (incapable.value.agent, incapable.value.code) == ("scripted", "CAPABILITY_ERROR")
    assert "scripted does not support" in str(incapable.value)
    assert (unknown.value.code, unknown.value.recoverable) == ("RUN_NOT_FOUND", False)


async def test_an_unreachable_service_raises_unavailable() -> None:
    async with RemoteMux(f"http://127.0.0.1:{free_port()}", default_agent="x") as mux:
        with pytest.raises(AgentMuxError, match="cannot be reached") as at_once:
            mux.run(prompt="hi")
        with pytest.raises(AgentMuxError, match="cannot be reached") as awaited:
            await mux.start(prompt="hi")
    for caught in (at_once, awaited):
        assert (caught.value.code, caught.value.recoverable) == ("UNAVAILABLE", True)


class _Stranger(BaseHTTPRequestHandler):
    """A foreign HTTP server that stores the requests that it receives."""

    heard: ClassVar[dict[str, str]] = {}

    def do_POST(self) -> None:
        self.heard.update(self.headers.items())
        self.send_response(502)
        self.end_headers()
        self.wfile.write(b"<h1>Bad Gateway</h1>")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def stranger() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_response_of_another_server_is_reported_as_such(stranger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_SERVER", stranger)
    monkeypatch.setenv("AGENT_MUX_SERVER_TOKEN", "amux_token")
    async with RemoteMux(default_agent="x") as mux:
        with pytest.raises(AgentMuxError, match="answered 502"):
            await mux.start(prompt="hi")
        assert "amux_token" not in repr(mux._connection.address)
    assert _Stranger.heard["authorization"] == "Bearer amux_token"
    assert "idempotency-key" in {name.lower() for name in _Stranger.heard}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, "url"),
        ({"url": "ftp://host"}, "url"),
        ({"url": "host:80"}, "url"),
        ({"url": "http://user:pass@host"}, "url"),
        ({"url": "http://host?x=1"}, "url"),
        ({"url": "http://host", "token": "two words"}, "token"),
        ({"url": "http://host", "config_dir": "/x"}, "config_dir"),
        ({"url": "http://host", "timeout": -1}, "timeout"),
    ],
)
def test_bad_arguments_are_reported_at_once(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], path: str
) -> None:
    monkeypatch.delenv("AGENT_MUX_SERVER", raising=False)
    with pytest.raises(ValidationError) as caught:
        RemoteMux(**arguments)
    assert [one.path for one in caught.value.fields] == [path]
    assert "pass" not in str(caught.value).replace("password", "")


async def test_unsupported_remote_calls_raise(here: ScriptedServer) -> None:
    async with here.client("") as mux:
        for fields in ({"journal": False}, {"journal": "/tmp/x.journal"}, {"owner": "me"}, {"nonsense": 1}):
            with pytest.raises(ValidationError):
                mux.run(prompt="hi", **fields)
        with pytest.raises(AttributeError, match="on the machine of the service"):
            _ = mux.config
    with pytest.raises(AgentMuxError) as late:
        mux.run(prompt="after the block")
    assert late.value.code == "RUN_NOT_ACTIVE"


def test_the_blocking_client_runs_at_a_service(here: ScriptedServer) -> None:
    asks = "read(); emit(session='S'); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    here.client(asks)
    with BlockingRemoteMux(here.server.url, default_agent="scripted") as mux:
        run = mux.run(prompt="hi")
        for event in mux.attach(run.run_id):
            if event.type == "approval_request":
                run.approve()
        result = run.result()
    assert (result.text, run.session_id, run.state) == ("yes", "S", "completed")
