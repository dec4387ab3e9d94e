"""Webhooks from the sides of their creator and their receiver, over real sockets."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.receiver import PATIENCE, Receiver, receiving
from tests.service.serving import Serving, serving
from tests.service.test_runs_api import demo
from tests.service.test_websocket import TALKER, agents, started

from agent_mux import BlockingRemoteMux, webhooks
from agent_mux.errors import AgentMuxError
from agent_mux.service.webhooks.manager import MAX_WEBHOOKS


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.service.webhooks.delivery.DELAYS", (0.0,) * 7)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, allow_private_webhooks=True) as server:
        yield server


def made(served: Serving, receiver: Receiver, **fields: Any) -> dict[str, Any]:
    answer = served.http.post("/v1/webhooks", json={"url": receiver.url, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def deliveries(served: Serving, webhook: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    path = f"/v1/webhooks/{webhook['webhookId']}/deliveries"
    return list(served.http.get(path, params=query).raise_for_status().json()["deliveries"])


def until_state(served: Serving, webhook: dict[str, Any], state: str, count: int = 1) -> list[dict[str, Any]]:
    Receiver.wait(lambda: len(deliveries(served, webhook, state=state)) >= count)
    return deliveries(served, webhook, state=state)


# -- messages


@pytest.mark.slow
def test_messages_are_sent_when_a_run_starts_and_ends(served: Serving, receiver: Receiver) -> None:
    webhook = made(served, receiver)
    run = demo(served, tags=["review"])
    told = [message.told(webhook["secret"]) for message in receiver.wait_for(2)]
    by_type = {one["type"]: one for one in told}
    assert set(by_type) == {"run.started", "run.ended"}
    assert all(one["data"]["run"]["runId"] == run["runId"] for one in told)
    end = by_type["run.ended"]
    assert (end["data"]["run"]["exitReason"], end["data"]["run"]["tags"]) == ("completed", ["review"])
    assert end["timestamp"].endswith("Z")
    assert "request" not in end["data"]["run"]
    assert {message.headers["content-type"] for message in receiver.messages} == {"application/json"}
    shown = until_state(served, webhook, "delivered", 2)
    assert {one["deliveryId"] for one in shown} == {message.id for message in receiver.messages}
    assert all((one["attempts"], one["lastStatus"], one["runId"]) == (1, 204, run["runId"]) for one in shown)


@pytest.mark.slow
def test_messages_are_sent_for_interactions_that_need_a_person(tmp_path: Path, receiver: Receiver) -> None:
    body = TALKER.replace("emit(done=True)", 'emit(question="which?"); read(); emit(done=True)', 1)
    with serving(tmp_path, agents(body), allow_private_webhooks=True) as served:
        wanted = ["run.approval_request", "run.input_required"]
        webhook = made(served, receiver, events=wanted)
        run_id = started(served, prompt="x")
        asked = receiver.wait_for(1)[0].told(webhook["secret"])
        assert asked["type"] == "run.input_required"
        assert asked["data"]["interaction"]["detail"]["question"] == "which?"
        answer = {"interactionId": asked["data"]["interaction"]["id"], "text": "this"}
        served.http.post(f"/v1/runs/{run_id}/respond", json=answer).raise_for_status()
        served.http.post(f"/v1/runs/{run_id}/input", json={"text": "ask"}).raise_for_status()
        approval = receiver.wait_for(2)[1].told(webhook["secret"])
        assert approval["type"] == "run.approval_request"
        assert approval["data"]["run"]["pending"] == [approval["data"]["interaction"]]
        served.http.post(f"/v1/runs/{run_id}/abort").raise_for_status()
        yolo = started(served, prompt="x", approvalMode="deny")
        served.http.post(f"/v1/runs/{yolo}/input", json={"text": "ask"}).raise_for_status()
        served.http.post(f"/v1/runs/{yolo}/abort").raise_for_status()
        assert len(receiver.messages) == 2  # what is denied by the mode needs nobody


@pytest.mark.slow
def test_diff_of_an_edit_is_in_the_run_and_in_the_message(tmp_path: Path, receiver: Receiver) -> None:
    edit = {"path": "a.txt", "old_string": "x", "new_string": "y"}
    body = f"read(); emit(session='S'); emit(edit={edit!r}); read(); emit(done=True); drain()"
    with serving(tmp_path, agents(body), allow_private_webhooks=True) as served:
        webhook = made(served, receiver, events=["run.approval_request"])
        run_id = started(served, prompt="x")
        (shown,) = receiver.wait_for(1)[0].told(webhook["secret"])["data"]["run"]["pending"]
        assert shown["detail"]["toolInput"] == edit
        assert shown["detail"]["diff"].endswith("-x\n+y\n")
        assert served.http.get(f"/v1/runs/{run_id}").json()["pending"] == [shown]
        served.http.post(f"/v1/runs/{run_id}/abort").raise_for_status()


@pytest.mark.slow
def test_condition_of_fail_on_is_in_listings_and_in_the_message(tmp_path: Path, receiver: Receiver) -> None:
    body = "read(); emit(session='S'); emit(text='done'); emit(done=True); drain()"
    with serving(tmp_path, agents(body), allow_private_webhooks=True) as served:
        webhook = made(served, receiver, events=["run.ended"])
        run = {"agent": "scripted", "prompt": "x", "failOn": ["no_change", "denied"]}
        run_id = served.http.post("/v1/runs", json=run).json()["runId"]
        told = receiver.wait_for(1)[0].told(webhook["secret"])["data"]["run"]
        assert (told["exitReason"], told["failedOn"]) == ("completed", ["no_change"])
        (listed,) = served.http.get("/v1/runs").json()["runs"]
        assert listed["failedOn"] == ["no_change"]
        client = BlockingRemoteMux(served.url)
        (summary,) = client.runs.list()
        assert (summary.failed_on, client.runs.get(run_id).failed_on) == (("no_change",), ("no_change",))
    with serving(tmp_path, agents(body)) as served:
        assert served.http.get(f"/v1/runs/{run_id}").json()["failedOn"] == ["no_change"]


@pytest.mark.slow
def test_who_wants_less_gets_less(served: Serving, receiver: Receiver) -> None:
    made(served, receiver, tags=["a", "b"], events=["run.ended"])
    made(served, receiver, agents=["claude"])
    last = made(served, receiver, events=["run.ended"], agents=["replay"])
    demo(served, tags=["a"])
    until_state(served, last, "delivered")
    demo(served, tags=["b", "a", "c"])
    until_state(served, last, "delivered", 2)
    receiver.wait_for(3)
    assert sorted(len(deliveries(served, one)) for one in served.http.get("/v1/webhooks").json()) == [
        0,
        1,
        2,
    ]


def test_a_test_message_is_delivered(served: Serving, receiver: Receiver) -> None:
    webhook = made(served, receiver, events=["run.ended"])
    answer = served.http.post(f"/v1/webhooks/{webhook['webhookId']}/test")
    assert answer.status_code == 202
    (message,) = receiver.wait_for(1)
    assert message.id == answer.json()["deliveryId"]
    told = message.told(webhook["secret"])
    assert (told["type"], told["data"]) == ("webhook.test", {"webhookId": webhook["webhookId"]})


# -- again


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_what_fails_is_tried_again_with_the_same_id(served: Serving, receiver: Receiver) -> None:
    receiver.statuses = [500, 302, 404]
    receiver.headers = {"location": f"{receiver.url}/elsewhere"}
    webhook = made(served, receiver, events=["run.ended"])
    demo(served)
    messages = receiver.wait_for(4)
    assert len({message.id for message in messages}) == 1
    assert {message.path for message in messages} == {"/hook"}  # redirects are not followed
    assert len({message.body for message in messages}) == 1
    (delivery,) = until_state(served, webhook, "delivered")
    assert (delivery["attempts"], delivery["lastStatus"], "lastError" in delivery) == (4, 204, False)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_after_eight_attempts_it_is_given_up(served: Serving, receiver: Receiver) -> None:
    receiver.statuses = [500] * 20
    webhook = made(served, receiver, events=["run.ended"])
    demo(served)
    (delivery,) = until_state(served, webhook, "failed")
    assert (delivery["attempts"], delivery["lastStatus"], len(receiver.messages)) == (8, 500, 8)
    counted = served.http.get("/metrics").text
    assert 'agent_mux_webhook_attempts_total{outcome="retry"} 7.0' in counted
    assert 'agent_mux_webhook_attempts_total{outcome="given_up"} 1.0' in counted


@pytest.mark.slow
def test_a_receiver_that_answers_410_gets_no_further_messages(served: Serving, receiver: Receiver) -> None:
    receiver.statuses = [410]
    webhook = made(served, receiver)
    path = f"/v1/webhooks/{webhook['webhookId']}"
    demo(served)
    Receiver.wait(lambda: not served.http.get(path).json()["enabled"])
    assert "410" in served.http.get(path).json()["disabledReason"]
    Receiver.wait(lambda: not deliveries(served, webhook, state="pending"))
    run_id = demo(served)["runId"]
    Receiver.wait(lambda: "endedAt" in served.http.get(f"/v1/runs/{run_id}").json())
    assert served.http.post(f"{path}/test").status_code == 409
    again = served.http.patch(path, json={"enabled": True}).json()
    assert (again["enabled"], "disabledReason" in again) == (True, False)
    served.http.post(f"{path}/test")
    Receiver.wait(lambda: len(deliveries(served, webhook, state="delivered")) >= 1)
    assert run_id not in [message.get("runId") for message in deliveries(served, webhook)]


@pytest.mark.slow
def test_a_slow_receiver_delays_no_other(served: Serving, receiver: Receiver) -> None:
    free = threading.Event()

    def slow() -> int:
        free.wait(PATIENCE)
        return 200

    with receiving() as other:
        other.statuses = [slow] * 100
        made(served, other)
        quick = made(served, receiver)
        for _ in range(6):
            demo(served)
        until_state(served, quick, "delivered", 12)
        assert len(other.messages) == 4  # attempts at a time
        free.set()
        other.wait_for(12)


@pytest.mark.slow
def test_what_was_not_delivered_is_not_lost_by_a_stop(tmp_path: Path, receiver: Receiver) -> None:
    with serving(tmp_path, agents(TALKER), allow_private_webhooks=True) as served:
        webhook = made(served, receiver, events=["run.ended"])
        run_id = started(served)
        Receiver.wait(lambda: served.http.get(f"/v1/runs/{run_id}").json()["state"] == "running")
    with serving(tmp_path, agents(TALKER), allow_private_webhooks=True) as served:
        until_state(served, webhook, "delivered")
    assert {message.told(webhook["secret"])["data"]["run"]["exitReason"] for message in receiver.messages} == {
        "aborted"
    }
    assert len({message.id for message in receiver.messages}) == 1


SERVER = """
import sys
from pathlib import Path
from agent_mux.service.application import make_application
from agent_mux.service.server import HttpServer
from agent_mux.service.settings import ServiceSettings
settings = ServiceSettings(config_dir=Path(sys.argv[1]), port=0, allow_private_webhooks=True)
server = HttpServer(make_application(settings), settings)
import threading
threading.Thread(target=lambda: (server.started_event.wait(), print(server.url, flush=True))).start()
server.run()
"""


@pytest.mark.slow
def test_a_killed_server_delivers_every_message_at_least_once(tmp_path: Path, receiver: Receiver) -> None:
    free = threading.Event()
    receiver.statuses = [lambda: 200 if free.wait(PATIENCE) else 500] * 2  # the first attempts never end
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        with httpx.Client(base_url=process.stdout.readline().strip(), timeout=PATIENCE) as http:
            secret = http.post("/v1/webhooks", json={"url": receiver.url}).json()["secret"]
            ids = [http.post("/v1/runs", json={"agent": "replay", "prompt": "demo"}).json()["runId"] for _ in range(2)]
            receiver.wait_for(2)  # both have started, and nobody has heard of it for sure
        process.send_signal(signal.SIGKILL)
    free.set()
    with serving(tmp_path, allow_private_webhooks=True):
        receiver.wait_for(6)
    told = [(message.id, message.told(secret)) for message in receiver.messages]
    kinds = {(one["type"], one["data"]["run"]["runId"], one["data"]["run"].get("exitReason")) for _, one in told}
    assert kinds == {("run.started", id_, None) for id_ in ids} | {("run.ended", id_, "lost") for id_ in ids}
    assert len({id_ for id_, _ in told}) == 4


# -- secrets


def test_the_secret_is_shown_once_and_kept_from_others(served: Serving, receiver: Receiver, tmp_path: Path) -> None:
    webhook = made(served, receiver)
    path = f"/v1/webhooks/{webhook['webhookId']}"
    served.http.post(f"{path}/test")
    until_state(served, webhook, "delivered")
    for where in ("/v1/webhooks", path, f"{path}/deliveries"):
        assert webhook["secret"] not in served.http.get(where).text
        assert "secret" not in served.http.get(where).text
    assert stat.S_IMODE((tmp_path / "service" / "service.db").stat().st_mode) == 0o600


def test_while_a_secret_is_changed_both_are_good(served: Serving, receiver: Receiver) -> None:
    given = webhooks.new_secret()
    webhook = made(served, receiver, secret=given)
    assert webhook["secret"] == given
    path = f"/v1/webhooks/{webhook['webhookId']}"
    new = served.http.post(f"{path}/secret").json()
    assert new["secret"] != given
    assert new["previousSecretUntil"] > time.time() * 1000 + 23 * 3600 * 1000
    served.http.post(f"{path}/test")
    message = receiver.wait_for(1)[0]
    assert message.told(given) == message.told(new["secret"])
    newest = served.http.post(f"{path}/secret", json={"overlap": 0}).json()["secret"]
    served.http.post(f"{path}/test")
    message = receiver.wait_for(2)[1]
    assert message.told(newest)
    with pytest.raises(AgentMuxError):
        message.told(new["secret"])


# -- what cannot be


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "(body)"),
        ({"url": "ftp://a.example/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://user:password@a.example/"}, "url"),
        ({"url": "http://a.example/#x"}, "url"),
        ({"url": "http://a.example:99999/"}, "url"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "url"),
        ({"url": "https://a.example/" + "x" * 3000}, "url"),
        ({"url": "https://a.example/", "events": []}, "events"),
        ({"url": "https://a.example/", "events": ["run.nonsense"]}, "events"),
        ({"url": "https://a.example/", "agents": ["nobody"]}, "agents"),
        ({"url": "https://a.example/", "tags": [""]}, "tags"),
        ({"url": "https://a.example/", "description": "x" * 501}, "description"),
        ({"url": "https://a.example/", "description": "\x00"}, "description"),
        ({"url": "https://a.example/", "secret": "whsec_short"}, "secret"),
        ({"url": "https://a.example/", "nonsense": 1}, "(body)"),
        ({"url": 1}, "(body)"),
    ],
)
def test_an_invalid_webhook_is_a_problem(served: Serving, told: Any, field: str) -> None:
    answer = served.http.post("/v1/webhooks", json=told)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR")
    assert [one["path"] for one in answer.json()["fields"]] == [field]
    assert "whsec_short" not in answer.text
    assert served.http.get("/v1/webhooks").json() == []


@pytest.mark.slow
def test_private_addresses_are_refused_unless_allowed(tmp_path: Path, receiver: Receiver) -> None:
    with serving(tmp_path) as served:
        refused = served.http.post("/v1/webhooks", json={"url": receiver.url})
        assert refused.json()["fields"][0]["path"] == "url"
        named = receiver.url.replace("127.0.0.1", "localhost")  # known when it is looked up
        webhook = served.http.post("/v1/webhooks", json={"url": named}).json()
        served.http.post(f"/v1/webhooks/{webhook['webhookId']}/test")
        Receiver.wait(lambda: deliveries(served, webhook)[0]["attempts"] == 1)
        assert "private" in deliveries(served, webhook)[0]["lastError"]
        assert 'agent_mux_webhook_attempts_total{outcome="refused"} 1.0' in served.http.get("/metrics").text
    assert receiver.messages == []


def test_webhooks_are_changed_and_forgotten(served: Serving, receiver: Receiver) -> None:
    webhook = made(served, receiver, description="mine")
    path = f"/v1/webhooks/{webhook['webhookId']}"
    changed = served.http.patch(path, json={"tags": ["x"], "events": ["run.ended"], "description": "yours"}).json()
    assert (changed["tags"], changed["events"], changed["description"]) == (["x"], ["run.ended"], "yours")
    assert served.http.patch(path, json={"url": "nonsense"}).status_code == 422
    assert served.http.get(path).json() == changed
    assert served.http.delete(path).status_code == 204
    for method, where in [("GET", path), ("DELETE", path), ("PATCH", path), ("POST", f"{path}/test"),
                          ("POST", f"{path}/secret"), ("GET", f"{path}/deliveries")]:  # fmt: skip
        answer = served.http.request(method, where)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.slow
def test_there_are_only_so_many(served: Serving, receiver: Receiver) -> None:
    for _ in range(MAX_WEBHOOKS):
        made(served, receiver)
    assert served.http.post("/v1/webhooks", json={"url": receiver.url}).json()["code"] == "LIMIT_EXCEEDED"


def test_pages_of_deliveries_have_every_one_once(served: Serving, receiver: Receiver) -> None:
    webhook = made(served, receiver)
    path = f"/v1/webhooks/{webhook['webhookId']}"
    sent = {served.http.post(f"{path}/test").json()["deliveryId"] for _ in range(7)}
    found: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        page = served.http.get(f"{path}/deliveries", params=query).json()
        found += [one["deliveryId"] for one in page["deliveries"]]
        if "next" not in page:
            break
        query["cursor"] = page["next"]
    assert sorted(found) == sorted(sent)
    for nonsense in ("x", b64encode(b"1" * 30 + b".msg").decode(), b64encode(b"1.\x00").decode()):
        assert served.http.get(f"{path}/deliveries", params={"cursor": nonsense}).status_code == 422
