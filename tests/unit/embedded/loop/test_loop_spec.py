"""The loop specification, section by section."""

import anyio
import pytest
from msgspec.structs import replace
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop.behavior import Behavior, RetrySettings
from agent_loop.errors import AbortedError, ProviderError, RunInProgressError, ToolError
from agent_loop.events import Final, LoopEnd, TextSaid, ToolCalled, ToolResulted
from agent_loop.messages import SystemMessage, ToolCall, ToolMessage, UserMessage
from agent_loop.tools.tool import DoneSignal, TaskComplete

pytestmark = pytest.mark.anyio

QUIET = Behavior(retry=RetrySettings(max_retries=0))


async def test_run_gives_the_final_text_of_the_stream() -> None:
    model = FakeProvider(reply("Hello."))
    with anyio.fail_after(WAIT):
        result = await agent(model).run("hi")
    assert (result.text, result.status, result.turns) == ("Hello.", "completed", 1)


async def test_run_and_run_stream_come_to_the_same() -> None:
    def made() -> FakeProvider:
        return FakeProvider(reply("", calls("look")), reply("Seen."))

    _, streamed_result = await streamed(agent(made(), FakeTool("look")))
    with anyio.fail_after(WAIT):
        result = await agent(made(), FakeTool("look")).run("go")
    assert result == streamed_result


async def test_system_prompt_is_sent_once_and_not_part_of_the_history() -> None:
    model = FakeProvider(reply("", calls("look")), reply("Done."))
    one = agent(model, FakeTool("look"), system_prompt="Be brief.")
    await streamed(one)
    await_second = FakeProvider(reply("Again."))
    one.provider = await_second
    await streamed(one, "more")
    assert [request.system for request in (*model.requests, *await_second.requests)] == ["Be brief."] * 3
    assert not any(isinstance(message, SystemMessage) for message in one.messages)


async def test_events_of_one_iteration_come_in_order() -> None:
    model = FakeProvider(reply("Let me look.", calls("look"), thinking="Hm."), reply("All well."))
    received, _ = await streamed(agent(model, FakeTool("look")))
    assert kinds(received) == [
        "loop_start", "message_injected",
        "turn_start", "thinking_delta", "text_delta", "tool_input_delta", "usage", "reasoning", "text",
        "tool_call_start", "tool_call", "tool_result", "tool_call_end", "turn_end",
        "turn_start", "text_delta", "usage", "turn_end",
        "final", "loop_end",
    ]  # fmt: skip


async def test_a_terminal_answer_is_final_and_no_text_event() -> None:
    received, _ = await streamed(agent(FakeProvider(reply("The end."))))
    assert [event.text for event in received if isinstance(event, Final)] == ["The end."]
    assert not any(isinstance(event, TextSaid) for event in received)


async def test_unknown_tool_is_an_error_result_and_the_loop_continues() -> None:
    model = FakeProvider(reply("", calls("fly")), reply("I cannot fly."))
    _, result = await streamed(agent(model))
    answer = next(message for message in result.messages if isinstance(message, ToolMessage))
    assert (answer.is_error, answer.text) == (True, "Error: Unknown tool 'fly'")
    assert result.text == "I cannot fly."


async def test_result_of_an_unknown_tool_names_the_tools_as_the_model_knows_them() -> None:
    model = FakeProvider(reply("", calls("Read")), reply("Done."))
    _, result = await streamed(agent(model, FakeTool("look"), FakeTool("walk"), aliases={"look": "Look"}))
    answer = next(message for message in result.messages if isinstance(message, ToolMessage))
    assert answer.text == "Error: Unknown tool 'Read'. Available tools: Look, walk"


async def test_unparsable_arguments_are_shown_raw_and_reach_a_tool_that_takes_them_raw() -> None:
    class Raw(FakeTool):
        async def execute_raw(self, raw_arguments: str, context: object) -> str:
            return f"raw: {raw_arguments}"

    call = ToolCall("1", "look", {"_raw": '{"path": '}, '{"path": ')
    received, result = await streamed(agent(FakeProvider(reply("", call), reply("ok")), Raw("look")))
    assert next(event for event in received if isinstance(event, ToolCalled)).call.arguments == {"_raw": '{"path": '}
    assert next(event for event in received if isinstance(event, ToolResulted)).message.text == 'raw: {"path": '
    assert result.status == "completed"


async def test_unparsable_arguments_are_a_validation_error_for_other_tools() -> None:
    tool = FakeTool("look")
    call = ToolCall("1", "look", {"_raw": "nonsense"}, "nonsense")
    received, result = await streamed(agent(FakeProvider(reply("", call), reply("ok")), tool))
    answer = next(event for event in received if isinstance(event, ToolResulted)).message
    assert answer.is_error
    assert answer.text.startswith("Validation error: the arguments of look are not a JSON object: 'nonsense'")
    assert (tool.seen, result.status) == ([], "completed")


async def test_an_exception_of_a_tool_is_an_error_result() -> None:
    def fail() -> str:
        raise ToolError("the disk is full")

    received, result = await streamed(
        agent(FakeProvider(reply("", calls("save")), reply("Sorry.")), FakeTool("save", fail))
    )
    answer = next(event for event in received if isinstance(event, ToolResulted)).message
    assert (answer.is_error, answer.text) == (True, "Error: the disk is full")
    assert result.text == "Sorry."


