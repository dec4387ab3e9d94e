"""Built-in tools that are made of functions: `ask_user`, a question to the user, and `write_todos`, the task list."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_loop.errors import InvalidArgumentsError
from agent_loop.messages import AssistantMessage, Message, ToolMessage
from agent_loop.state import AgentState, Todo, TodoStatus
from agent_loop.tools.function import FunctionTool, function_tool
from agent_loop.tools.tool import ToolContext

MOST_TODOS = 200
"""The most tasks of one list, which is stored with the session and repeated in reminders."""
Decision = Annotated[str, Field(min_length=1, max_length=500)]
AnswerOption = Annotated[str, Field(min_length=1, max_length=500)]


class TodoItem(BaseModel):
    """One task, as the model writes it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str = Field(min_length=1, max_length=64, description="Unique in the list; stays the same while the task does.")
    title: str = Field(min_length=1, max_length=500)
    status: TodoStatus = "pending"


async def ask_user(
    question: Annotated[str, Field(min_length=1, max_length=4000)],
    context: ToolContext,
    options: Annotated[list[AnswerOption], Field(max_length=20)] = [],  # noqa: B006  # never changed; its schema is an empty list
) -> str:
    """Ask the user a question and wait for the answer. Ask only what you cannot find out or decide yourself.

    Args:
        question: One question, with all information that is needed to answer it.
        options: Answers to choose from; omit them to accept any answer.
        context: The context of the call.
    """
    if len(set(options)) < len(options):
        raise InvalidArgumentsError("options: duplicate option; make the options different")
    return await context.ask(question, tuple(options))


async def write_todos(
    todos: Annotated[list[TodoItem], Field(max_length=MOST_TODOS)],
    context: ToolContext,
    decisions: Annotated[list[Decision], Field(max_length=20)] = [],  # noqa: ARG001, B006  # kept in the call, see `notes`; never changed
) -> str:
    """Write the list of tasks of your work. It replaces the previous list.

    Use it for work with several steps: write all tasks first, set a task to in_progress when you start it, and to done
    when it is finished.

    Args:
        todos: All tasks, including those that are done.
        context: The context of the call.
        decisions: New decisions that hold for the rest of the work, one sentence each. They outlive long conversations.
    """
    ids = [item.id for item in todos]
    duplicates = sorted({name for name in ids if ids.count(name) > 1})
    if duplicates:
        raise InvalidArgumentsError(f"todos: duplicate ids: {', '.join(duplicates)}; make them unique")
    context.state.todos = [Todo(item.id, item.title, item.status) for item in todos]
    return _summary(context.state.todos)


def ask_tool() -> FunctionTool:
    """Return the tool `ask_user`, which calls `ToolContext.ask`."""
    return function_tool(ask_user, label="Question", kind="ask", risk="low")


def todo_tool() -> FunctionTool:
    """Return the tool `write_todos`. Its calls run one by one, because each replaces the whole list."""
    return function_tool(write_todos, label="Todos", risk="low")


def written_todos(messages: Sequence[Message]) -> list[Todo] | None:
    """Return the list that the last successful call of `write_todos` in a history wrote, None without such a call."""
    failed = {each.tool_call_id for each in messages if isinstance(each, ToolMessage) and each.is_error}
    answers = [message for message in reversed(messages) if isinstance(message, AssistantMessage)]
    for call in (call for answer in answers for call in reversed(answer.tool_calls)):
        if call.name == write_todos.__name__ and call.id not in failed:
            with suppress(ValidationError, TypeError):
                return [Todo(**TodoItem.model_validate(each).model_dump()) for each in call.arguments["todos"]]
    return None


def incomplete(state: AgentState) -> list[Todo]:
    """Return the todos that are not done, in the order of the list."""
    return [todo for todo in state.todos if todo.status != "done"]


def _summary(todos: list[Todo]) -> str:
    if not todos:
        return "The list of todos is empty now."
    counts = {status: sum(todo.status == status for todo in todos) for status in ("done", "in_progress", "pending")}
    return f"Todos: {len(todos)} ({', '.join(f'{count} {status}' for status, count in counts.items())})"
