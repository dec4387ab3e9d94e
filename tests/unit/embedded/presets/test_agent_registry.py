"""The registry of agents, changes of their hooks, and presets as sub-agents."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.loop.harness import WAIT
from tests.unit.embedded.presets.test_compose_presets import Named, change, look
from tests.unit.embedded.skills.worlds import write_skill

from agent_loop import (
    BUILD_AGENT,
    PLAN_AGENT,
    Agent,
    AgentRegistry,
    Behavior,
    ConfigurationError,
    HookOverrides,
    Preset,
    ScriptedProvider,
    SubAgentTool,
    ToolMessage,
    tool,
)
from agent_loop.events import LoopEvent, SubAgentStart
from agent_loop.hooks.contexts import ToolGate
from agent_loop.providers.script import Step, call, fail, say
from agent_loop.tools.toolset import ToolLike

pytestmark = pytest.mark.anyio


@tool(kind="read")
def search() -> str:
    """Search."""
    return "found"


def test_built_in_agents_are_registered() -> None:
    registry = AgentRegistry()
    assert [registry.get("build"), registry.get("plan")] == [BUILD_AGENT, PLAN_AGENT]
    assert [preset.name for preset in registry] == ["build", "plan"]


def test_unknown_name_is_an_error_with_the_names() -> None:
    with pytest.raises(ConfigurationError, match="no agent is named 'x'; use one of build, plan"):
        AgentRegistry().get("x")


def test_name_is_required_and_unique() -> None:
    registry = AgentRegistry([Preset(name="a", model="scripted:demo")])
    with pytest.raises(ConfigurationError, match="needs a name"):
        registry.add(Preset())
    with pytest.raises(ConfigurationError, match="'a' is registered already"):
        registry.add(Preset(name="a"))
    registry.add(Preset(name="a", description="new"), replaces=True)
    assert registry.get("a").description == "new"


def test_user_has_one_agent_of_a_preset_until_it_is_discarded() -> None:
    registry = AgentRegistry([Preset(name="a")])
    made = [registry.instance("a", user, ScriptedProvider()) for user in ("ada", "bob", "ada")]
    assert made[0] is made[2]
    assert made[0] is not made[1]
    registry.discard("a", "ada")
    assert registry.instance("a", "ada", ScriptedProvider()) is not made[0]
    assert registry.instance("a", "bob", ScriptedProvider()) is made[1]


async def fired_by(agent: Agent) -> None:
    with anyio.fail_after(WAIT):
        await agent.run("go")


async def test_overrides_remove_and_add_hooks_of_one_agent_only() -> None:
    fired: list[str] = []

    def handler(name: str) -> Any:
        return lambda _: fired.append(name)

    registry = AgentRegistry([
        Preset(name="a", hooks={"agent:before": handler("before"), "agent:done": handler("done")})
    ])  # fmt: skip
    changed = HookOverrides(remove=["agent:before"], hooks={"agent:done": handler("own")})
    await fired_by(registry.create("a", ScriptedProvider(["x"]), overrides=changed))
    assert fired == ["done", "own"]
    fired.clear()
    await fired_by(registry.create("a", ScriptedProvider(["x"])))
    assert fired == ["before", "done"]


def test_overrides_remove_and_replace_middleware() -> None:
    kept, gone, old, new = Named("kept"), Named("gone"), Named("changed"), Named("changed")
    preset = HookOverrides(remove=["gone", "skills"], middleware=[new]).apply(
        Preset(middleware=[kept, gone, old], skills=["somewhere"])
    )
    assert list(preset.middleware) == [kept, new]
    assert preset.all_middleware() == [kept, new]


def test_overrides_of_a_name_that_is_not_there_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"no hook or middleware todo; it has error, memory, mine, .*todos"):
        HookOverrides(remove=["todo"]).apply(Preset(hooks={"error": print}, middleware=[Named("mine")]))


# -- sub-agents


def delegating(
    *child: Any, agent: str | None = "searcher", registry: AgentRegistry, skills: Any = None, **given: Any
) -> tuple[Agent, Any]:
    """Return an agent that delegates "count" to `agent`, and its model."""
    named = {} if agent is None else {"agent": agent}
    main = [Step(tool_calls=call("delegate", task="count", **named).tool_calls, task="go"), say("{{result}}")]
    inside = [Step(tool_calls=one.tool_calls, text=one.text, task="count") for one in child]
    model = ScriptedProvider([*inside, *main])
    tools: list[ToolLike] = [look, change, SubAgentTool(kinds=registry.sub_agents(**given))]
    return Agent(model, tools=tools, system_prompt="You lead.", skills=skills), model


async def run(agent: Agent) -> tuple[list[LoopEvent], str]:
    received: list[LoopEvent] = []
    with anyio.fail_after(WAIT):
        async with agent.run_stream("go") as events:
            received += [event async for event in events]
    return received, next(message.text for message in agent.messages if isinstance(message, ToolMessage))


def registry_of(**fields: Any) -> AgentRegistry:
    registry = AgentRegistry()
    registry.add(Preset(name="searcher", description="Search  for\nthings.", **fields))
    registry.add(Preset(name="secret"))
    return registry


async def test_delegate_names_the_agents_that_have_a_description() -> None:
    agent, model = delegating(say("three"), registry=registry_of())
    await run(agent)
    schema = next(each.parameters for each in model.requests[0].tools if each.name == "delegate")
    assert schema["properties"]["agent"]["enum"] == ["searcher"]
    assert schema["properties"]["agent"]["description"].endswith("\n- searcher: Search for things.")
    assert schema["required"] == ["task"]


async def test_sub_agent_is_what_its_preset_states() -> None:
    gates: list[str] = []
    registry = registry_of(
        system_prompt="You search.",
        tools=[search],
        tool_names=["look", "search"],
        behavior=Behavior(temperature=0.5),
        hooks={"tool:gate": lambda gate: gates.append(gate.name)},
    )
    agent, model = delegating(call("search"), call("change"), say("three"), registry=registry)
    received, report = await run(agent)
    assert report == "three"
    request = model.requests[1]
    assert request.system == "You lead.\n\nYou search."
    assert request.settings.temperature == 0.5
    assert [each.name for each in request.tools] == ["look", "search"]
    assert gates[0] == "search"
    assert [event.name for event in received if isinstance(event, SubAgentStart)] == ["searcher"]
    assert not any("changed" in str(message) for message in model.requests[3].messages)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["parents"]),
        ({"skills": ["own"]}, ["owned"]),
        ({"skills": ["own"], "tool_names": ["look"]}, ["owned"]),
        ({"skills": ["own"], "without": ["skills"]}, []),
        ({"without": ["skills"]}, []),
    ],
)
async def test_sub_agent_has_the_skills_of_its_preset_or_else_those_of_its_parent(
    tmp_path: Path, fields: dict[str, Any], expected: list[str]
) -> None:
    for place, name in (("own", "owned"), ("parent", "parents")):
        write_skill(tmp_path / place, name)
    if "skills" in fields:
        fields = fields | {"skills": [tmp_path / "own"]}
    agent, model = delegating(say("three"), registry=registry_of(**fields), skills=[tmp_path / "parent"])
    await run(agent)
    request = model.requests[1]
    assert re.findall("<name>(.*)</name>", request.system) == expected
    assert ("skills_use" in [each.name for each in request.tools]) == bool(expected)


async def test_sub_agent_can_have_its_own_prompt_and_model() -> None:
    own = ScriptedProvider(["by another"])
    registry = registry_of(system_prompt="You search.", prompt_mode="replace", model="other:model")
    named: list[str] = []

    def provider_of(name: str) -> ScriptedProvider:
        named.append(name)
        return own

    agent, _ = delegating(registry=registry, provider_of=provider_of)
    _, report = await run(agent)
    assert (report, named, own.requests[0].system) == ("by another", ["other:model"], "You search.")


async def test_fallback_of_a_sub_agent_answers_when_its_model_fails() -> None:
    models = {"a:1": ScriptedProvider([fail("auth")]), "b:2": ScriptedProvider(["from b"])}
    registry = registry_of(model="a:1", fallbacks=["b:2"])
    agent, _ = delegating(registry=registry, provider_of=models.__getitem__)
    _, report = await run(agent)
    assert report == "from b"


async def test_model_of_a_sub_agent_that_cannot_be_used_is_an_error_for_the_parent_only() -> None:
    agent, _ = delegating(registry=registry_of(model="nothing:x"))
    _, report = await run(agent)
    assert "unknown provider 'nothing'" in report


async def test_sub_agent_in_plan_mode_only_reads() -> None:
    agent, model = delegating(call("change"), call("look"), say("three"), registry=registry_of(mode="plan"))
    await run(agent)
    results = [message for message in model.requests[3].messages if isinstance(message, ToolMessage)]
    assert [(result.is_error, "only reads" in result.text) for result in results] == [(True, True), (False, False)]
    assert "present_plan" not in [each.name for each in model.requests[1].tools]


async def test_gates_of_the_parent_decide_about_a_named_sub_agent() -> None:
    agent, model = delegating(call("change"), say("three"), registry=registry_of())

    def refuse(gate: ToolGate) -> None:
        if gate.depth:
            gate.block, gate.reason = True, "not in a sub-agent"

    agent.hooks.on("tool:gate", refuse)
    await run(agent)
    assert "not in a sub-agent" in str(model.requests[2].messages)


async def test_task_without_a_name_goes_to_a_sub_agent_like_the_parent() -> None:
    agent, model = delegating(say("three"), agent=None, registry=registry_of(system_prompt="You search."))
    received, report = await run(agent)
    assert (report, model.requests[1].system) == ("three", "You lead.")
    assert [event.name for event in received if isinstance(event, SubAgentStart)] == ["delegate"]
