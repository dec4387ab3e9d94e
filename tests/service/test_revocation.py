"""What becomes of open connections when their token is revoked, expires, is rotated or loses a scope."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process.scripted import scripted_adapter
from tests.service.keys import bearing, make_token, with_keyring
from tests.service.serving import PATIENCE, Serving, serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.clock import now_ms
from agent_mux.service.security.keyring import Keyring

ASKS_AND_TALKS = """
import threading
read(); emit(session="s")
def talk():
    while True: emit(text="x"); time.sleep(0.05)
threading.Thread(target=talk, daemon=True).start()
emit(ask="rm -r build")
answer = read()
emit(text="ANSWERED")
time.sleep(1000)
"""
SOON = 30.0  # seconds; a busy machine

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    """A service with the tokens `ci` (run) and `keeper` (admin)."""
    registry = AdapterRegistry()
    registry.register(scripted_adapter(ASKS_AND_TALKS))
    make_token(tmp_path, "keeper", "admin")
    with serving(tmp_path, registry) as server:
        server.http.headers.update(bearing(make_token(tmp_path, "spare", "admin")))
        yield server


def started(served: Serving) -> str:
    for _ in range(200):  # until the service has read the new token
        answer = served.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi", "approvalMode": "prompt"})
        if answer.status_code == 201:
            return str(answer.json()["runId"])
        time.sleep(0.05)
    raise AssertionError(answer.text)


def token_of(served: Serving, *scopes: str, **chosen: Any) -> str:
    """A token `ci` that the service knows."""
    token = make_token(directory_of(served), "ci", *scopes, **chosen)
    for _ in range(200):
        if served.http.get("/v1/runs", headers=bearing(token)).status_code == 200:
            return token
        time.sleep(0.05)
    raise AssertionError("the token is unknown")


def directory_of(served: Serving) -> Path:
    return served.service.settings.config_dir


def changed(served: Serving, **values: Any) -> None:
    """Change the row of `ci`."""

    async def change(keyring: Keyring) -> None:
        row = await keyring._row("ci")
        await keyring._store.change(row.id, values)

    with_keyring(directory_of(served), change)


def revoked(served: Serving) -> None:
    with_keyring(directory_of(served), lambda keyring: keyring.revoke("ci"))


def revoked_elsewhere(served: Serving) -> None:
    """As a user does it."""
    words = ["token", "revoke", "ci", "--config-dir", str(directory_of(served))]
    subprocess.run([sys.executable, "-m", "agent_mux", *words], check=True, timeout=PATIENCE)


def forgotten(served: Serving) -> None:
    with_keyring(directory_of(served), lambda keyring: keyring.forget("ci"))


def rotated(served: Serving) -> None:
    with_keyring(directory_of(served), lambda keyring: keyring.rotate("ci", grace_ms=0))


def expired(served: Serving) -> None:
    changed(served, expires_at=now_ms() + 500)


def without_scopes(served: Serving) -> None:
    changed(served, scopes="")


LOSSES = [revoked, revoked_elsewhere, forgotten, rotated, expired, without_scopes]
Loss = Callable[[Serving], None]


def rest(lines: Iterator[str]) -> list[str]:
    deadline, seen = time.monotonic() + SOON, []
    for line in lines:
        assert time.monotonic() < deadline, "the stream goes on"
        seen.append(line)
    return seen


@pytest.mark.parametrize("lose", LOSSES)
def test_a_stream_ends_with_an_error_event(served: Serving, lose: Loss) -> None:
    run, token = started(served), token_of(served, "read")
    with served.http.stream("GET", f"/v1/runs/{run}/events", headers=bearing(token)) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "id: 0"
        lose(served)
        began = time.monotonic()
        seen = rest(lines)
        assert time.monotonic() - began < SOON
    assert seen[-3] == "event: error"
    problem = json.loads(seen[-2].removeprefix("data: "))
    assert (problem["code"], problem["status"]) == ("UNAUTHENTICATED", 401)
    again = served.http.get(f"/v1/runs/{run}/events", headers=bearing(token))
    assert again.status_code in {401, 403}


def test_lines_are_cut_so_that_a_client_notices(served: Serving) -> None:
    run, token = started(served), token_of(served, "read")
    headers = {**bearing(token), "accept": "application/jsonl"}
    with served.http.stream("GET", f"/v1/runs/{run}/events", headers=headers) as answer:
        lines = answer.iter_lines()
        next(lines)
        revoked(served)
        with pytest.raises(httpx.RemoteProtocolError):
            rest(lines)


def opened(served: Serving, run: str, token: str) -> ClientConnection:
    url = served.url.replace("http", "ws", 1)
    return connect(f"{url}/v1/runs/{run}/ws", additional_headers=bearing(token), open_timeout=PATIENCE, proxy=None)


def until_closed(socket: Connection) -> tuple[list[Any], int, str]:
    """All messages, and how the server closed."""
    messages, deadline = [], time.monotonic() + SOON
    try:
        while time.monotonic() < deadline:
            messages.append(json.loads(socket.recv(PATIENCE)))
    except ConnectionClosed as closed:
        end = closed.rcvd
        return messages, *((end.code, end.reason) if end is not None else (0, ""))
    raise AssertionError("the connection stays open")


def until_asked(socket: Connection) -> None:
    while json.loads(socket.recv(PATIENCE))["type"] != "approval_request":
        pass


@pytest.mark.parametrize("lose", LOSSES)
def test_a_socket_is_closed(served: Serving, lose: Loss) -> None:
    run, token = started(served), token_of(served, "run")
    with opened(served, run, token) as socket:
        until_asked(socket)
        lose(served)
        _, code, reason = until_closed(socket)
    assert code == 4401
    assert "no longer valid" in reason


def test_a_revoked_socket_approves_nothing(served: Serving) -> None:
    run, token = started(served), token_of(served, "run")
    with opened(served, run, token) as socket:
        until_asked(socket)
        revoked(served)
        time.sleep(1.5)  # the promised second
        with suppress(ConnectionClosed):
            socket.send(json.dumps({"type": "approve"}))
        messages, code, _ = until_closed(socket)
    assert code == 4401
    assert not any(one["type"] == "ack" or one.get("delta") == "ANSWERED" for one in messages)
    assert served.http.get(f"/v1/runs/{run}").json()["pending"]


def test_a_socket_that_may_only_read_now_goes_on_without_commands(served: Serving) -> None:
    run, token = started(served), token_of(served, "run")
    with opened(served, run, token) as socket:
        until_asked(socket)
        changed(served, scopes="read")
        time.sleep(1.5)  # the promised second
        socket.send(json.dumps({"type": "approve", "id": "1"}))
        while (message := json.loads(socket.recv(SOON)))["type"] != "command_error":
            assert message["type"] not in {"ack", "response"}
        assert message["error"]["code"] == "FORBIDDEN"
        assert json.loads(socket.recv(SOON))["type"] == "text_delta"


def test_a_rotated_token_reads_on_until_its_grace_time_is_over(served: Serving) -> None:
    run, token = started(served), token_of(served, "read")
    with served.http.stream("GET", f"/v1/runs/{run}/events", headers=bearing(token)) as answer:
        lines = answer.iter_lines()
        next(lines)
        with_keyring(directory_of(served), lambda keyring: keyring.rotate("ci", grace_ms=3_000))
        began = time.monotonic()
        rest(lines)
        assert time.monotonic() - began > 2.5


def test_local_readers_are_ended_by_the_first_token(tmp_path: Path) -> None:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(ASKS_AND_TALKS))
    with serving(tmp_path, registry) as served:
        run = started(served)
        with served.http.stream("GET", f"/v1/runs/{run}/events") as answer:
            lines = answer.iter_lines()
            next(lines)
            make_token(tmp_path, "first", "read")
            assert rest(lines)[-3] == "event: error"


def test_many_streams_share_one_query(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    run, token = started(served), token_of(served, "read")
    store, calls = served.service.authenticator._store, 0
    read = store.all

    async def counted() -> Any:
        nonlocal calls
        calls += 1
        return await read()

    sockets = [opened(served, run, token) for _ in range(40)]
    monkeypatch.setattr(store, "all", counted)
    time.sleep(3)
    assert 2 <= calls <= 16, "four times a second, however many streams there are"
    revoked(served)
    assert {until_closed(socket)[1] for socket in sockets} == {4401}
