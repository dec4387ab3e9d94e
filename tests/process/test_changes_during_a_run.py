"""Another model and another approval mode during a run: the embedded agent, its client and its service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.embedded_agent import Sandbox
from tests.service.serving import serving

from agent_mux import AgentMux, AgentMuxError, CapabilityError, RemoteMux, RunHandle, ValidationError
from agent_mux.run.derivation import codec_factory, derive_events
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = pytest.mark.anyio
WRITE = {"tool_calls": [{"name": "write_file", "arguments": {"path": "note.txt", "content": "x"}}]}
DONE = {"text": "Done."}
PATIENCE = 60.0


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def options(sandbox: Sandbox, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "agent": "native", "prompt": "go", "cwd": sandbox.work, "model": sandbox.script(*steps), "interactive": True,
        "env": {"AMUX_AGENT_HOME": str(sandbox.home)}, "track_changes": False, **more,
    }  # fmt: skip


@asynccontextmanager
async def running(sandbox: Sandbox, *steps: dict[str, Any], **more: Any) -> AsyncIterator[RunHandle]:
    with anyio.fail_after(PATIENCE):
        async with AgentMux(config_dir=sandbox.root / "config") as mux:
            yield mux.run(**options(sandbox, *steps, **more))


async def turn(run: Any, number: int) -> None:
    """Wait until this turn has ended."""
    async for event in run.events():
        if event.type == "turn_end" and event.turn_index == number:
            return
    raise AssertionError(f"the run ended before turn {number}")


@pytest.mark.slow
async def test_next_turn_uses_the_new_model(sandbox: Sandbox) -> None:
    async with running(sandbox, DONE, approval_mode="yolo") as run:
        await turn(run, 0)
        other = sandbox.script({"text": "I am another."})
        assert await run.set_model(other) == "applied"
        assert run.model == other
        await run.send("again")
        await turn(run, 1)
        await run.close()
        result = await run
    assert (result.text, result.model) == ("I am another.", other)


@pytest.mark.slow
async def test_model_that_the_agent_refuses_is_reported_and_the_old_one_stays(sandbox: Sandbox) -> None:
    async with running(sandbox, DONE, DONE, approval_mode="yolo", collect_events=True) as run:
        await turn(run, 0)
        await run.set_model("nonsense:model")
        await run.send("again")
        await turn(run, 1)
        await run.close()
        result = await run
    warnings = [event.message for event in result.events or () if event.type == "debug" and event.level == "warn"]
    assert any("refused set_model" in one for one in warnings), warnings
    assert result.text == "Done."


@pytest.mark.slow
async def test_mode_prompt_after_yolo_asks_and_shows_the_request(sandbox: Sandbox) -> None:
    async with running(sandbox, DONE, WRITE, DONE, approval_mode="yolo", collect_events=True) as run:
        await turn(run, 0)
        assert await run.set_approval_mode("prompt") == "applied"
        assert run.approval_mode == "prompt"
        await run.send("write")
        async for event in run.events():
            if event.type == "approval_request":
                await run.deny("no")
                break
        await turn(run, 1)
        await run.close()
        result = await run
    assert not (sandbox.work / "note.txt").exists()
    assert [event.type for event in result.events or () if event.type.startswith("approval")] == [
        "approval_request", "approval_denied",
    ]  # fmt: skip
    assert run.journal is not None
    assert [event.type for event in derive_events(Path(run.journal), codec_factory(AdapterRegistry()))] == [
        event.type for event in result.events or ()
    ]


@pytest.mark.slow
async def test_mode_yolo_after_prompt_allows_without_the_consumer(sandbox: Sandbox) -> None:
    async with running(sandbox, DONE, WRITE, DONE, approval_mode="prompt") as run:
        await turn(run, 0)
        assert await run.set_approval_mode("yolo") == "applied"
        assert await run.set_approval_mode("yolo") == "unneeded"
        await run.send("write")
        await turn(run, 1)
        await run.close()
        await run
    assert (sandbox.work / "note.txt").read_text() == "x"


@pytest.mark.slow
async def test_plan_mode_can_be_entered_and_left(sandbox: Sandbox) -> None:
    async with running(sandbox, WRITE, DONE, WRITE, DONE, approval_mode="plan") as run:
        await turn(run, 0)
        assert not (sandbox.work / "note.txt").exists()
        await run.set_approval_mode("yolo")
        await run.send("now do it")
        await turn(run, 1)
        await run.close()
        await run
    assert (sandbox.work / "note.txt").exists()


@pytest.mark.slow
async def test_invalid_changes_are_typed_errors(sandbox: Sandbox) -> None:
    async with running(sandbox, DONE, approval_mode="yolo") as run:
        await turn(run, 0)
        with pytest.raises(ValidationError, match="the name of a model"):
            await run.set_model(" ")
        with pytest.raises(ValidationError, match="yolo, prompt, deny, plan"):
            await run.set_approval_mode("maybe")  # type: ignore[arg-type]  # on purpose
        await run.close()
        await run
        with pytest.raises(AgentMuxError) as caught:
            await run.set_model("m")
        assert caught.value.code == "RUN_NOT_ACTIVE"


@pytest.mark.slow
async def test_agent_without_such_a_request_refuses_with_the_next_step(sandbox: Sandbox) -> None:
    with anyio.fail_after(PATIENCE):
        async with AgentMux(config_dir=sandbox.root / "config") as mux:
            run = mux.run(agent="replay", prompt="demo", env={"AMUX_REPLAY_SPEED": "1"}, interactive=True)
            with pytest.raises(CapabilityError, match="continue its session in another run"):
                await run.set_model("m")
            with pytest.raises(CapabilityError, match="approval mode 'plan'"):
                await run.set_approval_mode("plan")
            await run.abort()


@pytest.mark.slow
async def test_run_of_a_service_changes_in_the_same_way(sandbox: Sandbox, tmp_path: Path) -> None:
    with serving(tmp_path / "service", roots=[tmp_path]) as server:
        async with RemoteMux(server.url) as mux:
            with anyio.fail_after(PATIENCE):
                run = await mux.start(**options(sandbox, DONE, WRITE, DONE, approval_mode="prompt"))
                await turn(run, 0)
                assert await run.set_approval_mode("yolo") == "applied"
                other = sandbox.script({"text": "I am another."})
                assert await run.set_model(other) == "applied"
                await run.close()
                await run


def test_lines_of_a_program_change_the_run(sandbox: Sandbox) -> None:
    start = {"approvalMode": "yolo", "model": sandbox.script(DONE, WRITE, DONE)}
    with sandbox.controlled(**start) as agent:
        agent.send("prompt", id="1", text="go")
        agent.read_until("turn_end")
        agent.send("set_approval_mode", id="2", mode="deny")
        assert agent.read_until("response", id="2")["accepted"] is True
        agent.send("prompt", id="3", text="write")
        agent.read_until("approval_denied")
        agent.read_until("turn_end")
        agent.send("set_model", id="4", model="nonsense:model")
        assert agent.read_until("response", id="4")["accepted"] is False
        agent.end_input()
        agent.wait_for_exit()
