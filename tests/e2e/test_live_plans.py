"""The embedded agent's plans and agent files over the API: a plan is presented, decided by a user, and carried out."""

from typing import Any

import pytest
from tests.e2e.harness import LiveAgent, finish
from tests.e2e.test_live_approvals import approval, pending
from tests.e2e.ways import HEAVY

from agent_mux import Approve, PendingInteraction
from agent_mux_testing.live import Read, Say, Write
from agent_mux_testing.model_server.script import ScriptStep, ToolUse

pytestmark = pytest.mark.anyio
PLAN = "1. Write note.txt.\n2. Read it again."
PLANS: dict[str, Any] = {"approval_mode": "prompt", "native_options": {"agent": "plan"}}


def plan(text: str = PLAN) -> ScriptStep:
    """Return an answer that presents a plan."""
    return ScriptStep(blocks=(ToolUse("present_plan", {"plan": text}),))


async def test_plan_is_presented_accepted_and_built(native: LiveAgent) -> None:
    native.file("old.txt").write_text("before\n")
    native.script(
        native.answer(Read("old.txt")), plan(), native.answer(Write("note.txt", "new\n")),
        native.answer(Say("Built it.")),
    )  # fmt: skip
    async with native.running(**PLANS) as run:
        waiting = await pending(run)
        assert (approval(waiting).tool_name, approval(waiting).detail) == ("present_plan", PLAN)
        assert not native.file("note.txt").exists()
        await run.interaction.respond(waiting.id, Approve())
        change = await pending(run, 2)
        assert approval(change).tool_name == "write_file"
        await run.approve()
    done = await finish(run)
    assert (done.result.exit_reason, done.result.text) == ("completed", "Built it.")
    assert native.file("note.txt").read_text() == "new\n"
    assert native.model.received("The user accepted the plan")
    assert done.types("approval_granted", "approval_denied") == ["approval_granted", "approval_granted"]
    assert "plan mode until the user accepts your plan" in str(native.model.requests[0].body)


@HEAVY
async def test_plan_is_rejected_with_a_reason_that_reaches_the_model(native: LiveAgent) -> None:
    native.script(plan(), plan("Only read."), native.answer(Say("Nothing to build.")))
    async with native.running(**PLANS) as run:
        await pending(run)
        await run.deny("First read the tests.")
        second = await pending(run, 2)
        assert approval(second).detail == "Only read."
        await run.approve()
    done = await finish(run)
    assert (done.result.exit_reason, done.result.text) == ("completed", "Nothing to build.")
    assert native.model.received("The user rejected the plan: First read the tests.")
    assert not native.file("note.txt").exists()


@HEAVY
async def test_callback_decides_about_plans_in_plan_mode(native: LiveAgent) -> None:
    native.script(plan(), native.answer(Write("note.txt", "new\n")), native.answer(Say("Built it.")))
    shown: list[str | None] = []

    def decide(waiting: PendingInteraction) -> bool:
        shown.append(approval(waiting).tool_name)
        return True

    done = await native.run(approval_mode="plan", native_options={"agent": "plan"}, on_approval_request=decide)
    assert (done.result.text, shown) == ("Built it.", ["present_plan", "write_file"])
    assert native.file("note.txt").exists()


@HEAVY
async def test_agent_file_of_the_project_selects_tools_and_prompt(native: LiveAgent) -> None:
    native.file(".agents/agents").mkdir(parents=True)
    native.file(".agents/agents/reader.yaml").write_text(
        "description: Read and report.\nsystem_prompt: You are the reader of this house.\ntools: [read_file]\n"
    )
    native.script(native.answer(Write("note.txt", "new\n")), native.answer(Say("Only reading.")))
    done = await native.run(native_options={"agent": "reader"})
    assert done.result.text == "Only reading."
    assert not native.file("note.txt").exists()
    body = native.model.requests[0].body
    assert "You are the reader of this house." in str(body)
    assert [each["function"]["name"] for each in body["tools"]] == ["read_file"]


@HEAVY
async def test_mistake_in_an_agent_file_fails_the_run_with_file_and_line(native: LiveAgent) -> None:
    native.file("broken.yaml").write_text("description: x\nmodle: y\n")
    native.script(native.answer(Say("Never asked.")))
    done = await native.run(native_options={"agentFile": "broken.yaml"})
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert "broken.yaml:2: unknown key `modle`" in done.result.error.message
