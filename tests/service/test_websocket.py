"""A run over a WebSocket, with the `websockets` library as the client and real sockets between."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.process.scripted import scripted_adapter
from tests.service.serving import PATIENCE, Serving, serving
from tests.service.test_runs_api import demo
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from agent_mux import validate
from agent_mux.run.commands import RESPONSE_TYPES
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.application import make_application
from agent_mux.service.connections import LARGEST_MESSAGE
from agent_mux.service.security.tokens import Caller
from agent_mux.service.websocket import MAX_WAITING_COMMANDS

TALKER = """
while (heard := read()) is not None:
    text = heard.get("send", "first")
    emit(text="you said " + text)
    if text == "ask":
        emit(ask="rm -r build")
        emit(text=", and you said " + read()["answer"])
    emit(done=True)
"""
MUCH = """
read()
for number in range(1000): emit(text=str(number).rjust(4000))
emit(done=True)
"""


def agents(body: str) -> AdapterRegistry:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(body))
    return registry


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("recorded")) as server:
        yield server


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("talking"), agents(TALKER)) as server:
        yield server


def started(served: Serving, **fields: Any) -> str:
    data = {"agent": "scripted", "prompt": "hello", "interactive": True, **fields}
    answer = served.http.post("/v1/runs", json=data)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def opened(served: Serving, run_id: str, query: str = "") -> ClientConnection:
    url = served.url.replace("http", "ws", 1)
    return connect(
        f"{url}/v1/runs/{run_id}/ws{query}", open_timeout=PATIENCE, compression=None, proxy=None, max_size=None
    )


def everything(websocket: ClientConnection) -> list[Any]:
    """All messages until the server closes."""
    messages = []
    try:
        while True:
            messages.append(json.loads(websocket.recv(PATIENCE)))
    except ConnectionClosed:
        return messages


def heard(websocket: ClientConnection, type_: str, **fields: Any) -> Any:
    """Return the next message of a type with these fields."""
    while True:
        message = json.loads(websocket.recv(PATIENCE))
        if message["type"] == type_ and all(message.get(name) == value for name, value in fields.items()):
            return message


def say(websocket: ClientConnection, **fields: Any) -> None:
    websocket.send(json.dumps(fields))


def lines(served: Serving, run_id: str, query: str = "") -> list[Any]:
    answer = served.http.get(f"/v1/runs/{run_id}/events{query}", headers={"accept": "application/jsonl"})
    return [json.loads(line) for line in answer.text.splitlines()]


# -- out


def test_messages_are_the_lines_of_the_command(recorded: Serving) -> None:
    run_id = demo(recorded)["runId"]
    with opened(recorded, run_id) as websocket:
        messages = everything(websocket)
    assert messages == lines(recorded, run_id)
    assert validate(messages[:-1]) == []
    assert (websocket.close_code, messages[-1]["type"]) == (1000, "run_result")


@pytest.mark.parametrize("query", ["?accumulated=false", "?types=text_delta,session_end", "?types="])
def test_event_selection_works_as_for_other_readers(recorded: Serving, query: str) -> None:
    run_id = demo(recorded)["runId"]
    with opened(recorded, run_id, query) as websocket:
        assert everything(websocket) == lines(recorded, run_id, query)


@pytest.mark.slow
def test_numbered_messages_are_a_place_to_go_on_from_whatever_was_left_out(recorded: Serving) -> None:
    run_id = demo(recorded)["runId"]
    whole = lines(recorded, run_id)
    with opened(recorded, run_id, "?numbered=true&types=text_delta") as websocket:
        some = everything(websocket)
    assert [one["event"] for one in some[:-1]] == [event for event in whole if event["type"] == "text_delta"]
    assert all(whole[one["id"]] == one["event"] for one in some)
    place = some[len(some) // 2]["id"]
    with opened(recorded, run_id, f"?after={place}") as websocket:
        assert everything(websocket) == whole[place + 1 :]


@pytest.mark.slow
def test_nothing_follows_the_result(recorded: Serving) -> None:
    run_id = demo(recorded)["runId"]
    count = len(lines(recorded, run_id))
    with opened(recorded, run_id, f"?after={count - 1}") as websocket:
        assert everything(websocket) == []
    assert websocket.close_code == 1000


@pytest.mark.parametrize(
    ("run", "query", "code", "word"),
    [
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "", 4404, "RUN_NOT_FOUND"),
        ("nonsense", "", 4404, "RUN_NOT_FOUND"),
        (None, "?after=99999", 4422, "VALIDATION_ERROR"),
        (None, "?after=x", 4422, "after"),
        (None, "?types=nonsense", 4422, "types"),
        (None, "?accumulated=on", 4422, "accumulated"),
        (None, "?since=1", 4422, "since"),
    ],
)
def test_errors_are_close_codes(recorded: Serving, run: str | None, query: str, code: int, word: str) -> None:
    with opened(recorded, run or demo(recorded)["runId"], query) as websocket:
        assert everything(websocket) == []
    assert websocket.close_code == code
    assert word in str(websocket.close_reason)


# -- in


def test_a_conversation_goes_both_ways(talking: Serving) -> None:
    with opened(talking, started(talking)) as websocket:
        heard(websocket, "text_delta", delta="you said first")
        heard(websocket, "turn_end")
        say(websocket, type="prompt", text="ask", id="p")
        assert heard(websocket, "ack", id="p") == {
            "type": "ack", "command": "prompt", "id": "p", "delivery": "applied",
        }  # fmt: skip
        asked = heard(websocket, "approval_request")
        say(websocket, type="status", id=7)
        status = heard(websocket, "ack", command="status", id=7)["run"]
        assert [one["id"] for one in status["pending"]] == [asked["interactionId"]]
        assert status["state"] == "running"
        say(websocket, type="approve", interactionId=asked["interactionId"], id=8)
        heard(websocket, "ack", id=8)
        heard(websocket, "text_delta", delta=", and you said yes")
        heard(websocket, "turn_end")
        say(websocket, type="close", id=9)
        *_, last = everything(websocket)
    assert (last["type"], last["exitReason"], last["turnCount"]) == ("run_result", "completed", 2)
    assert websocket.close_code == 1000


def test_an_abort_is_answered_before_the_end(talking: Serving) -> None:
    with opened(talking, started(talking)) as websocket:
        say(websocket, type="abort", id=1)
        messages = everything(websocket)
    kinds = [message["type"] for message in messages]
    assert kinds.index("ack") < kinds.index("aborted")
    assert messages[-1]["exitReason"] == "aborted"


GARBAGE = [
    "hello", "", "[]", "null", "{", '{"type":"nonsense","id":3}', '{"type":"prompt"}', '{"type":"prompt","text":" "}',
    '{"type":"approve","interactionId":"nobody","id":3}', b"\x00\xff", "{" * 10_000,
]  # fmt: skip


def test_garbage_is_answered_and_has_no_effect(talking: Serving) -> None:
    with opened(talking, started(talking)) as websocket:
        heard(websocket, "turn_end")
        for garbage in GARBAGE:
            websocket.send(garbage)
            assert set(heard(websocket, "command_error")["error"]) == {"code", "message", "recoverable"}
        say(websocket, type="prompt", text="still there")
        heard(websocket, "text_delta", delta="you said still there")
        say(websocket, type="abort")
        everything(websocket)


def test_a_message_that_is_too_big_closes_the_connection_and_not_the_run(talking: Serving) -> None:
    run_id = started(talking)
    with opened(talking, run_id) as websocket:
        heard(websocket, "turn_end")
        websocket.send("{" + "x" * LARGEST_MESSAGE)
        everything(websocket)
    assert websocket.close_code == 1009
    assert talking.http.get(f"/v1/runs/{run_id}").json()["state"] == "running"
    talking.http.post(f"/v1/runs/{run_id}/abort")


class Watching:
    """Middleware that admits every caller with the scope `read` only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            scope["state"]["caller"] = Caller("watcher", frozenset({"read"}))
        await self._app(scope, receive, send)


