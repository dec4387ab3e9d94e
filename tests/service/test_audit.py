"""The audit trail of a service: who did what, recorded before it happens."""

import json
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from tests.process.scripted import scripted_adapter
from tests.service.commanding import PATIENCE, amux
from tests.service.durable.processes import ServerProcess, until
from tests.service.keys import bearing, make_token, with_keyring
from tests.service.serving import Serving, serving
from ulid import ULID
from websockets.sync.client import connect

from agent_mux import RemoteMux
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.audit.entries import Actor, new_entry
from agent_mux.service.service import open_database
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.audit import AuditFilter, AuditRow, AuditStore

ASKS = """
read(); emit(session="s"); emit(ask="rm -rf build"); emit(text=json.dumps(read()))
emit(ask="ls"); emit(text=json.dumps(read())); time.sleep(1000)
"""
BODY = {"agent": "scripted", "prompt": "hi"}
SECRET = "sk-ant-api03-" + "a1B2" * 12


def entries(http: httpx.Client, token: str, **query: Any) -> list[dict[str, Any]]:
    answer = http.get("/v1/audit", headers=bearing(token), params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["entries"])


def registry(body: str = ASKS) -> AdapterRegistry:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(body))
    return adapters


class Audited:
    """A service with a token of each kind, and a run that asks for approval."""

    def __init__(self, served: Serving, tokens: dict[str, str]) -> None:
        self.served, self.http, self.tokens = served, served.http, tokens
        self.run = self.post("/v1/runs", **BODY).json()["runId"]

    def post(self, path: str, scope: str = "run", **body: Any) -> httpx.Response:
        return self.http.post(path, json=body, headers=bearing(self.tokens[scope]))

    def entries(self, **query: Any) -> list[dict[str, Any]]:
        return entries(self.http, self.tokens["admin"], **query)

    def pending(self) -> str:
        view = until(lambda: self.http.get(self.path(""), headers=bearing(self.tokens["run"])).json().get("pending"))
        return str(view[0]["id"])

    def path(self, command: str) -> str:
        return f"/v1/runs/{self.run}{command}"


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    tokens = {scope: make_token(tmp_path, f"{scope}er", scope) for scope in ("read", "run", "admin")}
    with serving(tmp_path, registry()) as served:
        yield Audited(served, tokens)


@pytest.mark.slow
def test_who_started_and_controlled_a_run_is_recorded(audited: Audited) -> None:
    first = audited.pending()
    assert audited.post(audited.path("/approve"), "admin").status_code == 200
    second = until(lambda: (id_ := audited.pending()) != first and id_)
    assert audited.post(audited.path("/deny"), interactionId=second, reason=SECRET).status_code == 200
    assert audited.post(audited.path("/steer"), text=f"use {SECRET}").status_code == 200
    assert audited.post(audited.path("/approve")).status_code == 409
    assert audited.post(audited.path("/abort")).status_code == 200
    headers = bearing(audited.tokens["run"])
    assert audited.http.delete(audited.path(""), headers=headers).status_code == 204

    found = audited.entries(target=audited.run)[::-1]
    assert [(entry["action"], entry["actor"], entry["outcome"]) for entry in found] == [
        ("run.start", "runer", "ok"),
        ("run.approve", "adminer", "ok"),
        ("run.deny", "runer", "ok"),
        ("run.steer", "runer", "ok"),
        ("run.approve", "runer", "NO_PENDING_INTERACTION"),
        ("run.abort", "runer", "ok"),
        ("run.delete", "runer", "ok"),
    ]
    assert found[0]["detail"]["agent"] == "scripted"
    description = found[1]["detail"].pop("description")
    assert "rm -rf build" in description
    assert found[1]["detail"] == {"interactionId": first, "always": False}
    assert found[3]["detail"] == {"characters": len(SECRET) + 4}
    for entry in found:
        assert (entry["origin"], entry["client"], entry["targetType"]) == ("http", "127.0.0.1", "run")
        assert entry["tokenId"] == audited.tokens["admin" if entry["actor"] == "adminer" else "run"].split("_")[1]
    assert SECRET not in json.dumps(found)


