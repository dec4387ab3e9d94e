"""Which hooks fire, in which order, and what they can change."""

from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop.agent import Agent
from agent_loop.behavior import Behavior, RetrySettings
from agent_loop.errors import ConfigurationError, ProviderError, ToolError
from agent_loop.events import HookFailed, LoopStart, Noted, ToolResulted, ToolUpdate
from agent_loop.hooks import HOOKS, Hooks
from agent_loop.hooks.contexts import OAuthRefresh
from agent_loop.messages import Image, Text, ToolMessage, user
from agent_loop.tools.tool import ToolResult

pytestmark = pytest.mark.anyio


def recording(*names: str) -> tuple[list[str], dict[str, Any]]:
    """Return the list of fired hooks, and hooks that append their names to it."""
    seen: list[str] = []
    return seen, {name: lambda _, name=name: seen.append(name) for name in names or HOOKS}


def text_result(text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult((Text(text),), is_error=is_error)


def answers(result: Any) -> list[str]:
    return [message.text for message in result.messages if isinstance(message, ToolMessage)]


async def test_hooks_fire_in_the_order_of_the_seeds() -> None:
    seen, hooks = recording()
    model = FakeProvider(reply("Look.", calls("look"), thinking="Hm."), reply("Seen."))
    await streamed(agent(model, FakeTool("look"), hooks=hooks, system_prompt="Be brief."), system_prompt="Be long.")
    assert seen == [
        "agent:before", "session:start", "system:before", "loop:before", "session:turns",
        "context:transform", "system:transform", "turn:before", "stream:thinking", "stream:text", "usage", "stream:end",
        "turn:after", "tool:gate", "tool:before", "tool:transform", "tool:after", "tool-results:after", "turn:end",
        "session:turns",
        "context:transform", "system:transform", "turn:before", "stream:text", "usage", "stream:end", "turn:after",
        "work:incomplete", "turn:end", "session:turns",
        "agent:done", "session:end", "loop:after",
    ]  # fmt: skip


async def test_session_turns_are_the_messages_since_the_last_ones() -> None:
    seen: list[list[str]] = []
    hooks = {"session:turns": lambda context: seen.append([message.text for message in context.messages])}
    one = agent(
        FakeProvider(reply("Look.", calls("look")), reply("Seen."), reply("More.")), FakeTool("look"), hooks=hooks
    )
    await streamed(one, "first")
    await streamed(one, "second")
    assert seen == [["first"], ["Look.", "ok"], ["Seen."], ["second"], ["More."]]


async def test_turn_after_fires_after_an_error_too_without_usage() -> None:
    seen: list[Any] = []
    one = agent(FakeProvider(ProviderError("no")), hooks={"turn:after": seen.append, "error": seen.append})
    await streamed(one)
    after, error = seen
    assert (str(after.error), after.usage.total_tokens, str(error.error)) == ("no", 0, "no")


async def test_the_abort_hook_fires_once_with_the_reason() -> None:
    seen: list[str] = []
    one = agent(
        FakeProvider(reply("", calls("stop"))),
        FakeTool("stop", lambda: one.abort("enough") or "stopped"),
        hooks={"agent:abort": lambda context: seen.append(context.reason)},
    )
    _, result = await streamed(one)
    assert (seen, result.status) == (["enough"], "aborted")


async def test_steer_inject_fires_for_steering_and_follow_ups() -> None:
    seen: list[str] = []
    one = agent(FakeProvider(reply("1"), reply("2")), hooks={"steer:inject": lambda c: seen.append(c.message.origin)})
    one.steer("now")
    one.follow_up("later")
    await streamed(one)
    assert seen == ["steering", "follow_up"]


@pytest.mark.parametrize("hook", ["loop:before", "turn:before"])
async def test_hook_that_stops_the_run_leaves_a_conforming_stream(hook: str) -> None:
    model = FakeProvider(reply("never"))
    received, result = await streamed(agent(model, hooks={hook: lambda context: setattr(context, "stop", True)}))
    assert (result.status, model.requests) == ("aborted", [])
    assert (kinds(received)[0], kinds(received)[-1]) == ("loop_start", "loop_end")


async def test_context_transform_changes_the_request_and_not_the_history() -> None:
    def transform(context: Any) -> None:
        context.messages = [*context.messages, user("PS")]

    model = FakeProvider(reply("ok"))
    one = agent(model, hooks={"context:transform": transform})
    await streamed(one)
    assert [m.text for m in model.requests[0].messages] == ["go", "PS"]
    assert [m.text for m in one.messages] == ["go", "ok"]


async def test_system_transform_changes_the_system_prompt_of_each_call() -> None:
    model = FakeProvider(reply("ok"))
    hooks = {"system:transform": lambda context: setattr(context, "system", context.system + " Now.")}
    await streamed(agent(model, hooks=hooks, system_prompt="Work."))
    assert model.requests[0].system == "Work. Now."


async def test_a_gate_blocks_with_its_reason_and_the_call_is_not_counted() -> None:
    def gate(context: Any) -> None:
        context.block, context.reason = context.call_id == "1", "not today"

    counts: list[dict[str, int]] = []
    tool = FakeTool("look")
    one = agent(
        FakeProvider(reply("", calls("look"), calls("look", "2")), reply("ok")),
        tool,
        hooks={"tool:gate": gate, "tool:before": lambda c: counts.append(dict(c.run_tool_counts))},
        behavior=Behavior(tool_execution="sequential"),
    )
    _, result = await streamed(one)
    assert answers(result) == ["Blocked: not today", "ok"]
    assert (len(tool.seen), counts) == (1, [{}])


async def test_a_gate_substitutes_and_skips_the_tool_but_not_transform_and_after() -> None:
    seen, hooks = recording("tool:before", "tool:transform", "tool:after", "validation:reject")
    hooks["tool:gate"] = lambda context: setattr(context, "result", text_result("from a cache"))
    tool = FakeTool("look", required=["path"])
    _, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), tool, hooks=hooks))
    assert (answers(result), seen, tool.seen) == (["from a cache"], ["tool:transform", "tool:after"], [])


