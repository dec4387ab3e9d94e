"""Handoffs of the embedded agent: another agent continues the conversation, also after a kill and a resume."""

import os
import signal
from typing import Any

import pytest
from tests.e2e.harness import LiveAgent, finish
from tests.e2e.native_scenes import raw
from tests.e2e.ways import TWO_WAY

from agent_mux_testing.live import Say, Shell, Write
from agent_mux_testing.model_server.script import ScriptStep, ToolUse

pytestmark = pytest.mark.anyio
AGENTS = {
    "triage": "system_prompt: You are the triage.\nhandoffs: [repairer]\n",
    "repairer": "description: Repairs things.\nsystem_prompt: You are the repairer.\nhandoffs: [triage]\n",
}
PATIENCE = 300
"""Seconds of what a kill ends."""
TRIAGE: dict[str, Any] = {"native_options": {"agent": "triage"}}


@pytest.fixture
def native(native: LiveAgent) -> LiveAgent:
    directory = native.file(".agents/agents")
    directory.mkdir(parents=True)
    for name, text in AGENTS.items():
        (directory / f"{name}.yaml").write_text(text)
    return native


def transfer(name: str) -> ScriptStep:
    """Return an answer that hands the conversation off."""
    return raw(ToolUse("transfer_to_agent", {"agent": name, "message": "This one is yours."}))


def speakers(native: LiveAgent) -> list[str]:
    """Return the agent of each model call, by its system prompt."""
    bodies = [str(request.body) for request in native.model.requests]
    return [next(name for name in AGENTS if f"You are the {name}." in body) for body in bodies]


@pytest.mark.parametrize("way", [{}, TWO_WAY], ids=["one_shot", "two_way"])
async def test_target_continues_the_conversation_and_hands_it_back(native: LiveAgent, way: dict[str, Any]) -> None:
    native.script(
        transfer("repairer"), native.answer(Write("repaired.txt", "new\n")), transfer("triage"),
        native.answer(Say("All well again.")),
    )  # fmt: skip
    done = await native.run(**TRIAGE, **way)
    assert (done.result.exit_reason, done.result.text) == ("completed", "All well again.")
    assert native.file("repaired.txt").read_text() == "new\n"
    assert speakers(native) == ["triage", "repairer", "repairer", "triage"]
    assert len(done.types("session_start")) == 1


@pytest.mark.parametrize("moment", ["at_the_first_call_of_the_target", "in_a_tool_of_the_target"])
async def test_session_that_was_killed_is_resumed_by_the_agent_that_had_it(native: LiveAgent, moment: str) -> None:
    """A killed target keeps the conversation: the first call of the resumed session is its own."""
    late = native.answer(Say("Never read."), pre_delay=PATIENCE)
    work = native.answer(Shell(f"touch started; sleep {PATIENCE}"))
    native.script(transfer("repairer"), work if moment == "in_a_tool_of_the_target" else late)
    async with native.running(**TRIAGE) as run:
        if moment == "in_a_tool_of_the_target":
            await native.wait_for_file("started")
        else:
            await native.model.wait_for_requests(2)
        os.kill(native.leader(run.run_id), signal.SIGKILL)
    killed = await finish(run)
    assert killed.result.exit_reason == "killed"
    assert native.processes() == []

    native.script(native.answer(Say("Still mine.")))
    last = await native.run("Are you there?", session_id=killed.result.session_id, **TRIAGE)
    assert (last.result.exit_reason, last.result.text) == ("completed", "Still mine.")
    assert speakers(native) == ["repairer"]
    assert native.model.received("This one is yours.")
