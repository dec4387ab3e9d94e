"""Arguments that a wrapper changes are validated and gated as those of the model."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop.behavior import Behavior, ToolBudget
from agent_loop.hooks import Hooks
from agent_loop.hooks.contexts import ToolGate
from agent_loop.messages import ToolMessage
from agent_loop.tools.tool import ToolResult

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def wrapped(change: Any, gate: Any = None, in_place: bool = False) -> Hooks:
    async def wrapper(call: Any, run: Any) -> ToolResult:
        if in_place:
            call.arguments.update(change)
            return await run(call)  # type: ignore[no-any-return]
        return await run(replace(call, arguments=change))  # type: ignore[no-any-return]

    hooks = Hooks({} if gate is None else {"tool:gate": gate})
    hooks.wrap_tool_call(wrapper)
    return hooks


async def run_with(hooks: Hooks, **known: Any) -> tuple[FakeTool, str]:
    tool = FakeTool("remove")
    tool.parameters = SCHEMA
    _, result = await streamed(
        agent(FakeProvider(reply("", calls("remove", path="a")), reply("ok")), tool, hooks=hooks, **known)
    )
    return tool, next(message.text for message in result.messages if isinstance(message, ToolMessage))


@pytest.mark.parametrize("in_place", [False, True])
async def test_changed_arguments_pass_the_gates_again(in_place: bool) -> None:
    def gate(context: ToolGate) -> None:
        context.block, context.reason = context.arguments["path"] == "/etc", "not there"

    tool, text = await run_with(wrapped({"path": "/etc"}, gate, in_place))
    assert (tool.seen, text) == ([], "Blocked: not there")


async def test_changed_arguments_are_validated() -> None:
    tool, text = await run_with(wrapped({"place": "b"}))
    assert tool.seen == []
    assert text.startswith("Validation error:")


async def test_changed_arguments_that_are_allowed_reach_the_tool() -> None:
    seen: list[Any] = []
    tool, text = await run_with(wrapped({"path": "b"}, lambda context: seen.append(context.arguments["path"])))
    assert (tool.seen, text, seen) == ([{"path": "b"}], "ok", ["a", "b"])


async def test_unchanged_arguments_are_gated_once() -> None:
    seen: list[Any] = []
    await run_with(wrapped({"path": "a"}, lambda context: seen.append(context.arguments["path"])))
    assert seen == ["a"]


async def test_changed_call_counts_once_against_its_budget() -> None:
    behavior = Behavior(tool_budgets={"remove": ToolBudget(max_calls=1)})
    tool, text = await run_with(wrapped({"path": "b"}), behavior=behavior)
    assert (tool.seen, text) == ([{"path": "b"}], "ok")