async def test_a_block_beats_a_result() -> None:
    def gate(context: Any) -> None:
        context.block, context.result = True, text_result("cached")

    _, result = await streamed(
        agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look"), hooks={"tool:gate": gate})
    )
    assert answers(result) == ["Blocked: a policy does not allow this call"]


@pytest.mark.parametrize("suppress", [True, False])
async def test_an_unknown_tool_can_be_answered_or_kept_from_the_error_hook(suppress: bool) -> None:
    seen, hooks = recording("tool:error")
    hooks["tool:unknown"] = lambda context: setattr(context, "suppress_error", suppress)
    await streamed(agent(FakeProvider(reply("", calls("fly")), reply("ok")), hooks=hooks))
    assert seen == ([] if suppress else ["tool:error"])
    hooks["tool:unknown"] = lambda context: setattr(context, "result", text_result("flown"))
    _, result = await streamed(agent(FakeProvider(reply("", calls("fly")), reply("ok")), hooks=hooks))
    assert answers(result) == ["flown"]


async def test_rejected_arguments_are_reported_to_hook_and_model() -> None:
    seen: list[str] = []
    hooks = {"validation:reject": lambda context: seen.append(context.problem)}
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look", required=["path"]), hooks=hooks)
    _, result = await streamed(one)
    assert len(seen) == 1
    assert "path" in seen[0]
    assert answers(result) == [f"Validation error: {seen[0]}"]


async def test_coerced_arguments_reach_the_tool_and_the_hooks() -> None:
    seen: list[Any] = []
    tool = FakeTool("look", lambda deep: f"{deep!r}")
    tool.parameters = {"type": "object", "properties": {"deep": {"type": "boolean"}}}
    hooks = {"validation:coerce": lambda c: seen.append(c.coercions), "tool:before": lambda c: seen.append(c.coercions)}
    _, result = await streamed(
        agent(FakeProvider(reply("", calls("look", deep="yes")), reply("ok")), tool, hooks=hooks)
    )
    assert (answers(result), seen) == (["True"], [("deep: string -> boolean",)] * 2)


