"""Plan mode and the built-in agents: nothing changes until the user accepts a plan."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.loop.harness import WAIT

from agent_loop import (
    BUILD_AGENT,
    DEFAULT_PERSIST_EXCLUDE_TOOLS,
    PLAN_AGENT,
    Agent,
    Behavior,
    Preset,
    ScriptedProvider,
    SubAgentTool,
    ToolContext,
    compose_presets,
    default_tools,
    tool,
)
from agent_loop.errors import ToolError
from agent_loop.messages import ToolMessage
from agent_loop.providers.script import Step, call, say
from agent_loop.tools.builtin.plan import REVISE, ask_about_plan

pytestmark = pytest.mark.anyio
PLAN = "1. Write the file."
changes: list[str] = []


@tool
def change() -> str:
    """Change."""
    changes.append("changed")
    return "changed"


@tool(kind="read")
def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture(autouse=True)
def no_changes() -> None:
    changes.clear()


class User:
    """A user who answers questions with these answers, in order."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, question: str, options: tuple[str, ...]) -> str:
        self.asked.append((question, options))
        if not self.answers:
            raise ToolError("no user is available")
        return self.answers.pop(0)


def planner(*steps: Any, user: User, **preset: Any) -> Agent:
    own = Preset(tools=[look, change, *preset.pop("tools", ())], **preset)
    return compose_presets(PLAN_AGENT, own).create(ScriptedProvider(list(steps)), ask=user)


async def run(agent: Agent, prompt: str = "go") -> list[ToolMessage]:
    """Run the agent and return the results of its tools."""
    with anyio.fail_after(WAIT):
        result = await agent.run(prompt)
    return [message for message in result.messages if isinstance(message, ToolMessage)]


async def test_calls_that_change_something_are_blocked_until_the_plan_is_accepted() -> None:
    user = User("accept")
    agent = planner(
        call("look"), call("change"), call("present_plan", plan=PLAN), call("change"), say("Done."), user=user
    )
    read, blocked, accepted, changed = await run(agent)
    assert (read.text, changed.text, changes) == ("seen", "changed", ["changed"])
    assert "plan mode allows only tools that read" in blocked.text
    assert "The user accepted the plan" in accepted.text
    assert user.asked == [(f"{PLAN}\n\nCarry out this plan?", ("accept", "reject"))]


async def test_reason_of_a_rejection_reaches_the_model_and_plan_mode_continues() -> None:
    agent = planner(
        call("present_plan", plan=PLAN), call("change"), say("As you like."), user=User("First read the tests.")
    )
    rejected, blocked = await run(agent)
    assert rejected.is_error
    assert rejected.text == f"The user rejected the plan: First read the tests.\n\n{REVISE}"
    assert blocked.is_error
    assert changes == []


async def test_rejected_plan_can_be_revised_and_accepted() -> None:
    steps = (call("present_plan", plan=PLAN), call("present_plan", plan="2"), call("change"), say("Done."))
    agent = planner(*steps, user=User("reject", " Accept "))
    rejected, accepted, changed = await run(agent)
    assert (rejected.is_error, accepted.is_error, changed.text) == (True, False, "changed")
    assert rejected.text.startswith("The user rejected the plan.\n")


async def test_without_a_user_nothing_is_accepted() -> None:
    agent = planner(call("present_plan", plan=PLAN), call("change"), say("The plan."), user=User())
    results = await run(agent)
    assert [result.is_error for result in results] == [True, True]
    assert changes == []


async def test_call_behind_the_plan_in_one_answer_waits_for_the_decision() -> None:
    both = Step(tool_calls=(*call("present_plan", plan=PLAN).tool_calls, *call("change").tool_calls))
    agent = planner(both, say("Done."), user=User("accept"))
    await run(agent)
    assert changes == ["changed"]


async def test_accepted_plan_holds_in_later_runs_and_not_after_a_branch_from_before() -> None:
    steps = (call("present_plan", plan=PLAN), say("Done."), call("change"), say("Done."), call("change"), say("Done."))
    agent = planner(*steps, user=User("accept"))
    await run(agent)
    await run(agent, "and now")
    assert changes == ["changed"]
    with anyio.fail_after(WAIT):
        await agent.continue_run("branch", at=1)
    assert changes == ["changed"]


async def test_plan_mode_blocks_calls_of_sub_agents_and_they_present_no_plans() -> None:
    child = [Step(tool_calls=call("change").tool_calls, task="count"), Step(text="no", task="count")]
    main = [
        Step(tool_calls=call("delegate", task="count").tool_calls, task="go"),
        Step(tool_calls=call("present_plan", plan=PLAN).tool_calls, task="go"),
        Step(tool_calls=call("delegate", task="count").tool_calls, task="go"),
        Step(text="Done.", task="go"),
    ]
    again = [Step(tool_calls=call("change").tool_calls, task="count"), Step(text="yes", task="count")]
    model = ScriptedProvider([*child, *again, *main])
    preset = compose_presets(PLAN_AGENT, Preset(tools=[look, change, SubAgentTool()]))
    agent = preset.create(model, ask=User("accept"))
    results = await run(agent)
    assert [result.text for result in results if result.name == "delegate"] == ["no", "yes"]
    assert changes == ["changed"]
    offered = [{each.name for each in request.tools} for request in model.requests]
    assert [names for names in offered if "delegate" not in names and "present_plan" in names] == []


async def test_preset_with_a_selection_of_tools_still_presents_plans() -> None:
    user = User("accept")
    agent = planner(call("present_plan", plan=PLAN), call("change"), say("Done."), user=user, tool_names=["look"])
    accepted, refused = await run(agent)
    assert (accepted.is_error, refused.is_error, changes) == (False, True, [])
    assert refused.text.endswith("allowed: look, present_plan")


async def test_question_of_the_tool_needs_a_user() -> None:
    with pytest.raises(ToolError, match="no user is available"):
        await ask_about_plan(PLAN, ToolContext(call_id="c", tool_name="present_plan"))


async def test_results_of_excluded_tools_stay_in_the_context_of_the_built_in_agents(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "long").write_text("line\n" * 400)
    stored = Preset(
        tools=default_tools(), behavior=Behavior(persist_threshold=200, persist_dir=str(tmp_path / "results"))
    )
    steps = [call("read_file", path="long"), call("grep", pattern="line"), say("Done.")]
    for preset in (BUILD_AGENT, PLAN_AGENT):
        agent = compose_presets(preset, stored).create(ScriptedProvider(list(steps)), workspace=tmp_path / "work")
        read, found = await run(agent)
        assert read.text.count("line") >= 400
        assert "<persisted-output" in found.text
    assert {"read_file", "present_plan"} <= DEFAULT_PERSIST_EXCLUDE_TOOLS
