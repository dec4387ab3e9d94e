"""The tools that active skills allow, also to sub-agents, and skills of sub-agents."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.embedded.fake_provider import FakeTool
from tests.unit.embedded.loop.harness import agent, streamed
from tests.unit.embedded.skills.worlds import SkillWorld, called, result_texts, use, write_skill

from agent_loop import ScriptedProvider, ShellTool
from agent_loop.events import SubAgentEvent
from agent_loop.hooks.contexts import ToolGate
from agent_loop.providers.script import Step, call, say
from agent_loop.skills.allowed import is_allowed
from agent_loop.subagents import LoopRunner, SubAgentTool


def gate(name: str, command: str | None = None, wire_name: str = "") -> ToolGate:
    tool: Any = ShellTool() if command is not None else FakeTool(name)
    return ToolGate(
        call_id="1",
        name=name,
        wire_name=wire_name,
        tool=tool,
        arguments={} if command is None else {"command": command},
    )


@pytest.mark.parametrize(
    ("entry", "context", "allowed"),
    [
        ("read_file", gate("read_file"), True),
        ("Read", gate("read_file"), True),
        ("READ", gate("read_file"), True),
        ("Read", gate("grep"), False),
        ("Grep", gate("grep"), True),
        ("Edit", gate("apply_patch"), True),
        ("Write", gate("edit"), False),
        ("Bash", gate("shell", "rm x"), True),
        ("Bash(*)", gate("shell", "rm x"), True),
        ("mcp__time__convert", gate("time__convert"), True),
        ("time__convert", gate("time__convert"), True),
        ("look", gate("find", wire_name="look"), True),
        ("Read(docs/*)", gate("read_file"), False),
        ("Bash(git:*)", gate("shell", "git status -s"), True),
        ("Bash(git:*)", gate("shell", "git"), True),
        ("Bash(git:*)", gate("shell", "gitx status"), False),
        ("Bash(git add:*)", gate("shell", "git push"), False),
        ("Bash(git add:*)", gate("shell", "git  add 'a b'"), True),
        ("Bash(npm test)", gate("shell", "npm test"), True),
        ("Bash(npm test)", gate("shell", "npm test --watch"), False),
        ("Bash(git:*)", gate("shell", "git 'open"), False),
        ("Bash(:*)", gate("shell", "rm x"), False),
        ("(x)", gate("shell", "x"), False),
        *(
            ("Bash(git:*)", gate("shell", f"git status{more}"), False)
            for more in ("; rm x", "&& rm x", " | sh", " $(rm x)", " `rm x`", "\nrm x", " > x", " *", " {a,b}", " \\")
        ),
        ("Bash(git:*)", gate("shell", "GIT_SSH=evil git fetch"), False),
    ],
)
def test_entries_are_names_in_any_case_and_patterns_of_single_commands(
    entry: str, context: ToolGate, allowed: bool
) -> None:
    assert is_allowed(context, [entry]) is allowed


@pytest.mark.anyio
async def test_active_skills_allow_the_union_of_their_tools_and_those_of_skills(tmp_path: Path) -> None:
    write_skill(tmp_path, "reader", allowed_tools="look")
    write_skill(tmp_path, "writer", allowed_tools="change")
    write_skill(tmp_path, "free")
    tools = tuple(FakeTool(name) for name in ("look", "change", "other"))
    world = SkillWorld(tmp_path, tools=tools)
    order = [
        called("other", "1"), use("free", "2"), called("other", "3"), use("reader", "4"), called("look", "5"),
        called("change", "6"), use("writer", "7"), called("change", "8"), called("other", "9"),
        called("skills_read", "10", name="free", path="SKILL.md"), called("unknown", "11"),
    ]  # fmt: skip
    texts = await world.results(*order)
    assert [texts[index] for index in (0, 2, 4, 7)] == ["ok"] * 4
    assert texts[5] == "Blocked: the tool change is not allowed while the skill reader is active; allowed: look"
    assert texts[8].startswith("Blocked: the tool other is not allowed while the skill reader, writer is active")
    assert "Follow me." in texts[9]
    assert texts[10].startswith("Blocked: the tool unknown")
    assert await world.results(called("other", "12")) == ["ok"]  # the next run


@pytest.mark.anyio
async def test_empty_list_allows_the_tools_of_skills_only_and_nobody_is_asked_about_a_forbidden_call(
    tmp_path: Path,
) -> None:
    write_skill(tmp_path, "none", allowed_tools="[]")
    asked: list[bool] = []
    world = SkillWorld(tmp_path, tools=(FakeTool("look"),))
    world.agent.hooks.on("tool:gate", lambda context: asked.append(context.block))
    _, blocked = await world.results(use("none", "1"), called("look", "2"))
    assert blocked.endswith("allowed: none")
    assert asked == [False, True]


def delegating(*child: Step) -> ScriptedProvider:
    inside = [msgspec.structs.replace(step, task="count") for step in child]
    main = [
        Step(tool_calls=call("skills_use", name="strict").tool_calls, task="go"),
        Step(tool_calls=call("delegate", task="count").tool_calls, task="go"),
        say("{{result}}", task="go"),
    ]
    return ScriptedProvider([*inside, *main])


@pytest.mark.anyio
async def test_sub_agent_has_the_skills_with_its_own_active_ones_within_what_the_skill_of_its_parent_allows(
    tmp_path: Path,
) -> None:
    write_skill(tmp_path, "strict", allowed_tools="delegate look")
    write_skill(tmp_path, "other")
    model = delegating(call("other"), call("look"), call("skills_use", name="other"), say("counted"))
    tools = (FakeTool("look"), FakeTool("other"), SubAgentTool())
    one = agent(model, *tools, skills=[tmp_path])
    received, result = await streamed(one)
    assert result.text == "counted"
    inner = [event.event for event in received if isinstance(event, SubAgentEvent)]
    other, look, used = result_texts(inner)
    assert other.startswith("Blocked: the tool other is not allowed while the skill strict is active")
    assert look == "ok"
    assert "Follow me." in used
    first = next(request for request in model.requests if request.messages[0].text == "count")
    assert [tool.name for tool in first.tools] == ["look", "other", "skills_use", "skills_read", "skills_run_script"]
    assert "<name>strict</name>" in first.system
    assert "These skills are active" not in first.system


@pytest.mark.anyio
@pytest.mark.parametrize(("tools", "has_skills"), [(["look"], False), (["look", "skills_use"], True)])
async def test_sub_agent_with_chosen_tools_has_skills_if_they_are_among_them(
    tmp_path: Path, tools: list[str], has_skills: bool
) -> None:
    write_skill(tmp_path, "strict")
    model = delegating(say("counted"))
    one = agent(model, FakeTool("look"), SubAgentTool(runner=LoopRunner(tools=tools)), skills=[tmp_path])
    await streamed(one)
    first = next(request for request in model.requests if request.messages[0].text == "count")
    assert ("skills_use" in [tool.name for tool in first.tools]) is has_skills