@pytest.mark.slow
def test_a_read_only_token_cannot_send_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def application(*arguments: Any) -> Starlette:
        made = make_application(*arguments)
        made.add_middleware(Watching)
        return made

    monkeypatch.setattr("tests.service.serving.make_application", application)
    with serving(tmp_path, agents(TALKER)) as served:
        run_id = started(served)
        with opened(served, run_id) as websocket:
            heard(websocket, "turn_end")
            for kind in ("abort", "kill", "close", "pause", "approve_all"):
                say(websocket, type=kind, id=kind)
                assert heard(websocket, "command_error", id=kind)["error"]["code"] == "FORBIDDEN"
            say(websocket, type="status")
            assert heard(websocket, "ack")["run"]["state"] == "running"


def test_a_client_that_leaves_harms_no_run_and_is_obeyed(talking: Serving) -> None:
    run_id = started(talking)
    with opened(talking, run_id) as websocket:
        heard(websocket, "turn_end")
        say(websocket, type="prompt", text="goodbye")
    with opened(talking, run_id) as other:
        heard(other, "text_delta", delta="you said goodbye")
        say(other, type="close")
        assert everything(other)[-1]["exitReason"] == "completed"


def test_commands_to_an_ended_run_are_refused(recorded: Serving) -> None:
    run_id = demo(recorded)["runId"]
    lines(recorded, run_id)
    with opened(recorded, run_id) as websocket:
        say(websocket, type="prompt", text="hello")
        answers = [message for message in everything(websocket) if message["type"] in RESPONSE_TYPES]
    assert all(answer["error"]["code"] == "RUN_NOT_ACTIVE" for answer in answers)


