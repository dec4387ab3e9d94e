"""The tool `ask_user`: a question to the person, where there is one. Source: phi-core, "ToolContext"."""

from typing import Annotated

from pydantic import Field

from agent_loop.errors import InvalidArgumentsError
from agent_loop.tools.function import FunctionTool, function_tool
from agent_loop.tools.tool import ToolContext

Option = Annotated[str, Field(min_length=1, max_length=500)]


async def ask_user(
    question: Annotated[str, Field(min_length=1, max_length=4000)],
    context: ToolContext,
    options: Annotated[list[Option], Field(max_length=20)] = [],  # noqa: B006  # never changed; its schema is an empty list
) -> str:
    """Ask the person a question and wait for the answer. Only for what you cannot find out or decide yourself.

    Args:
        question: One question, with all that is needed to answer it.
        options: Answers to choose from; leave it out where any answer will do.
        context: Of the call.
    """
    if len(set(options)) < len(options):
        raise InvalidArgumentsError("options: the same option is there more than once; make them different")
    return await context.ask(question, tuple(options))


def ask_tool() -> FunctionTool:
    """The tool."""
    return function_tool(ask_user, label="Question", kind="ask", risk="low")