@pytest.mark.parametrize("way", ["returned", "raised"])
async def test_a_done_signal_ends_the_run_with_its_message(way: str) -> None:
    def finish() -> object:
        if way == "raised":
            raise TaskComplete("All done.", "finished")
        return DoneSignal("All done.", "finished")

    one = agent(FakeProvider(reply("Finishing.", calls("finish"), calls("finish", "2"))), FakeTool("finish", finish))
    one.behavior = Behavior(tool_execution="sequential").over(one.behavior)
    _, result = await streamed(one)
    assert (result.text, result.status, result.turns) == ("All done.", "completed", 1)
    answers = [message for message in result.messages if isinstance(message, ToolMessage)]
    assert [answer.text for answer in answers] == [
        "finished",
        "Skipped: the run ended before this tool was started.",
    ]


async def test_a_done_signal_without_a_message_ends_with_the_text_of_the_model() -> None:
    _, result = await streamed(
        agent(FakeProvider(reply("It is done.", calls("finish"))), FakeTool("finish", DoneSignal))
    )
    assert result.text == "It is done."


async def test_max_iterations_end_with_a_summary_without_tools_and_without_touching_the_history() -> None:
    model = FakeProvider(reply("", calls("look")), reply("", calls("look", "2")), reply("I looked twice."))
    one = agent(model, FakeTool("look"), behavior=Behavior(max_iterations=2))
    received, result = await streamed(one)
    last = model.requests[-1]
    assert (result.text, result.status, result.turns) == ("I looked twice.", "limited", 2)
    assert (last.tools, last.tool_choice, last.purpose) == ((), "none", "final")
    assert isinstance(last.messages[-1], UserMessage)
    assert last.messages[-1] not in one.messages
    assert "limit_reached" in kinds(received)


async def test_a_failing_final_summary_falls_back_to_a_sentence() -> None:
    model = FakeProvider(reply("", calls("look")), ProviderError("no"))
    one = agent(model, FakeTool("look"), behavior=Behavior(max_iterations=1).over(QUIET))
    _, result = await streamed(one)
    assert result.text == "The agent stopped at its limit of 1 turns. No summary of its work is available."


async def test_an_abort_during_a_tool_answers_its_call_and_ends_without_final() -> None:
    async def for_ever() -> None:
        await anyio.sleep_forever()

    one = agent(FakeProvider(reply("", calls("wait"), calls("wait", "2"))), FakeTool("wait", for_ever))
    received, result = await streamed(one, on=lambda e: one.abort("enough") if isinstance(e, ToolCalled) else None)
    answers = [message for message in result.messages if isinstance(message, ToolMessage)]
    assert [(a.tool_call_id, a.is_error, a.text) for a in answers] == [
        ("1", True, "Aborted: enough"),
        ("2", True, "Aborted: enough"),
    ]
    assert isinstance(received[-1], LoopEnd)
    assert (received[-1].status, received[-1].error, "final" in kinds(received)) == ("aborted", "enough", False)


async def test_an_abort_while_the_model_speaks_ends_the_turn_and_run_raises_it() -> None:
    class Slow(FakeProvider):
        async def respond(self, request: object, on_chunk: object) -> object:
            one.abort("stop")
            await anyio.sleep_forever()

    one = agent(Slow())
    with anyio.fail_after(WAIT), pytest.raises(AbortedError, match="stop"):
        await one.run("go")
    assert not one.is_running


async def test_a_second_run_at_the_same_time_is_refused() -> None:
    async def again() -> str:
        with pytest.raises(RunInProgressError, match="steer"):
            await one.run("me too")
        return "refused"

    one = agent(FakeProvider(reply("", calls("again")), reply("ok")), FakeTool("again", again))
    _, result = await streamed(one)
    assert result.text == "ok"


async def test_provider_messages_are_added_to_the_history_unchanged() -> None:
    answer = reply("", calls("look"), native={"kept": ["as", "it", "was"]})
    _, result = await streamed(agent(FakeProvider(answer, last := reply("ok")), FakeTool("look")))
    prompt, asked, looked, final = [replace(message, timestamp=0) for message in result.messages]
    assert (asked, final) == (answer.messages[0], last.messages[0])
    assert (type(prompt), type(looked)) == (UserMessage, ToolMessage)


async def test_every_message_of_the_history_has_its_time() -> None:
    _, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look")))
    times = [message.timestamp for message in result.messages]
    assert len(times) == 4
    assert times == sorted(times)
    assert all(times)


async def test_incomplete_work_is_reminded_of_before_the_end() -> None:
    def remind(context: object) -> None:
        if context.reminders == 0:
            context.prompt = "There are open todos."

    model = FakeProvider(reply("Done?"), reply("Now it is."))
    received, result = await streamed(agent(model, hooks={"work:incomplete": remind}))
    assert (result.text, result.turns) == ("Now it is.", 2)
    assert [event.text for event in received if isinstance(event, TextSaid)] == ["Done?"]
    reminder = next(m for m in result.messages if isinstance(m, UserMessage) and m.origin == "reminder")
    assert reminder.text == "There are open todos."