def test_an_entry_has_the_id_of_its_request(audited: Audited) -> None:
    audited.http.post(audited.path("/kill"), headers={**bearing(audited.tokens["run"]), "x-request-id": "mine"})
    assert [entry["requestId"] for entry in audited.entries(action="run.kill")] == ["mine"]


@pytest.mark.slow
def test_commands_of_a_websocket_are_recorded(audited: Audited) -> None:
    audited.pending()
    url = audited.served.url.replace("http", "ws") + audited.path("/ws?types=")
    with connect(url, additional_headers=bearing(audited.tokens["run"]), open_timeout=PATIENCE) as websocket:
        for kind in ("approve", "status", "abort"):
            websocket.send(json.dumps({"type": kind}))
            assert json.loads(websocket.recv(PATIENCE))["type"] == "ack"
        list(websocket)
    found = until(lambda: [one for one in audited.entries(target=audited.run) if "outcome" in one][:2])
    assert [(entry["action"], entry["origin"]) for entry in found] == [
        ("run.abort", "websocket"), ("run.approve", "websocket")
    ]  # fmt: skip


@pytest.mark.slow
def test_a_request_that_starts_nothing_is_not_recorded(audited: Audited) -> None:
    assert audited.post("/v1/runs", agent="nobody", prompt="hi").status_code == 404
    assert audited.post("/v1/runs", "read", **BODY).status_code == 403
    assert len(audited.entries(action="run.start")) == 1


@pytest.mark.slow
def test_webhooks_and_profiles_are_recorded_without_their_secrets(audited: Audited) -> None:
    headers = bearing(audited.tokens["admin"])
    hook = {"url": f"https://user:{SECRET}@hooks.example.com/x?key={SECRET}"}
    made = audited.http.post("/v1/webhooks", json=hook, headers=headers)
    if made.status_code == 422:  # a URL with a password is refused
        made = audited.http.post("/v1/webhooks", json={"url": f"https://hooks.example.com/{SECRET}"}, headers=headers)
    path = f"/v1/webhooks/{made.json()['webhookId']}"
    audited.http.patch(path, json={"enabled": True, "description": SECRET}, headers=headers)
    audited.http.post(f"{path}/secret", json={}, headers=headers)
    audited.http.post(f"{path}/test", headers=headers)
    audited.http.delete(path, headers=headers)
    audited.http.put("/v1/profiles/quick", json={"agent": "replay"}, headers=headers)
    audited.http.delete("/v1/profiles/quick", headers=headers)
    found = [entry for entry in audited.entries()[::-1] if entry["targetType"] in {"webhook", "profile"}]
    assert [entry["action"] for entry in found] == [
        "webhook.create", "webhook.change", "webhook.rotate", "webhook.test", "webhook.delete",
        "profile.set", "profile.delete",
    ]  # fmt: skip
    assert found[0]["detail"] == {"host": "hooks.example.com"}
    assert {entry["actor"] for entry in found} == {"adminer"}
    assert SECRET not in json.dumps(found)


@pytest.mark.slow
def test_tokens_are_recorded_by_commands_without_their_secrets(tmp_path: Path) -> None:
    admin = make_token(tmp_path, "admin", "admin")
    token = make_token(tmp_path, "ci", "run")
    with_keyring(tmp_path, lambda keyring: keyring.rotate("ci", grace_ms=0))
    with_keyring(tmp_path, lambda keyring: keyring.revoke("ci"))
    with_keyring(tmp_path, lambda keyring: keyring.forget("ci"))
    with pytest.raises(AgentMuxError):
        make_token(tmp_path, "admin", "run")
    with serving(tmp_path) as served:
        found = entries(served.http, admin, targetType="token")[::-1]
        own = [entry for entry in found if entry["detail"]["name"] == "ci"]
    assert [entry["action"] for entry in own] == ["token.create", "token.rotate", "token.revoke", "token.forget"]
    assert {entry["target"] for entry in own} == {token.split("_")[1]}
    assert all(entry["origin"] == "cli" and "(uid " in entry["client"] for entry in found)
    assert len(found) == 5, "a token that was not created is not recorded"


@pytest.mark.slow
def test_reading_the_trail_needs_an_administrator(audited: Audited) -> None:
    for scope, status in (("read", 403), ("run", 403), ("admin", 200)):
        assert audited.http.get("/v1/audit", headers=bearing(audited.tokens[scope])).status_code == status


