"""Questions to the user."""

import anyio
import pytest

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.tools.builtin import AskUserTool
from agent_loop.tools.tool import ToolContext, kind_of


async def echo(question: str, options: tuple[str, ...]) -> str:
    return f"{question} {options}"


CONTEXT = ToolContext(call_id="1", tool_name="ask_user", ask=echo)


def test_ask_user_asks_and_returns_the_answer() -> None:
    assert kind_of(AskUserTool()) == "ask"
    assert (
        anyio.run(AskUserTool().execute, {"question": "Which?", "options": ["a", "b"]}, CONTEXT) == "Which? ('a', 'b')"
    )
    assert anyio.run(AskUserTool().execute, {"question": "Why?"}, CONTEXT) == "Why? ()"


def test_ask_user_without_a_user_is_a_tool_error() -> None:
    with pytest.raises(ToolError, match="no user is available to answer 'Why"):
        anyio.run(AskUserTool().execute, {"question": "Why?"}, ToolContext(call_id="1", tool_name="ask_user"))


def test_duplicate_options_are_rejected() -> None:
    with pytest.raises(InvalidArgumentsError, match="make the options different"):
        anyio.run(AskUserTool().execute, {"question": "Which?", "options": ["a", "a"]}, CONTEXT)