async def test_a_skipped_tool_does_not_run_and_is_answered() -> None:
    tool = FakeTool("look")
    hooks = {"tool:before": lambda context: setattr(context, "skip", True)}
    _, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), tool, hooks=hooks))
    assert (answers(result), tool.seen) == (["Skipped: a hook kept this tool from running."], [])


async def test_tool_error_substitutes_the_result() -> None:
    def fail() -> str:
        raise ToolError("broken")

    hooks = {"tool:error": lambda context: setattr(context, "result", text_result("mended"))}
    _, result = await streamed(
        agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look", fail), hooks=hooks)
    )
    assert answers(result) == ["mended"]


async def test_transform_changes_the_result_and_after_sees_its_size() -> None:
    sizes: list[int] = []

    def transform(context: Any) -> None:
        sizes.append(context.output_bytes)
        context.result = text_result("äh")

    hooks = {"tool:transform": transform, "tool:after": lambda context: sizes.append(context.output_bytes)}
    tool = FakeTool("look", lambda: "x" * 10)
    _, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), tool, hooks=hooks))
    assert (answers(result), sizes) == (["äh"], [10, 3])


async def test_updates_of_a_tool_can_be_suppressed_without_changing_its_result() -> None:
    class Talking(FakeTool):
        async def execute(self, arguments: dict[str, Any], context: Any) -> str:
            await context.update("secret")
            await context.update("open")
            return "done"

    updated: list[str] = []
    hooks = {
        "tool:update": lambda context: setattr(context, "suppress", context.text == "secret"),
        "tool:updated": lambda context: updated.append(context.text),
    }
    received, result = await streamed(
        agent(FakeProvider(reply("", calls("talk")), reply("ok")), Talking("talk"), hooks=hooks)
    )
    assert [event.text for event in received if isinstance(event, ToolUpdate)] == ["open"] == updated
    assert answers(result) == ["done"]


async def test_raising_handler_is_reported_and_skipped() -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("oops")

    seen, hooks = recording("tool:before")
    hooks = {"tool:before": [broken, hooks["tool:before"]], "agent:before": broken}
    received, result = await streamed(
        agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look"), hooks=hooks)
    )
    failed = [(event.hook, event.error) for event in received if isinstance(event, HookFailed)]
    assert failed == [("agent:before", "RuntimeError: oops"), ("tool:before", "RuntimeError: oops")]
    assert (kinds(received)[0], seen, result.status) == ("loop_start", ["tool:before"], "completed")


async def test_a_gate_that_raises_blocks_the_call() -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("oops")

    seen, hooks = recording("tool:gate")
    tool = FakeTool("look")
    hooks = {"tool:gate": [broken, hooks["tool:gate"]]}
    received, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), tool, hooks=hooks))
    assert answers(result) == ["Blocked: a tool gate failed"]
    assert (tool.seen, seen) == ([], ["tool:gate"])
    assert any(isinstance(event, HookFailed) for event in received)


async def test_setting_a_field_that_is_not_mutable_is_an_error_of_the_handler() -> None:
    hooks = {"tool:gate": lambda context: setattr(context, "name", "other")}
    received, _ = await streamed(
        agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look"), hooks=hooks)
    )
    failure = next(event for event in received if isinstance(event, HookFailed))
    assert "ToolGate.name cannot be changed by a hook; it may change block, reason, result" in failure.error


def test_a_context_does_not_show_the_secrets_of_a_server() -> None:
    context = OAuthRefresh(server="files", url="https://host/?key=secret", headers={"Authorization": "Bearer secret"})
    assert repr(context) == "OAuthRefresh(server='files')"


async def test_an_unknown_hook_name_is_refused_at_construction() -> None:
    with pytest.raises(ConfigurationError, match="unknown hook 'tool:befor'"):
        Agent(FakeProvider(), hooks={"tool:befor": lambda _: None})


