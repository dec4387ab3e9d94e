"""A model that repeats a tool call gets notes, and a failing call that goes on ends the run."""

from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, kinds, streamed

from agent_loop.behavior import Behavior, ExecutionLimits, RepetitionLimits
from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.messages import Text, ToolMessage
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import ToolResult

pytestmark = pytest.mark.anyio


def broken(**_: Any) -> str:
    raise ToolError("no such file")


def repeating(*answers: Any, **known: Any) -> FakeProvider:
    return FakeProvider(*answers, lambda _: reply("", calls("fail", "x", path="a")), repeat=True, **known)


def texts(result: Any) -> list[str]:
    return [message.text for message in result.messages if isinstance(message, ToolMessage)]


async def test_failing_call_that_repeats_is_noted_and_ends_the_run() -> None:
    events, result = await streamed(agent(repeating(), FakeTool("fail", broken)))
    outputs = texts(result)
    assert len(outputs) == 10
    assert outputs[1] == "Error: no such file"
    assert "fail has failed 3 times with these arguments" in outputs[2]
    assert (result.status, result.limit) == ("limited", "repetition")
    assert "limit_reached" in kinds(events)
    assert result.messages[-1].text == (
        "[Agent stopped: fail failed 10 times with the same arguments and the same result]"
    )


async def test_calls_that_alternate_without_progress_are_counted_too() -> None:
    answers = [reply("", calls("fail", str(number), path=str(number % 2))) for number in range(30)]
    _, result = await streamed(agent(FakeProvider(*answers, reply("ok")), FakeTool("fail", broken)))
    assert result.limit == "repetition"
    assert len(texts(result)) == 19


async def test_change_between_failing_calls_starts_the_count_anew() -> None:
    answers = [
        reply("", calls("test", f"t{number}"), calls("write", f"w{number}", text=str(number))) for number in range(15)
    ]
    failing = ToolResult((Text("1 failed"),), effects=(CommandRan(1, "1 failed"),))
    one = agent(
        FakeProvider(*answers, reply("ok")),
        FakeTool("test", lambda: failing, kind="execute"),
        FakeTool("write", lambda text: f"wrote {text}", kind="edit"),
    )
    _, result = await streamed(one)
    assert (result.status, result.text) == ("completed", "ok")
    assert all("has failed" not in text for text in texts(result))


async def test_failing_command_counts_by_its_output_not_by_its_duration() -> None:
    durations = iter(range(100))

    def run() -> ToolResult:
        return ToolResult((Text(f"no\n(exit 1, {next(durations)}ms)"),), effects=(CommandRan(1, "no"),))

    model = FakeProvider(lambda _: reply("", calls("sh", "x", command="make")), repeat=True)
    _, result = await streamed(agent(model, FakeTool("sh", run_with(run), kind="execute")))
    assert result.limit == "repetition"


def run_with(work: Any) -> Any:
    return lambda **_: work()


async def test_call_that_succeeds_again_and_again_is_only_noted() -> None:
    answers = [reply("", calls("look", str(number))) for number in range(15)]
    _, result = await streamed(agent(FakeProvider(*answers, reply("ok")), FakeTool("look")))
    assert result.status == "completed"
    assert "look has returned this result 15 times" in texts(result)[-1]


async def test_message_of_the_user_starts_the_count_anew() -> None:
    model = repeating(*[reply("", calls("fail", str(number), path="a")) for number in range(2)], reply("stuck"))
    one = agent(model, FakeTool("fail", broken), behavior=Behavior(limits=ExecutionLimits(max_turns=2)))
    await streamed(one)
    _, result = await streamed(one, "try again")
    assert all("has failed" not in text for text in texts(result))


async def test_repetition_limits_can_be_switched_off_and_are_checked() -> None:
    behavior = Behavior(repetition=None, limits=ExecutionLimits(max_turns=30))
    _, result = await streamed(agent(repeating(), FakeTool("fail", broken), behavior=behavior))
    assert result.limit == "turns"
    with pytest.raises(ConfigurationError, match="warn_after"):
        agent(repeating(), behavior=Behavior(repetition=RepetitionLimits(warn_after=5, stop_after=3)))
