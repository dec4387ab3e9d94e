"""The tool `ask_user`: a question of the model to the user."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import InvalidArgumentsError
from agent_loop.tools.builtin.file_call import parse_arguments, schema_of
from agent_loop.tools.tool import ToolContext

AnswerOption = Annotated[str, Meta(min_length=1, max_length=500)]


class AskArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `ask_user`."""

    question: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4000,
            description="One question, with all information that is needed to answer it.",
        ),
    ]
    options: Annotated[
        tuple[AnswerOption, ...],
        Meta(max_length=20, description="Answers to choose from; omit them to accept any answer."),
    ] = ()


class AskUserTool:
    """A tool by which the model asks the user with `ToolContext.ask`."""

    name = "ask_user"
    label = "Question"
    description = (
        "Ask the user a question and wait for the answer. Ask only what you cannot find out or decide yourself."
    )
    kind = "ask"
    risk = "low"
    parameters = schema_of(AskArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> str:
        """Return the answer. Raises `InvalidArgumentsError`, and `ToolError` without a user."""
        parsed = parse_arguments(AskArguments, arguments)
        if len(set(parsed.options)) < len(parsed.options):
            raise InvalidArgumentsError("options: duplicate option; make the options different")
        return await context.ask(parsed.question, parsed.options)
