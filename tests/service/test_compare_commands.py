"""`amux compare` at a service: start, watch, leave, stop."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import pexpect
import pytest
from tests.process.compared_agents import CHECK
from tests.process.test_compare_terminal import Lanes
from tests.service.comparing import comparing, ended, messages, started
from tests.service.serving import Serving

from agent_mux.cli.compare_remote import RemoteTrialRun
from agent_mux.cli.main import main
from agent_mux.events import ApprovalGrantedEvent, ApprovalRequestEvent, BaseEvent

TIMEOUT = 120.0  # seconds


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with comparing(tmp_path_factory.mktemp("commands"), "fixes", "hangs", "denied") as server:
        yield server


@pytest.mark.slow
def test_comparison_runs_at_the_service_and_its_report_is_printed_here(
    served: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "fix it", "--with", "fixes", "--with", "null", "--check", CHECK, "--yolo"]
    assert main([*words, "--server", served.url]) == 0
    printed = capfd.readouterr()
    assert "fixes-1: pass" in printed.err
    assert "selected: fixes-1" in printed.out
    (one,) = served.http.get("/v1/comparisons").json()["comparisons"]
    assert (one["id"] in printed.err, one["status"]) == (True, "ended")


def test_watched_comparison_prints_lines_of_json_and_the_report_last(
    served: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    comparison = started(served.http, "null", checks=[])
    ended(served.http, comparison)
    exit_code = main(["compare", "watch", comparison[:24], "--server", served.url, "--json"])
    *facts, report = (json.loads(line) for line in capfd.readouterr().out.splitlines())
    assert [one["fact"]["type"] for one in facts] == ["begun", "attempt_started", "trial_ended", "ended"]
    assert report["data"]["id"] == comparison
    assert report["data"]["gate"]["exitCode"] == exit_code


@pytest.mark.slow
def test_ctrl_c_leaves_the_comparison_active_and_stop_ends_it(
    served: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    comparison = started(served.http, "hangs", checks=[])
    messages(served.http, comparison, until="text_delta")
    words = [sys.executable, "-m", "agent_mux", "compare", "watch", comparison, "--server", served.url]
    with subprocess.Popen(words, stderr=subprocess.PIPE, encoding="utf-8", env={**os.environ, "TERM": "dumb"}) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if "hangs-1: started" in line:
                break
        child.send_signal(signal.SIGINT)
        _, printed = child.communicate(timeout=TIMEOUT)
    assert f"amux compare stop {comparison} --server {served.url} ends it" in printed
    assert served.http.get(f"/v1/comparisons/{comparison}").json()["status"] == "active"
    assert main(["compare", "stop", comparison, "--server", served.url]) == 0
    assert f"comparison {comparison} is over" in capfd.readouterr().err
    assert served.http.get(f"/v1/comparisons/{comparison}").json()["status"] == "interrupted"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(select, "epoll"), reason="only Linux reports a closed reader")
def test_closed_reader_ends_the_watching_and_leaves_the_comparison_active(served: Serving) -> None:
    comparison = started(served.http, "hangs", checks=[])
    messages(served.http, comparison, until="text_delta")
    words = [sys.executable, "-m", "agent_mux", "compare", "watch", comparison, "--server", served.url, "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert any(b"attempt_started" in line for line in child.stdout)  # the last fact: nothing is written afterwards
        child.stdout.close()
        child.stdout = None
        _, printed = child.communicate(timeout=TIMEOUT)
    assert (child.returncode, printed) == (141, b"")
    assert served.http.get(f"/v1/comparisons/{comparison}").json()["status"] == "active"
    assert main(["compare", "stop", comparison, "--server", served.url]) == 0


@pytest.mark.slow
def test_stopped_comparison_is_resumed_at_the_service(served: Serving, capfd: pytest.CaptureFixture[str]) -> None:
    comparison = started(served.http, "hangs", checks=[], options={"timeout": 3000, "gracePeriod": 500})
    messages(served.http, comparison, until="text_delta")
    assert main(["compare", "stop", comparison, "--server", served.url]) == 0
    at = [comparison[:24], "--server", served.url]
    assert main(["compare", "resume", *at, "--set", "model=x"]) == 2
    assert "--set cannot be combined with --server" in capfd.readouterr().err
    assert main(["compare", "resume", *at]) == 2  # no checks: nothing could be measured
    assert "hangs-1: unjudged" in capfd.readouterr().err
    assert main(["compare", "resume", *at]) == 2
    assert "start a new one" in capfd.readouterr().err


@pytest.mark.slow
def test_lanes_answer_a_request_at_the_service(served: Serving) -> None:
    comparison = started(served.http, "denied", checks=[], options={"timeout": 60_000})
    words = ["-m", "agent_mux", "compare", "watch", comparison, "--server", served.url]
    child: Any = pexpect.spawn(
        sys.executable, words, dimensions=(24, 100), env={**os.environ, "TERM": "xterm-256color"}
    )
    try:
        lanes = Lanes(child, 100)
        lanes.wait_for("denied-1", "wants: ")
        child.send("a")
        lanes.wait_for("denied-1: approved", "denied-1: unjudged")
        assert lanes.wait_for_end() == 2  # no checks: nothing could be measured
    finally:
        child.close(force=True)


REQUEST = ApprovalRequestEvent(
    run_id="r", agent="a", timestamp=1, interaction_id="i", action="rm", detail="rm x", risk_level="high"
)


def test_request_waits_until_an_event_states_the_decision() -> None:
    run = RemoteTrialRun(None, "a-1")  # type: ignore[arg-type]  # nothing is sent
    run.receive(REQUEST)
    assert [(one.id, one.type, one.description) for one in run.interaction.pending] == [("i", "approval", "rm: rm x")]
    run.receive(ApprovalGrantedEvent(run_id="r", agent="a", timestamp=2, interaction_id="i"))
    assert run.pending == ()


@pytest.mark.anyio
async def test_watched_run_shows_earlier_and_later_events_until_its_end() -> None:
    run = RemoteTrialRun(None, "a-1")  # type: ignore[arg-type]  # nothing is sent
    run.receive(REQUEST)
    later = ApprovalGrantedEvent(run_id="r", agent="a", timestamp=2, interaction_id="i")
    found: list[BaseEvent] = []

    async def read() -> None:
        async for event in run.events():
            found.append(event)

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.lowlevel.checkpoint()
            run.receive(later)
            run.end()
    assert found == [REQUEST, later]
