"""Plans of the embedded agent over the API of agent-mux: a user or a callback accepts or rejects them."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.embedded_agent import Sandbox
from tests.process.test_amux_agent_agents import PLAN, WRITE, call

from agent_mux import AgentMux, ApprovalDetail, PendingInteraction, RunHandle

pytestmark = pytest.mark.anyio
WAIT = 90.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    monkeypatch.setenv("AMUX_AGENT_HOME", str(sandbox.home))
    return sandbox


def options(sandbox: Sandbox, *steps: dict[str, Any], **given: Any) -> dict[str, Any]:
    native = {"native_options": {"agent": "plan"}, "approval_mode": "prompt"}
    return {"agent": "native", "prompt": "go", "model": sandbox.script(*steps), "cwd": sandbox.work, **native, **given}


async def approval(run: RunHandle) -> ApprovalDetail:
    """Wait for the next approval request that a user must answer, and return its detail."""
    async for event in run:
        waiting = run.interaction.pending if event.type == "approval_request" else ()
        if waiting:  # a call that plan mode denies is no question
            assert isinstance(waiting[0].detail, ApprovalDetail)
            return waiting[0].detail
    raise AssertionError("the run ended without an approval request")


async def test_user_accepts_a_plan_which_is_then_built(sandbox: Sandbox) -> None:
    steps = (WRITE, call("present_plan", plan=PLAN), WRITE, {"text": "Built it."})
    with anyio.fail_after(WAIT):
        async with AgentMux() as mux:
            run = mux.run(**options(sandbox, *steps))
            plan = await approval(run)
            assert (plan.tool_name, plan.detail) == ("present_plan", PLAN)
            assert not (sandbox.work / "made").exists()
            await run.approve()
            assert (await approval(run)).tool_name == "write_file"
            await run.approve()
            result = await run
    assert (result.exit_reason, result.text) == ("completed", "Built it.")
    assert (sandbox.work / "made").read_text() == "x"


async def test_reason_of_a_user_who_rejects_a_plan_reaches_the_model(sandbox: Sandbox) -> None:
    steps = (call("present_plan", plan=PLAN), {"text": "The model got: {{result}}"})
    with anyio.fail_after(WAIT):
        async with AgentMux() as mux:
            run = mux.run(**options(sandbox, *steps))
            await approval(run)
            await run.deny("First read the tests.")
            result = await run
    assert result.text.startswith("The model got: The user rejected the plan: First read the tests.")


async def test_callback_decides_about_a_plan_in_approval_mode_plan(sandbox: Sandbox) -> None:
    shown: list[str | None] = []

    def decide(request: PendingInteraction) -> bool:
        assert isinstance(request.detail, ApprovalDetail)
        shown.append(request.detail.tool_name)
        return True

    steps = (call("present_plan", plan=PLAN), WRITE, {"text": "Built it."})
    with anyio.fail_after(WAIT):
        async with AgentMux() as mux:
            result = await mux.run(**options(sandbox, *steps, approval_mode="plan", on_approval_request=decide))
    assert (result.text, shown) == ("Built it.", ["present_plan", "write_file"])
    assert (sandbox.work / "made").exists()
