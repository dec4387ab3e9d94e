"""What `Agent` accepts: names of models, functions as tools, types as output, dependencies; blocking runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop import Agent, Behavior, ConfigurationError, ExecutionLimits, ScriptedProvider, ToolContext, Workspace
from agent_loop.events import Final, OutputProduced
from agent_loop.messages import ToolCall, ToolMessage, user
from agent_loop.tools.function import FunctionTool

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int

    @field_validator("people")
    @classmethod
    def check(cls, value: int) -> int:
        if value < 0:
            raise ValueError("nobody")
        return value


@dataclass
class Point:
    x: int
    y: int


async def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def output_of(value: Any, call_id: str = "o1") -> Any:
    return reply("", ToolCall(call_id, "__output__", value))


# -- models


def test_name_of_a_model_is_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"steps": [{"text": "Hello."}]}')
    assert isinstance(Agent(f"scripted:{script}").provider, ScriptedProvider)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-made-up")
    assert (one := Agent("anthropic:claude-haiku-4-5")).provider.id == "anthropic"
    assert one.provider.model == "claude-haiku-4-5"


@pytest.mark.parametrize("wrong", [None, 3, FakeProvider, object(), "nobody:x", "claude"])
def test_anything_else_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="provider"):
        Agent(wrong)


# -- tools


async def test_function_is_a_tool_without_a_decorator() -> None:
    one = agent(FakeProvider(reply("", calls("word_count", text="a b c")), reply("ok")), word_count)
    assert isinstance(one.tools[0], FunctionTool)
    _, result = await streamed(one)
    assert [message.text for message in result.messages if isinstance(message, ToolMessage)] == ["3"]


async def test_hook_may_add_a_function_as_a_tool() -> None:
    model = FakeProvider(reply("", calls("word_count", text="a b")), reply("ok"))
    _, result = await streamed(agent(model, hooks={"agent:before": lambda context: context.tools.append(word_count)}))
    assert [message.text for message in result.messages if isinstance(message, ToolMessage)] == ["2"]


def untyped(text):  # type: ignore[no-untyped-def]  # the point of the test
    """Count."""
    return text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("shell", "is not a tool"), (FakeTool, "pass an instance"), (lambda: "", "no name"), (untyped, "has no type")],
)
def test_wrong_tools_are_refused_at_once(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Agent(FakeProvider(), tools=[wrong])


# -- outputs


@pytest.mark.parametrize(
    ("kind", "plain", "value"),
    [
        (City, {"name": "Ulm", "people": 3}, City(name="Ulm", people=3)),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
    ],
)
async def test_type_is_an_output_schema_and_the_output_is_its_instance(kind: Any, plain: Any, value: Any) -> None:
    one = agent(FakeProvider(reply("It is."), output_of(plain)), behavior=Behavior(output_schema=kind))
    events, result = await streamed(one)
    assert result.output == value
    assert [event.value for event in events if isinstance(event, OutputProduced)] == [plain]
    assert [event.output for event in events if isinstance(event, Final)] == [plain]


async def test_list_of_a_type_is_an_output_schema() -> None:
    one = agent(
        FakeProvider(reply("They are."), output_of({"value": [{"x": 1, "y": 2}]})),
        behavior=Behavior(output_schema=list[Point]),
    )
    assert (await streamed(one))[1].output == [Point(1, 2)]


async def test_answer_that_a_validator_rejects_is_requested_again() -> None:
    model = FakeProvider(
        reply('{"name": "Ulm", "people": -1}'),
        output_of({"name": "Ulm", "people": -2}),
        output_of({"name": "Ulm", "people": 5}, "o2"),
    )
    _, result = await streamed(agent(model, behavior=Behavior(output_schema=City)))
    assert result.output == City(name="Ulm", people=5)
    assert "people: Value error, nobody" in model.requests[-1].messages[-1].text  # type: ignore[union-attr]


async def test_type_reaches_the_provider_as_a_json_schema() -> None:
    model = FakeProvider(reply('{"name": "Ulm", "people": 5}'), structured_output=True)
    _, result = await streamed(agent(model, behavior=Behavior(output_schema=City)))
    assert result.output == City(name="Ulm", people=5)
    assert (model.requests[0].output_schema or {})["required"] == ["name", "people"]


class Opaque:
    pass


@pytest.mark.parametrize("wrong", [Opaque, 3, "city", [City]])
def test_wrong_output_schemas_are_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="output_schema"):
        Agent(FakeProvider(), behavior=Behavior(output_schema=wrong))


# -- dependencies


@dataclass
class Database:
    name: str


def which(context: ToolContext[Database]) -> str:
    """Return the name of the database."""
    return context.deps.name


async def test_tools_get_the_dependencies_of_the_agent_or_of_the_run() -> None:
    one = agent(FakeProvider(), which, deps=Database("own"))
    answers = [answer for number in "123" for answer in (reply("", calls("which", number)), reply("ok"))]
    one.provider = FakeProvider(*answers)
    texts = []
    for known in ({}, {"deps": Database("test")}, {}):
        _, result = await streamed(one, **known)
        texts += [message.text for message in result.messages if isinstance(message, ToolMessage)]
    assert texts == ["own", "test", "own"]
    assert one.tools[0].parameters["properties"] == {}


# -- runs


def test_run_sync_blocks_until_the_run_has_ended() -> None:
    one = Agent(FakeProvider(reply("one"), reply("two")))
    assert (one.run_sync("go").text, one.run_sync("on").text) == ("one", "two")
    assert len(one.messages) == 4


async def test_run_sync_is_refused_inside_of_an_event_loop() -> None:
    with pytest.raises(ConfigurationError, match=r"await agent\.run"):
        Agent(FakeProvider(reply("one"))).run_sync("go")


def test_run_sync_closes_the_connections_of_its_event_loop() -> None:
    closed: list[bool] = []

    class Closable(FakeProvider):
        async def aclose(self) -> None:
            closed.append(True)

    Agent(Closable(reply("one"))).run_sync("go")
    assert closed == [True]


async def test_continue_run_takes_a_prompt() -> None:
    one = agent(FakeProvider(reply("one"), reply("two"), reply("three")))
    await one.run("go")
    result = await one.continue_run(prompt="and then?")
    assert (result.text, one.messages[-2].text) == ("two", "and then?")  # type: ignore[union-attr]
    assert (await one.continue_run("branch", at=2, prompt=[user("or?")])).text == "three"
    assert len(one.messages) == 4


def test_directory_is_a_workspace(tmp_path: Path) -> None:
    for given in (tmp_path, str(tmp_path), Workspace(tmp_path)):
        workspace = Agent(FakeProvider(), workspace=given).workspace
        assert workspace is not None
        assert workspace.root == tmp_path.resolve()


# -- wrong types


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"behavior": {"max_tokens": 3}}, r"behavior must be a Behavior\(...\)"),
        ({"behavior": Behavior(limits=ExecutionLimits(max_turns=-1))}, "limits.max_turns must be None or a number"),
        ({"hooks": {"tool:gate": True}}, "the handler of 'tool:gate' must be a function"),
        ({"middleware": [3]}, "3 is not middleware"),
        ({"workspace": 3}, "workspace must be a directory"),
        ({"mcp_servers": ["time"]}, "'time' is not an MCP server"),
        ({"skills": [3]}, r"inline\[0\] must be Skill\(...\) or a text or a path, not 3"),
    ],
)
def test_options_of_wrong_types_are_refused_at_once(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Agent(FakeProvider(), **option)


async def test_prompt_in_place_of_the_way_to_continue_is_refused() -> None:
    one = agent(FakeProvider(reply("ok")))
    await one.run("go")
    wrong: Any = "and now"
    with pytest.raises(ConfigurationError, match=r"'and now' is not a way to continue: .* a text is prompt="):
        await one.continue_run(wrong)
