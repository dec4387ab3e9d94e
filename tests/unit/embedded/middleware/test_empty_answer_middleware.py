"""Empty answers: the model is asked to continue after tool results, once."""

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply

from agent_loop.agent import Agent
from agent_loop.errors import EmptyAnswerError
from agent_loop.messages import UserMessage
from agent_loop.middleware.empty_answers import CONTINUE, EmptyAnswerMiddleware
from agent_loop.results import RunResult

pytestmark = pytest.mark.anyio


async def run(*replies: object) -> tuple[RunResult, list[str]]:
    """Return the result of a run, and the reminders that the model got."""
    one = Agent(FakeProvider(*replies), tools=[FakeTool("look")], middleware=[EmptyAnswerMiddleware()])
    result = await one.run("Go.")
    reminders = [each for each in result.messages if isinstance(each, UserMessage) and each.origin == "reminder"]
    return result, [each.text for each in reminders]


async def test_empty_answer_after_tool_results_continues_the_work() -> None:
    result, reminders = await run(
        reply("Next.", calls("look")), reply(""), reply("Next.", calls("look", "2")), reply("Done.")
    )
    assert (result.status, result.text, reminders) == ("completed", "Done.", [CONTINUE])


async def test_second_empty_answer_ends_the_run() -> None:
    result, reminders = await run(reply("Next.", calls("look")), reply(""), reply(""))
    assert (result.status, result.text, reminders) == ("completed", "", [CONTINUE])


async def test_empty_answer_to_the_prompt_is_an_error() -> None:
    with pytest.raises(EmptyAnswerError):
        await run(reply(""))
