"""`compare_agents` of `amux mcp-server`: another agent compares agents, within the limits of the server."""

from pathlib import Path
from typing import Any

import pytest
from tests.process.compared_agents import BODIES, CHECK, git, make_repository, state_of
from tests.process.installed_command import Installed
from tests.process.mcp_client import ASKS, WORKS, Delegator, Refusal, delegator, wait_until_gone

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    found = Installed(tmp_path)
    make_repository(found.home / "project")
    return found


async def watched(tool: Delegator, answer: Any) -> Any:
    while answer["status"] == "active" and not any(trial.get("pending") for trial in answer["trials"]):
        answer = await tool("watch_comparison", comparisonId=answer["comparisonId"])
    return answer


@pytest.mark.slow
async def test_agents_are_compared_and_judged(installed: Installed) -> None:
    repository = installed.home / "project"
    before = state_of(repository)
    async with delegator(installed, "--root", repository, "--approvals", "yolo", body=BODIES["fixes"]) as tool:
        started = await tool(
            "compare_agents", prompt="fix it", candidates=["scripted"], checks=[CHECK], trials=2, waitMs=0
        )
        seen = await watched(tool, started)
        assert seen["status"] == "ended"
        assert [(one["trial"], one["verdict"], one["checks"]) for one in seen["trials"]] == [
            ("scripted-1", "pass", "1/1"),
            ("scripted-2", "pass", "1/1"),
        ]
        assert seen["selected"] in {"scripted-1", "scripted-2"}  # the faster one
        assert "scripted" in seen["table"]
        assert state_of(repository) == before
        git(repository, "apply", seen["trials"][0]["patch"])
        result = await tool("get_result", runId=seen["trials"][0]["runId"])
        assert result["result"]["exitReason"] == "completed"
        listed = await tool("list_runs")
        assert {one["runId"] for one in listed["runs"]} == {one["runId"] for one in seen["trials"]}
        assert listed["limits"]["runsLeft"] == 48


@pytest.mark.slow
async def test_request_of_a_trial_is_answered(installed: Installed) -> None:
    async with delegator(installed, "--root", installed.home / "project", "--approvals", "prompt", body=ASKS) as tool:
        seen = await watched(tool, await tool("compare_agents", prompt="x", candidates=["scripted"]))
        [trial] = seen["trials"]
        assert trial["pending"] == 1
        await tool("answer", runId=trial["runId"], decision="deny")
        seen = await watched(tool, await tool("watch_comparison"))
        assert (seen["status"], seen["trials"][0]["verdict"]) == ("ended", "unjudged")


@pytest.mark.slow
async def test_limits_of_the_server_hold_for_comparisons(installed: Installed) -> None:
    flags = ("--root", installed.home / "project", "--max-runs-total", 3, "--agent", "scripted")
    async with delegator(installed, *flags, body=WORKS) as tool:
        for arguments, words in (
            ({"candidates": ["scripted"], "checks": ["true"]}, "without approval"),
            ({"candidates": ["scripted"], "trials": 4}, "4 runs are more than the 3 that are left"),
            ({"candidates": ["scripted"], "cwd": ".."}, "allowed: a directory in"),
            ({"candidates": ["replay"]}, "may not start 'replay'"),
            ({"candidates": ["oracle:/etc/passwd"]}, "oracle"),
            ({"candidates": ["scripted"], "approvalMode": "yolo"}, "does not allow approval mode"),
            ({"candidates": []}, "length >= 1"),
        ):
            with pytest.raises(Refusal, match=words):
                await tool("compare_agents", prompt="x", **arguments)
        with pytest.raises(Refusal, match="compare_agents starts one"):
            await tool("watch_comparison")
        seen = await tool("compare_agents", prompt="x", candidates=["scripted"], trials=2, waitMs=0)
        assert (await tool("list_runs"))["limits"]["runsLeft"] == 1
        stopped = await watched(tool, await tool("watch_comparison", comparisonId=seen["comparisonId"], stop=True))
        assert stopped["status"] == "interrupted"


@pytest.mark.slow
async def test_recordings_outside_of_the_roots_are_refused(installed: Installed) -> None:
    async with delegator(installed, "--root", installed.home / "project") as tool:
        with pytest.raises(Refusal, match="prompt"):
            await tool("compare_agents", prompt="/etc/passwd", candidates=["replay"])


@pytest.mark.slow
async def test_comparison_takes_its_places_until_its_end(installed: Installed) -> None:
    async with delegator(installed, "--root", installed.home / "project", "--max-runs", 1, body=WORKS) as tool:
        seen = await tool("compare_agents", prompt="x", candidates=["scripted"], trials=2, waitMs=0)
        assert (await tool("list_runs"))["limits"]["placesFree"] == 0
        with pytest.raises(Refusal, match="the maximum of 1 active runs is reached"):
            await tool.start()
        await watched(tool, await tool("watch_comparison", comparisonId=seen["comparisonId"], stop=True))
        assert (await tool("list_runs"))["limits"]["placesFree"] == 1


@pytest.mark.slow
async def test_disconnect_ends_the_runs_of_a_comparison(installed: Installed) -> None:
    async with delegator(installed, "--root", installed.home / "project", body=WORKS) as tool:
        seen = await tool("compare_agents", prompt="x", candidates=["scripted"], waitMs=0)
        while not (runs := (await tool("list_runs"))["runs"]) or runs[0]["state"] != "running":
            seen = await tool("watch_comparison", waitMs=200)
        run_id = seen["trials"][0].get("runId", runs[0]["runId"])
    await wait_until_gone(run_id)
