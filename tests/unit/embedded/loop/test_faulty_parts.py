"""Invalid results of tools, hooks, filters and callers become errors for the model; sessions stay loadable."""

import asyncio
import copy
import sys
import threading
from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent, streamed

from agent_loop.behavior import Behavior, ToolBudget
from agent_loop.errors import ConfigurationError, MessageError, ProviderError
from agent_loop.events import HookFailed
from agent_loop.hooks import Hooks
from agent_loop.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from agent_loop.providers import ModelResponse
from agent_loop.sessions import MemorySessionStore, resume
from agent_loop.tools.tool import ToolResult

pytestmark = pytest.mark.anyio


class Unwritable:
    """An object whose `__str__` raises."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def nested(depth: int = 100_000) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


RESULTS = {
    "text for content": ToolResult("text"),  # type: ignore[arg-type]
    "number for text": ToolResult((Text(7),)),  # type: ignore[arg-type]
    "strings for blocks": ToolResult(("text",)),  # type: ignore[arg-type]
    "nothing for content": ToolResult(None),  # type: ignore[arg-type]
    "text for is_error": ToolResult((Text("x"),), is_error="no"),  # type: ignore[arg-type]
    "text for effects": ToolResult((Text("x"),), effects=("wrote",)),  # type: ignore[arg-type]
    "nothing": None,
    "a number": 7,
}


async def answered(one: Any, store: MemorySessionStore) -> ToolMessage:
    _, result = await streamed(one)
    assert (result.status, result.text) == ("completed", "ok")
    assert (await resume(store, one.session.session_id)).history() == list(one.messages)
    return next(message for message in result.messages if isinstance(message, ToolMessage))


@pytest.mark.parametrize("returned", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("way", ["tool", "wrapper", "gate", "transform", "error"])
async def test_invalid_result_is_an_error_for_the_model(way: str, returned: Any) -> None:
    hooks, does = Hooks(), lambda: "fine"
    match way:
        case "tool":
            does = lambda: returned  # noqa: E731
        case "wrapper":

            async def wrap(_call: Any, _run: Any) -> Any:
                return returned

            hooks.wrap_tool_call(wrap)
        case "gate":
            hooks.on("tool:gate", lambda received: setattr(received, "result", returned))
        case "transform":
            hooks.on("tool:transform", lambda received: setattr(received, "result", returned))
        case "error":
            does = lambda: 1 / 0  # noqa: E731
            hooks.on("tool:error", lambda received: setattr(received, "result", returned))
    store = MemorySessionStore()
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look", does), hooks=hooks, store=store)
    message = await answered(one, store)
    if way == "gate" and returned is None:
        assert not message.is_error
    else:
        assert message.is_error
        assert message.text.startswith("Error: ")


@pytest.mark.parametrize("details", [nested(), Unwritable(), {"a": Unwritable()}, "\ud800", {1: {2}}])
async def test_details_that_cannot_be_stored_do_not_spoil_the_session(details: Any) -> None:
    store = MemorySessionStore()
    look = FakeTool("look", lambda: ToolResult((Text("fine"),), details=details))
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), look, store=store)
    assert (await answered(one, store)).text == "fine"


@pytest.mark.parametrize("error", [SystemExit(3), Unwritable])
@pytest.mark.parametrize("count", [1, 2])
async def test_tool_that_exits_or_raises_without_message_is_an_error_result(error: Any, count: int) -> None:
    def leave() -> str:
        if isinstance(error, SystemExit):
            sys.exit(3)

        class Mute(Exception):  # noqa: N818
            __str__ = Unwritable.__str__

        raise Mute

    wanted = [calls("leave", str(number)) for number in range(count)]
    store = MemorySessionStore()
    one = agent(FakeProvider(reply("", *wanted), reply("ok")), FakeTool("leave", leave), store=store)
    assert (await answered(one, store)).is_error


async def test_run_is_cancelled_while_prior_content_blocks() -> None:
    started, released = threading.Event(), threading.Event()

    def block(_arguments: Any, _context: Any) -> str:
        started.set()
        released.wait(WAIT)
        return ""

    one = agent(
        FakeProvider(reply("", calls("look"))),
        FakeTool("look", prior_content=block),
        hooks={"tool:before": lambda _told: None},
    )
    try:
        with anyio.fail_after(WAIT / 2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.run, "go")
                await anyio.to_thread.run_sync(started.wait, WAIT)
                tasks.cancel_scope.cancel()
    finally:
        released.set()


async def test_tool_whose_prior_content_fails_runs_anyway() -> None:
    def cannot(*_: object) -> str:
        raise OSError("no disk")

    store = MemorySessionStore()
    look = FakeTool("look", prior_content=cannot)
    hooks = {"tool:before": lambda _told: None}
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), look, hooks=hooks, store=store)
    assert (await answered(one, store)).text == "ok"


async def test_neither_tools_nor_hooks_change_the_models_arguments() -> None:
    def spoil(received: Any) -> None:
        received.arguments["paths"].append("/etc/shadow")

    look = FakeTool("look", lambda paths: str(paths.pop()))
    call = ToolCall("1", "look", {"paths": ["a", "b"]})
    original = copy.deepcopy(call)
    hooks = {"tool:gate": spoil, "tool:before": spoil}
    one = agent(FakeProvider(reply("", call), reply("ok")), look, hooks=hooks)
    _, result = await streamed(one)
    assert result.messages[1].tool_calls == (original,)  # type: ignore[union-attr]
    assert look.seen == [{"paths": ["a"]}]


ANSWERS = {
    "nothing": None,
    "no messages": ModelResponse(None),  # type: ignore[arg-type]
    "text for content": ModelResponse((AssistantMessage(content="hello"),)),  # type: ignore[arg-type]
    "number for text": ModelResponse((AssistantMessage(content=(Text(7),)),)),  # type: ignore[arg-type]
    "list for arguments": ModelResponse((AssistantMessage(content=(ToolCall("1", "look", [1]),)),)),  # type: ignore[arg-type]
    "number for id": ModelResponse((AssistantMessage(content=(ToolCall(1, "look"),)),)),  # type: ignore[arg-type]
    "deep arguments": ModelResponse((AssistantMessage(content=(ToolCall("1", "look", {"a": nested()}),)),)),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_invalid_answer_fails_the_run_and_leaves_the_session_usable(answer: Any) -> None:
    async def wrap(_request: Any, _call: Any) -> Any:
        return answer if len(one.messages) == 1 else reply("ok")

    store = MemorySessionStore()
    hooks = Hooks()
    hooks.wrap_model_call(wrap)
    one = agent(FakeProvider(), FakeTool("look"), hooks=hooks, store=store)
    _, result = await streamed(one)
    assert isinstance(result.error, ProviderError)
    assert (await resume(store, one.session.session_id)).history() == list(one.messages)


@pytest.mark.parametrize(
    "prompt", [UserMessage(content="hello"), UserMessage(content=(Text(7),)), UserMessage(content=())]
)  # type: ignore[arg-type]
async def test_invalid_prompt_is_refused_at_once(prompt: UserMessage) -> None:
    one = agent(FakeProvider(reply("never")))
    with pytest.raises((MessageError, ConfigurationError)):
        await one.run(prompt)
    with pytest.raises((MessageError, ConfigurationError)):
        one.steer(prompt)
    assert not one.session.loops


@pytest.mark.parametrize("verdict", [None, False, "reject"])
async def test_an_input_filter_that_gives_no_verdict_lets_nothing_through(verdict: Any) -> None:
    model = FakeProvider(reply("never"))
    one = agent(model, input_filters=[lambda _text: verdict])
    _, result = await streamed(one)
    assert (result.status, model.requests) == ("failed", [])


async def test_the_same_hooks_for_two_agents_do_not_get_the_middleware_of_one() -> None:
    class Counting:
        name = "counting"

        def __init__(self) -> None:
            self.runs = 0

        def install(self, hooks: Hooks) -> None:
            hooks.on("agent:before", self._count)

        def _count(self, _: object) -> None:
            self.runs += 1

    shared, counting = Hooks(), Counting()
    first = agent(FakeProvider(reply("a")), hooks=shared, middleware=[counting])
    second = agent(FakeProvider(reply("b")), hooks=shared)
    with anyio.fail_after(WAIT):
        await first.run("go")
        await second.run("go")
    assert counting.runs == 1


SCHEMAS = {
    "array": ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
    "union": ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]", [1]),
    "object or null": ({"type": ["object", "null"]}, "null", None),
    "reference": ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, "7", 7),
    "enum": ({"enum": ["yes", "no"]}, '"yes"', "yes"),
}


@pytest.mark.parametrize(("schema", "text", "value"), SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("way", ["text", "tool"])
async def test_structured_output_of_any_shape(way: str, schema: dict[str, Any], text: str, value: Any) -> None:
    answers = [reply(text)] if way == "text" else [reply("well"), reply("", calls("__output__", value=value))]
    one = agent(FakeProvider(*answers), behavior=Behavior(output_schema=schema))
    _, result = await streamed(one)
    assert (result.status, result.output) == ("completed", value)


@pytest.mark.parametrize("text", ["[1, 2]", "7", "null", '"word"'])
async def test_an_answer_of_another_shape_than_the_schema_is_asked_for_again(text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    one = agent(FakeProvider(reply(text), reply("", calls("__output__", a=1))), behavior=Behavior(output_schema=schema))
    _, result = await streamed(one)
    assert result.output == {"a": 1}


async def test_nested_mismatch_is_requested_again_with_the_reason() -> None:
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "integer"}}}}
    model = FakeProvider(
        reply('{"list": [1, "two"]}'),
        reply("", calls("__output__", list=["3"])),
        reply("", calls("__output__", list=[1, 2])),
    )
    one = agent(model, behavior=Behavior(output_schema=schema))
    _, result = await streamed(one)
    assert result.output == {"list": [1, 2]}
    assert (
        "The last one did not match: at $.list[0]: '3' is not of type 'integer'" in model.requests[2].messages[-1].text
    )


async def test_invalid_schema_is_refused_before_any_model_call() -> None:
    with pytest.raises(ConfigurationError, match="the output schema is not a valid JSON Schema"):
        agent(FakeProvider(reply("{}")), behavior=Behavior(output_schema={"type": "objct"}))


async def test_a_schema_that_refers_to_what_it_has_not_fails_the_run() -> None:
    one = agent(
        FakeProvider(reply('{"a": 1}')), behavior=Behavior(output_schema={"properties": {"a": {"$ref": "#/b"}}})
    )
    with anyio.fail_after(WAIT), pytest.raises(ConfigurationError, match="refers to '/b', which is not in it"):
        await one.run("go")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_whose_own_task_was_cancelled_is_an_error_result(count: int, anyio_backend: str) -> None:
    async def wait() -> str:
        task = asyncio.ensure_future(asyncio.sleep(WAIT))
        task.cancel()
        await task
        return "never"

    wanted = [calls("wait", str(number)) for number in range(count)]
    store = MemorySessionStore()
    one = agent(FakeProvider(reply("", *wanted), reply("ok")), FakeTool("wait", wait), store=store)
    assert (await answered(one, store)).is_error


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_natively_while_a_tool_runs_ends_in_order(anyio_backend: str) -> None:
    begun = anyio.Event()

    async def wait() -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    one = agent(FakeProvider(reply("", calls("wait")), reply("never")), FakeTool("wait", wait))
    with anyio.fail_after(WAIT):
        task = asyncio.ensure_future(one.run("go"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [loop.status for loop in one.session.loops] == ["aborted"]
    assert isinstance(one.messages[-1], ToolMessage)


async def test_what_was_remembered_of_calls_is_forgotten_with_the_session() -> None:
    looks = FakeTool("look")
    behavior = Behavior(dedup_tools={"look": str})
    asked = [reply("", calls("look")), reply("ok")]
    one = agent(FakeProvider(*asked, *asked), looks, behavior=behavior)
    with anyio.fail_after(WAIT):
        await one.run("go")
        first = one.session.session_id
        one.new_session()
        assert one.parts.dedup_memory.recall(first, "look", "{}") is None  # nothing else shows it
        await one.run("go")
    assert len(looks.seen) == 2


@pytest.mark.parametrize("returned", [False, True, "block", ToolResult(())])
@pytest.mark.parametrize("is_async", [False, True])
async def test_gate_that_returns_a_value_blocks_and_is_reported(returned: Any, *, is_async: bool) -> None:
    async def later(_: Any) -> Any:
        return returned

    handler = later if is_async else lambda _: returned
    ran: list[str] = []
    look = FakeTool("look", lambda: ran.append("look") or "seen")  # type: ignore[func-returns-value]
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), look, hooks={"tool:gate": handler})
    with anyio.fail_after(WAIT):
        events, result = await streamed(one, "go")
    assert (result.text, ran) == ("ok", [])
    [failed] = [event for event in events if isinstance(event, HookFailed)]
    assert "decides nothing" in failed.error


async def test_unknown_mode_of_a_budget_blocks_the_call() -> None:
    ran: list[str] = []
    look = FakeTool("look", lambda: ran.append("look") or "seen")  # type: ignore[func-returns-value]
    wrong: Any = lambda _tool, _count: ("blok", "")  # noqa: E731
    budgets = {"look": ToolBudget(max_calls=0, on_exceed=wrong)}
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), look, behavior=Behavior(tool_budgets=budgets))
    with anyio.fail_after(WAIT):
        assert (await one.run("go")).text == "ok"
    assert ran == []
