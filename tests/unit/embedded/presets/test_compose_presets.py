"""Presets: every field has a rule of composition, and an agent is what its preset states."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.loop.harness import WAIT
from tests.unit.embedded.skills.worlds import write_skill

from agent_loop import (
    Behavior,
    ConfigurationError,
    ExecutionLimits,
    Hooks,
    McpServer,
    Preset,
    ScriptedProvider,
    compose_presets,
    tool,
)
from agent_loop.hooks.contexts import ToolGate
from agent_loop.providers.script import call, say

pytestmark = pytest.mark.anyio


@tool(kind="read")
def look() -> str:
    """Look."""
    return "seen"


@tool(name="look")
def look_closer() -> str:
    """Look closer."""
    return "seen closely"


@tool
def change() -> str:
    """Change."""
    return "changed"


class Named:
    """Middleware without any effect."""

    def __init__(self, name: str) -> None:
        self.name = name

    def install(self, hooks: Hooks) -> None:
        """Register nothing."""


def names(items: Any) -> list[str]:
    return [item.name for item in items]


def first(_: Any) -> None: ...
def second(_: Any) -> None: ...


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("field", "earlier", "later", "composed"),
    [
        ("name", "a", "b", "b"),
        ("name", "a", None, "a"),
        ("description", "a", "b", "b"),
        ("model", "m:a", None, "m:a"),
        ("fallbacks", ["m:a"], ["m:b"], ["m:b"]),
        ("fallbacks", ["m:a"], [], []),
        ("system_prompt", "a", "b", "b"),
        ("prompt_mode", "replace", "append", "append"),
        ("mode", "plan", "yolo", "yolo"),
        ("tool_names", ["a"], ["b"], ["b"]),
        ("skills", ["a"], ["b"], ["b"]),
        ("memory", ["a"], None, ["a"]),
        ("excluded_tools", ["a", "b"], ["b", "c"], ("a", "b", "c")),
        ("approved_tools", ["a"], ["b"], ("a", "b")),
        ("without", ["todos"], ["skills"], ("todos", "skills")),
        ("tools", [look, change], [look_closer], (look_closer, change)),
        ("aliases", {"look": "See", "change": "Edit"}, {"look": "View"}, {"look": "View", "change": "Edit"}),
        ("behavior", Behavior(top_k=1, top_p=0.5), Behavior(top_k=2), Behavior(top_k=2, top_p=0.5)),
        ("behavior", Behavior(top_k=1), Behavior(top_k=None), Behavior(top_k=None)),
        ("hooks", {"tool:gate": first}, {"tool:gate": [second], "error": first},
         {"tool:gate": (first, second), "error": (first,)}),
        ("input_filters", [first], [second], (first, second)),
        ("mcp_servers", [McpServer(name="a", command="x"), McpServer(name="b", command="x")],
         [McpServer(name="a", command="y")],
         (McpServer(name="a", command="y"), McpServer(name="b", command="x"))),
    ],
)  # fmt: skip
def test_each_field_is_composed_by_its_rule(field: str, earlier: Any, later: Any, composed: Any) -> None:
    both = compose_presets(Preset(**{field: earlier}), Preset(**{field: later}) if later is not None else Preset())
    assert getattr(both, field) == composed


def test_later_middleware_takes_the_place_of_one_with_its_name() -> None:
    one, two, other = Named("a"), Named("a"), Named("b")
    both = compose_presets(Preset(middleware=[one, other]), Preset(middleware=[two]))
    assert list(both.middleware) == [two, other]


def test_composition_of_nothing_sets_nothing() -> None:
    assert compose_presets() == Preset()


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.none() | st.sampled_from("ab"),
    "mode": st.none() | st.sampled_from(["plan", "yolo"]),
    "tool_names": st.none() | st.tuples(st.sampled_from("ab")),
    "excluded_tools": st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    "behavior": st.none() | st.builds(Behavior, top_k=st.integers(1, 3)) | st.builds(Behavior, top_p=st.just(0.5)),
    "tools": st.lists(st.sampled_from([look, look_closer, change]), max_size=1).map(tuple),
    "aliases": st.dictionaries(st.sampled_from("ab"), st.sampled_from("cd")),
    "hooks": st.dictionaries(st.sampled_from(["error", "tool:gate"]), st.tuples(st.sampled_from([first, second]))),
}
presets = st.fixed_dictionaries(VALUES).map(lambda given: Preset(**given))


@given(presets, presets, presets)
def test_composition_is_associative(one: Preset, two: Preset, three: Preset) -> None:
    assert compose_presets(compose_presets(one, two), three) == compose_presets(one, compose_presets(two, three))
    assert compose_presets(one, two, three) == compose_presets(compose_presets(one, two), three)


def test_every_field_of_a_preset_is_documented_in_compose_presets() -> None:
    documented = compose_presets.__doc__ or ""
    assert [each.name for each in fields(Preset) if f"`{each.name}`" not in documented] == []


def test_unknown_hook_is_refused_at_construction() -> None:
    with pytest.raises(ConfigurationError, match="unknown hook 'tool:gates'"):
        Preset(hooks={"tool:gates": first})


async def test_agent_has_the_configuration_of_its_preset() -> None:
    model = ScriptedProvider([call("look"), say("{{result}}")])
    fired: list[str] = []
    base = Preset(tools=[look, change], system_prompt="Be exact.", hooks={"tool:gate": lambda _: fired.append("a")})
    own = Preset(
        behavior=Behavior(temperature=0.5, limits=ExecutionLimits(max_turns=7)),
        aliases={"look": "View"},
        excluded_tools=["change"],
        hooks={"tool:gate": lambda _: fired.append("b")},
    )
    agent = compose_presets(base, own).create(model)
    with anyio.fail_after(WAIT):
        result = await agent.run("go")
    assert result.text == "seen"
    request = model.requests[0]
    assert (request.system, request.settings.temperature) == ("Be exact.", 0.5)
    assert [each.name for each in request.tools] == ["View"]
    assert fired == ["a", "b"]
    assert agent.behavior.limits.max_turns == 7


async def test_tools_that_are_not_selected_are_neither_offered_nor_run() -> None:
    model = ScriptedProvider([call("change"), say("{{result}}")])
    agent = Preset(tools=[look, change], tool_names=["look", "nothing"]).create(model)
    with anyio.fail_after(WAIT):
        result = await agent.run("go")
    assert [each.name for each in model.requests[0].tools] == ["look"]
    assert result.text == "Blocked: the tool change is not allowed here; allowed: look"


async def test_selected_tools_that_do_not_exist_are_noted() -> None:
    agent = Preset(tools=[look], tool_names=["look", "nothing"]).create(ScriptedProvider(["done"]))
    noted: list[str] = []
    with anyio.fail_after(WAIT):
        async with agent.run_stream("go") as events:
            async for event in events:
                noted += [getattr(event, "text", "")] if type(event).__name__ == "Noted" else []
    assert noted == ["tools that the agent names do not exist: nothing"]


def test_preset_without_a_model_needs_a_provider() -> None:
    with pytest.raises(ConfigurationError, match="the agent 'x' has no model"):
        Preset(name="x").create()


@pytest.mark.parametrize("mode", ["ask", "accept-edits"])
def test_mode_in_which_a_user_approves_needs_a_gate(mode: Any) -> None:
    with pytest.raises(ConfigurationError, match="a user approves calls"):
        Preset(mode=mode).create(ScriptedProvider())

    def ask(gate: ToolGate) -> None: ...

    Preset(mode=mode, hooks={"tool:gate": ask}).create(ScriptedProvider())


@pytest.mark.parametrize(
    ("given_fields", "expected"), [({}, ["skills_use", "skills_read"]), ({"without": ["skills"]}, [])]
)
async def test_skills_of_a_preset_are_those_of_its_agent(
    tmp_path: Path, given_fields: dict[str, Any], expected: list[str]
) -> None:
    write_skill(tmp_path, "owned")
    model = ScriptedProvider(["done"])
    agent = Preset(skills=[tmp_path], tools=[look], tool_names=["look"], **given_fields).create(model)
    await agent.run("go")
    assert [each.name for each in model.requests[0].tools if each.name != "look"] == expected