@pytest.mark.slow
def test_pages_of_the_trail_are_complete(audited: Audited) -> None:
    for _ in range(5):
        audited.post(audited.path("/interrupt"))
    everything = audited.entries(limit=200)
    seen, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = audited.http.get("/v1/audit", headers=bearing(audited.tokens["admin"]), params=query).json()
        seen += page["entries"]
        cursor = page.get("next")
        if cursor is None:
            break
    assert seen == everything
    moment = everything[3]["createdAt"]
    assert audited.entries(since=moment) == [entry for entry in everything if entry["createdAt"] >= moment]
    assert audited.entries(until=moment) == [entry for entry in everything if entry["createdAt"] < moment]
    assert {entry["action"] for entry in audited.entries(action=["run.start", "token.create"])} == {
        "run.start", "token.create"
    }  # fmt: skip
    answer = audited.http.get("/v1/audit?action=nonsense", headers=bearing(audited.tokens["admin"]))
    assert answer.status_code == 422


@pytest.mark.slow
def test_a_remote_client_reads_the_trail(audited: Audited) -> None:
    mux = RemoteMux(audited.served.url, token=audited.tokens["admin"])
    (entry,) = mux.audit.list(action="run.start", target=audited.run)
    assert (entry.actor, entry.outcome, entry.detail["agent"]) == ("runer", "ok", "scripted")
    assert len(mux.audit.list(limit=None)) == 4
    assert len(mux.audit.list(limit=2)) == 2


@pytest.mark.slow
def test_deletions_by_retention_are_recorded(tmp_path: Path) -> None:
    body = 'read(); emit(session="s"); emit(text="x"); emit(over=True); emit(done=True); drain()'
    with serving(tmp_path, registry(body)) as served:
        run = served.http.post("/v1/runs", json=BODY).json()["runId"]
        until(lambda: served.http.get(f"/v1/runs/{run}").json()["state"] == "completed")
    with serving(tmp_path, registry(body), keep_runs=0) as served:
        until(lambda: served.http.get(f"/v1/runs/{run}").status_code == 404)
        (entry,) = served.http.get("/v1/audit?action=run.delete").json()["entries"]
    assert (entry["origin"], entry["target"], "actor" in entry) == ("retention", run, False)


# -- crashes and failures


@pytest.mark.slow
def test_a_killed_server_loses_no_entry(tmp_path: Path) -> None:
    """The effect of a command is visible, so its entry is on disk."""
    with ServerProcess(tmp_path / "config", ASKS) as server:
        run = server.create()
        until(lambda: server.run(run).get("pending"))
        first = server.run(run)["pending"][0]["id"]
        assert server.http.post(f"/v1/runs/{run}/approve", json={}).status_code == 200
        until(lambda: [one for one in server.run(run)["pending"] if one["id"] != first])  # the agent went on
        server.end(signal.SIGKILL)
    with closing(sqlite3.connect(tmp_path / "config" / "service" / "service.db")) as database:
        rows = database.execute("SELECT action, target FROM audit ORDER BY created_at, audit_id").fetchall()
    assert rows == [("run.start", run), ("run.approve", run)]