@pytest.mark.slow
def test_commands_that_wait_are_bounded_and_an_abort_overtakes_them(tmp_path: Path) -> None:
    with serving(tmp_path, agents(TALKER), max_concurrent_runs=1) as served:
        first, waiting = started(served), started(served)
        with opened(served, waiting) as websocket:
            for number in range(MAX_WAITING_COMMANDS + 3):  # the run has not begun: the first one waits for that
                say(websocket, type="prompt", text="x", id=number)
            refused = [heard(websocket, "command_error")["error"]["code"] for _ in range(2)]
            assert refused == ["LIMIT_EXCEEDED"] * 2
            say(websocket, type="abort", id="end")
            heard(websocket, "ack", id="end")
            everything(websocket)
        assert served.http.get(f"/v1/runs/{waiting}").json()["state"] == "aborted"
        served.http.post(f"/v1/runs/{first}/abort")


# -- slow and gone


def stalled(served: Serving, run_id: str) -> socket.socket:
    """A client that shook hands and reads no more."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(PATIENCE)
    sock.connect(("127.0.0.1", int(served.url.rpartition(":")[2])))
    sock.sendall(
        f"GET /v1/runs/{run_id}/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert sock.recv(12).endswith(b"101")
    return sock


def waiting_bytes(served: Serving) -> list[int]:
    """What the server holds for the clients of its WebSockets."""
    connections = [one for one in served.server.server_state.connections if hasattr(one, "writable")]
    return [one.transport.get_write_buffer_size() for one in connections if one.transport is not None]


@pytest.mark.slow
def test_a_stalled_reader_costs_a_bounded_buffer_and_slows_nobody(tmp_path: Path) -> None:
    with serving(tmp_path, agents(MUCH)) as served:
        run_id = started(served, interactive=False)
        with stalled(served, run_id) as sock:
            with opened(served, run_id, "?accumulated=false") as websocket:
                messages = everything(websocket)  # 4 MB, while the other one takes nothing
            assert messages[-1]["exitReason"] == "completed"
            assert sum(message["type"] == "text_delta" for message in messages) == 1000
            ping = b"\x89\xf8" + bytes(4 + 120)  # masked, as those of clients are
            sock.sendall(ping * 80_000)
            held = waiting_bytes(served)
            assert held
            assert max(held) < 1 << 18  # 64 KiB and one message, which has the text so far
        assert served.http.get("/health").status_code == 200


@pytest.mark.slow
def test_a_reader_that_answers_no_ping_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.service.connections.CLOSE_DELAY", 0.1)
    with serving(tmp_path, agents(MUCH + "drain()")) as served:
        served.server.config.ws_ping_interval = served.server.config.ws_ping_timeout = 0.1
        run_id = started(served)
        with stalled(served, run_id):
            until = time.monotonic() + PATIENCE
            while waiting_bytes(served) and time.monotonic() < until:
                served.http.get("/health")
            assert waiting_bytes(served) == []
        while (state := served.http.get(f"/v1/runs/{run_id}").json()["state"]) == "spawned":
            assert time.monotonic() < until
        assert state == "running"


@pytest.mark.slow
def test_a_server_that_stops_lets_its_clients_see_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, agents(TALKER)) as served, opened(served, started(served)) as websocket:
        heard(websocket, "turn_end")
        served.server.should_exit = True
        messages = everything(websocket)
    assert (messages[-1]["type"], messages[-1]["exitReason"]) == ("run_result", "aborted")
    assert websocket.close_code == 1000


@pytest.mark.slow
def test_a_run_that_still_waits_when_the_server_stops_has_no_result_yet(tmp_path: Path) -> None:
    with serving(tmp_path, agents(TALKER), max_concurrent_runs=1) as served:
        first, waiting = started(served), started(served)
        with opened(served, waiting) as websocket:
            served.server.should_exit = True
            assert everything(websocket) == []
        assert websocket.close_code == 1012
    with serving(tmp_path, agents(TALKER)) as served:
        assert served.http.get(f"/v1/runs/{first}").json()["state"] == "aborted"
        with opened(served, waiting) as websocket:
            heard(websocket, "turn_end")


def test_a_plain_request_to_the_websocket_is_answered(recorded: Serving) -> None:
    assert recorded.http.get("/v1/runs/x/ws").status_code in {404, 426}
    with opened(recorded, demo(recorded, env={"AMUX_REPLAY_SPEED": "1"})["runId"]) as websocket:
        websocket.socket.sendall(b"\xff" * 100)
        everything(websocket)
    assert websocket.close_code == 1002
