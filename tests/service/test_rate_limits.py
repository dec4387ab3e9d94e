"""Rate limits over HTTP and WebSockets, and the options that set them."""

import json
from pathlib import Path

import httpx
import pytest
from tests.service.commanding import PATIENCE, amux, serve
from tests.service.keys import bearing, with_keyring
from tests.service.serving import serving
from websockets.sync.client import connect

from agent_mux import RemoteMux
from agent_mux.errors import AgentMuxError
from agent_mux.service.security.tokens import RateLimits

DEMO = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}


def make(directory: Path, name: str, limits: RateLimits) -> str:
    return str(with_keyring(directory, lambda keyring: keyring.create(name, ["run"], limits=limits)))


def test_requests_beyond_the_limit_are_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    limited, free = make(tmp_path, "limited", RateLimits(requests=2)), make(tmp_path, "free", RateLimits())
    with serving(tmp_path) as served:
        answers = [served.http.get("/v1/runs", headers=bearing(limited)) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[0].headers["ratelimit-policy"] == '"requests";q=2;w=60'
        assert answers[0].headers["ratelimit"].startswith('"requests";r=1;t=')
        refused = answers[2]
        assert refused.headers["content-type"] == "application/problem+json"
        assert (refused.json()["code"], refused.json()["recoverable"]) == ("LIMIT_EXCEEDED", True)
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        assert refused.headers["ratelimit-remaining"] == "0"
        other = served.http.get("/v1/runs", headers=bearing(free))
        assert (other.status_code, "ratelimit" in other.headers) == (200, False)
        assert served.http.get("/health", headers=bearing(limited)).status_code == 200
        with pytest.raises(AgentMuxError, match="2 requests per minute") as caught:
            RemoteMux(served.url, token=limited).runs.list()
        assert (caught.value.code, caught.value.recoverable) == ("LIMIT_EXCEEDED", True)


def test_only_runs_that_start_count_as_run_starts(tmp_path: Path) -> None:
    token = make(tmp_path, "ci", RateLimits(runs=1))
    with serving(tmp_path) as served:

        def post(body: object, key: str) -> httpx.Response:
            return served.http.post("/v1/runs", json=body, headers={**bearing(token), "idempotency-key": key})

        assert post({**DEMO, "agent": "nobody"}, "a").status_code == 404
        first = post(DEMO, "b")
        assert first.status_code == 201
        assert '"runs";r=0;t=60' in first.headers["ratelimit"]
        assert post(DEMO, "b").status_code == 200, "a repeated request starts nothing"
        refused = post(DEMO, "c")
        assert (refused.status_code, refused.json()["code"]) == (429, "LIMIT_EXCEEDED")
        assert len(served.http.get("/v1/runs", headers=bearing(token)).json()["runs"]) == 1


def test_commands_of_a_websocket_count_as_requests(tmp_path: Path) -> None:
    token = make(tmp_path, "ci", RateLimits(requests=3))
    with serving(tmp_path) as served:
        body = {**DEMO, "env": {"AMUX_REPLAY_SPEED": "0.1"}}
        run_id = served.http.post("/v1/runs", json=body, headers=bearing(token)).json()["runId"]
        url = f"{served.url.replace('http', 'ws')}/v1/runs/{run_id}/ws?types="
        with connect(url, additional_headers=bearing(token), open_timeout=PATIENCE) as websocket:
            answers = []
            for kind in ("status", "status", "abort"):
                websocket.send(json.dumps({"type": kind}))
                answers.append(json.loads(websocket.recv(PATIENCE)))
            assert json.loads(list(websocket)[-1])["exitReason"] == "aborted"
    assert [answer["type"] for answer in answers] == ["ack", "command_error", "ack"]
    assert answers[1]["error"]["code"] == "LIMIT_EXCEEDED"


@pytest.mark.slow
def test_options_of_the_server_and_of_a_token(tmp_path: Path) -> None:
    words = ("tokens", "create", "own", "--scope", "run", "--requests-per-minute", "3", "--runs-per-minute", "0")
    own = amux(tmp_path, *words).stdout.strip()
    other = amux(tmp_path, "tokens", "create", "other", "--scope", "run").stdout.strip()
    rows = {row["name"]: row for row in json.loads(amux(tmp_path, "tokens", "list", "--json").stdout)["data"]}
    assert (rows["own"]["requestsPerMinute"], rows["own"]["runsPerMinute"]) == (3, 0)
    assert "requestsPerMinute" not in rows["other"]
    options = ("--requests-per-minute", "7", "--runs-per-minute", "5")
    with serve(tmp_path, *options) as served, httpx.Client(base_url=served.url, timeout=PATIENCE) as http:
        for token, policy in ((own, '"requests";q=3;w=60'), (other, '"requests";q=7;w=60')):
            assert http.get("/v1/runs", headers=bearing(token)).headers["ratelimit-policy"] == policy
        started = http.post("/v1/runs", json=DEMO, headers=bearing(other))
        assert started.headers["ratelimit-policy"] == '"requests";q=7;w=60, "runs";q=5;w=60'