class Database:
    """The database of a service, which can be made unavailable."""

    def __init__(self, served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
        self._store, self._patch = served.service.audit._store, monkeypatch
        self.spool = served.service.audit._spool

    def fail(self) -> None:
        async def away(*_: Any) -> None:
            raise AgentMuxError("UNAVAILABLE", "the database is away")

        for name in ("add", "set_outcomes"):
            self._patch.setattr(self._store, name, away)

    def fill_disk(self) -> None:
        def full(_: Any) -> None:
            raise OSError(28, "No space left on device")

        self._patch.setattr(self.spool, "append", full)


@pytest.mark.slow
def test_runs_stay_controllable_without_the_database_and_nothing_is_lost(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.pending()
    database = Database(audited.served, monkeypatch)
    database.fail()
    assert audited.post(audited.path("/approve")).status_code == 200
    assert audited.post(audited.path("/steer"), text="on").status_code == 200
    assert [row.action for row in database.spool.read()] == ["run.approve", "run.steer"], "they are on the disk"
    assert audited.entries(action=["run.approve", "run.steer"]) == []
    monkeypatch.undo()
    found = until(lambda: audited.entries(action=["run.approve", "run.steer"]))
    assert [(entry["action"], entry["outcome"]) for entry in found] == [("run.steer", "ok"), ("run.approve", "ok")]
    until(lambda: not database.spool.path.exists())


@pytest.mark.slow
def test_spooled_entries_of_a_killed_server_are_written_by_the_next_one(tmp_path: Path) -> None:
    token = make_token(tmp_path, "admin", "admin")
    with serving(tmp_path, registry()) as served, pytest.MonkeyPatch.context() as patch:
        database = Database(served, patch)
        database.fail()
        run = served.http.post("/v1/runs", json=BODY, headers=bearing(token)).json()["runId"]
        until(lambda: served.http.get(f"/v1/runs/{run}", headers=bearing(token)).json().get("pending"))
        served.http.post(f"/v1/runs/{run}/approve", headers=bearing(token))
        content = database.spool.path.read_bytes()
    database.spool.path.write_bytes(content + content[: len(content) // 2])  # as a crash in the middle of a line
    with serving(tmp_path, registry()) as served:
        (entry,) = until(lambda: entries(served.http, token, action="run.approve"))
    assert entry["target"] == run


@pytest.mark.slow
def test_what_cannot_be_recorded_is_refused_unless_it_restrains_the_agent(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited.pending()
    database = Database(audited.served, monkeypatch)
    database.fail()
    database.fill_disk()
    answer = audited.post(audited.path("/approve"))
    assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
    assert "free disk space" in answer.json()["detail"]
    assert audited.pending(), "the agent still waits"
    assert audited.post(audited.path("/abort")).status_code == 200
    monkeypatch.undo()
    (entry,) = until(lambda: audited.entries(target=audited.run, action=["run.approve", "run.abort"]))
    assert (entry["action"], entry["outcome"]) == ("run.abort", "ok")


def with_store(directory: Path, do: Callable[[AuditStore], Awaitable[Any]]) -> Any:
    """Do something with the audit trail in the database of a service."""

    async def work() -> Any:
        async with open_database(ServiceSettings(config_dir=directory)) as database:
            return await do(AuditStore(database, None))

    return anyio.run(work)


def test_an_action_that_was_interrupted_has_no_outcome(tmp_path: Path) -> None:
    entry = new_entry(Actor(origin="http"), "run.prompt", "run", "x\0", {"a": None}, instance="", outcome=None)

    async def add(store: AuditStore) -> None:
        await store.add(entry)
        await store.add(entry)  # again, as after a lost answer of the database

    with_store(tmp_path, add)
    with serving(tmp_path) as served:
        (shown,) = served.http.get("/v1/audit").json()["entries"]
    assert (shown["action"], shown["detail"], "outcome" in shown) == ("run.prompt", {}, False)


@pytest.mark.slow
def test_expired_entries_are_deleted(tmp_path: Path) -> None:
    rows = [
        AuditRow(audit_id=str(ULID()), created_at=number, action="x", origin="http", target_type="run", target="x")
        for number in range(2500)
    ]
    with_store(tmp_path, lambda store: store.add(*rows))
    assert with_store(tmp_path, lambda store: store.delete_expired(0, 2500)) == 0
    assert with_store(tmp_path, lambda store: store.delete_expired(0, 2400)) == 100
    assert with_store(tmp_path, lambda store: store.delete_expired(2490, 2400)) == 2390
    left = with_store(tmp_path, lambda store: store.page(AuditFilter(), limit=100))
    assert [row.created_at for row in left] == list(range(2499, 2489, -1))


@pytest.mark.slow
def test_amux_audit_reads_the_database_of_a_stopped_service(tmp_path: Path) -> None:
    make_token(tmp_path, "ci", "run")
    done = amux(tmp_path, "audit", "--json", "--action", "token.create")
    (row,) = json.loads(done.stdout)["data"]
    assert (row["action"], row["detail"]["name"], row["outcome"]) == ("token.create", "ci", "ok")
    shown = amux(tmp_path, "audit", "--since", "1d")
    assert "token.create" in shown.stdout
    assert amux(tmp_path, "audit", "--actor", "nobody").stderr == "no entries\n"
