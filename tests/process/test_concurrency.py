"""Many runs of one client: how many work at a time, and in which order they begin."""

from pathlib import Path

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux import ValidationError

pytestmark = pytest.mark.anyio

WAITS = """
import pathlib
hear(); say(session="S"); say(text=os.environ["NAME"])
while not pathlib.Path("go").exists(): time.sleep(0.01)
say(done=True); rest()
"""


async def test_runs_wait_for_a_place_and_begin_in_order(make_client: MakeClient, tmp_path: Path) -> None:
    begun: list[str] = []
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=2) as mux:
            runs = [mux.run(prompt="hi", cwd=tmp_path, env={"NAME": f"{number}"}) for number in range(6)]
            for run in runs:
                run.on("text_delta", lambda event: begun.append(event.delta))
            async for event in runs[1]:
                if event.type == "text_delta":
                    break
            async for event in runs[0]:
                if event.type == "text_delta":
                    break
            assert [run.state for run in runs] == ["running"] * 2 + ["spawned"] * 4
            (tmp_path / "go").touch()
            results = [await run for run in runs]
    assert {result.exit_reason for result in results} == {"completed"}
    assert [result.text for result in results] == ["0", "1", "2", "3", "4", "5"]
    assert sorted(begun[:2]) == ["0", "1"]
    assert sorted(begun) == ["0", "1", "2", "3", "4", "5"]


async def test_a_run_that_waits_can_be_aborted(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            first = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "first"})
            async for event in first:
                if event.type == "text_delta":
                    break
            waiting = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "waiting"})
            last = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "last"})
            await waiting.abort()
            result = await waiting
            (tmp_path / "go").touch()
            assert (await first).exit_reason == "completed"
            assert (await last).text == "last"
    assert (result.exit_reason, result.exit_code, result.turn_count) == ("aborted", None, 0)


async def test_a_failure_frees_the_place(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client("", argv=("/does/not/exist",), max_concurrent_runs=1) as mux:
            results = [await mux.run(prompt="hi") for _ in range(3)]
    assert [result.exit_reason for result in results] == ["crashed"] * 3


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2"])
def test_a_limit_is_a_number_of_runs(make_client: MakeClient, most: object) -> None:
    with pytest.raises(ValidationError, match="max_concurrent_runs"):
        make_client("", max_concurrent_runs=most)