async def test_hooks_of_a_run_are_gone_after_it_and_come_after_those_of_the_agent() -> None:
    seen: list[str] = []
    one = agent(FakeProvider(reply("ok"), repeat=True), hooks={"agent:done": lambda _: seen.append("agent")})
    await streamed(one, hooks={"agent:done": lambda _: seen.append("run")})
    await streamed(one)
    assert seen == ["agent", "run", "agent"]


async def test_wrappers_are_onion_rings_with_the_first_outermost() -> None:
    seen: list[str] = []

    def ring(name: str) -> Any:
        async def wrapper(subject: Any, inner: Any) -> Any:
            seen.append(f"+{name}")
            outcome = await inner(subject)
            seen.append(f"-{name}")
            return outcome

        return wrapper

    hooks = Hooks()
    for name in ("outer", "inner"):
        hooks.wrap_model_call(ring(f"model {name}"))
        hooks.wrap_tool_call(ring(f"tool {name}"))
    await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look"), hooks=hooks))
    model = ["+model outer", "+model inner", "-model inner", "-model outer"]
    assert seen == [*model, "+tool outer", "+tool inner", "-tool inner", "-tool outer", *model]


async def test_agent_before_registers_tools_for_the_run() -> None:
    tool = FakeTool("extra")
    hooks = {"agent:before": lambda context: context.tools.append(tool)}
    model = FakeProvider(reply("", calls("extra")), reply("ok"))
    await streamed(agent(model, hooks=hooks))
    assert [definition.name for definition in model.requests[0].tools] == ["extra"]
    assert len(tool.seen) == 1


async def test_notes_of_agent_before_are_emitted_after_loop_start() -> None:
    hooks = {"agent:before": lambda context: context.notes.append("a skill was skipped")}
    received, _ = await streamed(agent(FakeProvider(reply("ok")), hooks=hooks))
    assert [event.text for event in received if isinstance(event, Noted)] == ["a skill was skipped"]
    assert isinstance(received[0], LoopStart)


async def test_a_model_without_vision_gets_a_marker_in_place_of_images() -> None:
    picture = ToolResult((Text("see"), Image("aGk=", "image/png")))
    for able in (True, False):
        model = FakeProvider(reply("", calls("look")), reply("ok"), vision=able)
        received, _ = await streamed(agent(model, FakeTool("look", lambda: picture)))
        content = next(event for event in received if isinstance(event, ToolResulted)).message.content
        assert any(isinstance(block, Image) for block in content) is able


async def test_tool_output_budget_asks_the_model_to_summarize() -> None:
    seen: list[tuple[int, int]] = []
    one = agent(
        FakeProvider(reply("", calls("look")), reply("ok")),
        FakeTool("look", lambda: "x" * 50),
        behavior=Behavior(tool_output_budget=10),
        hooks={"budget:exceeded": lambda context: seen.append((context.bytes, context.budget))},
    )
    _, result = await streamed(one)
    assert seen == [(50, 10)]
    assert any("[Tool output budget exceeded: 50 bytes" in message.text for message in result.messages)


@pytest.mark.parametrize("native", [True, False])
async def test_structured_output_is_what_fits_the_schema(native: bool) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    seen: list[Any] = []
    forced = reply("", calls("__output__", "o1", count="3"))
    model = FakeProvider(reply('{"count": 3}' if native else "Three."), forced, structured_output=native)
    one = agent(
        model, behavior=Behavior(output_schema=schema), hooks={"output": lambda context: seen.append(context.value)}
    )
    _, result = await streamed(one)
    assert (result.output, seen) == ({"count": 3}, [{"count": 3}])
    assert len(model.requests) == (1 if native else 2)
    if not native:
        assert (model.requests[1].tool_choice, model.requests[1].purpose) == ("__output__", "output")
    assert [m.text for m in one.messages] == ["go", result.text]


async def test_structured_output_that_never_fits_fails_the_run() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    model = FakeProvider(reply("No."), repeat=True)
    one = agent(model, behavior=Behavior(output_schema=schema, retry=RetrySettings(max_retries=0)))
    with anyio.fail_after(WAIT), pytest.raises(ProviderError, match="no answer that matches the output schema"):
        await one.run("go")
