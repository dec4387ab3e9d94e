"""A service that is killed with SIGKILL, or stopped, leaves a comparison that can be resumed."""

import os
import time
from pathlib import Path

import httpx
import pytest
from tests.process.compared_agents import BODIES, make_repository
from tests.service.comparing import comparing, ended, messages, started, verdicts
from tests.service.serving import PATIENCE
from tests.service.standalone import standalone

CANDIDATES = ({"kind": "null", "trials": 2}, "scripted")
SHOWS_PID = "read(); emit(text=str(os.getpid()))\nwhile True: time.sleep(1)"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_killed_service_leaves_an_interrupted_comparison_that_is_resumed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project")
    with standalone(tmp_path / "config", SHOWS_PID, repository) as (url, process):
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            comparison = started(http, *CANDIDATES, jobs=1, seed=3)
            before = messages(http, comparison, until="text_delta")
        process.kill()
        process.wait(PATIENCE)
    assert gone(int(before[-1][1]["event"]["delta"]))
    with (
        standalone(tmp_path / "config", BODIES["fixes"], repository) as (url, process),
        httpx.Client(base_url=url, timeout=PATIENCE) as http,
    ):
        view = http.get(f"/v1/comparisons/{comparison}").json()
        assert view["status"] == "interrupted"
        stored = messages(http, comparison)
        assert stored[: len(before)] == before
        assert messages(http, comparison, after=before[-1][0]) == stored[len(before) :]
        assert http.post(f"/v1/comparisons/{comparison}/resume", json={}).status_code == 200
        view = ended(http, comparison)
        assert view["status"] == "ended"
        assert verdicts(view) == {"null-1": "fail", "null-2": "fail", "scripted-1": "pass"}
        (trial,) = [one for one in view["report"]["trials"] if one["id"] == "scripted-1"]
        assert [attempt["endedAt"] is None for attempt in trial["attempts"]] == [True, False]
        whole = messages(http, comparison)
        assert whole[: len(stored)] == stored
        assert messages(http, comparison, after=stored[-1][0]) == whole[len(stored) :]


@pytest.mark.slow
def test_stopped_service_ends_the_comparison_and_its_stream(tmp_path: Path) -> None:
    with comparing(tmp_path, "hangs") as served:
        comparison = started(served.http, "hangs")
        before = messages(served.http, comparison, until="text_delta")
    with comparing(tmp_path, "hangs") as served:
        assert served.http.get(f"/v1/comparisons/{comparison}").json()["status"] == "interrupted"
        after = messages(served.http, comparison)
        assert after[: len(before)] == before
        assert after[-1][1]["fact"] == {**after[-1][1]["fact"], "type": "ended", "status": "interrupted"}


@pytest.mark.slow
def test_draining_service_refuses_new_comparisons_and_lets_active_ones_end(tmp_path: Path) -> None:
    with comparing(tmp_path, "works-slowly", drain=PATIENCE) as served:
        comparison = started(served.http, "works-slowly")
        served.server.should_exit = True
        deadline = time.monotonic() + PATIENCE
        while served.http.get("/ready").status_code == 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        refused = served.http.post("/v1/comparisons", json={"prompt": "x", "candidates": ["null"]})
        assert (refused.status_code, refused.json()["code"]) == (503, "UNAVAILABLE")
    with comparing(tmp_path) as served:
        view = served.http.get(f"/v1/comparisons/{comparison}").json()
        assert (view["status"], verdicts(view)) == ("ended", {"works-slowly-1": "pass"})
