"""The tool `write_todos`: the list of tasks of the model's work, and the list that a history contains."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import InvalidArgumentsError
from agent_loop.messages import AssistantMessage, Message, ToolMessage
from agent_loop.state import AgentState, Todo, TodoStatus
from agent_loop.tools.builtin.file_call import parse_arguments, schema_of
from agent_loop.tools.tool import ToolContext

MOST_TODOS = 200
"""The most tasks of one list, which is stored with the session and repeated in reminders."""
WRITE_TODOS = "write_todos"
Decision = Annotated[str, Meta(min_length=1, max_length=500)]


class TodoItem(msgspec.Struct, frozen=True):
    """One task, as the model writes it."""

    id: Annotated[
        str,
        Meta(min_length=1, max_length=64, description="Unique in the list; stays the same while the task does."),
    ]
    title: Annotated[str, Meta(min_length=1, max_length=500)]
    status: TodoStatus = "pending"


class TodosArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `write_todos`."""

    todos: Annotated[
        list[TodoItem], Meta(max_length=MOST_TODOS, description="All tasks, including those that are done.")
    ]
    decisions: Annotated[
        tuple[Decision, ...],
        Meta(
            max_length=20,
            description="New decisions that hold for the rest of the work, one sentence each. They outlive long "
            "conversations.",
        ),
    ] = ()
    """They are kept in the call: see `context.notes`."""


class WriteTodosTool:
    """A tool by which the model replaces the list of tasks. Its calls run one by one, since each replaces the list."""

    name = WRITE_TODOS
    label = "Todos"
    description = (
        "Write the list of tasks of your work. It replaces the previous list.\n\nUse it for work with several steps: "
        "write all tasks first, set a task to in_progress when you start it, and to done when it is finished."
    )
    risk = "low"
    sequential = True
    parameters = schema_of(TodosArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> str:
        """Replace the list and return a summary of it. Raises `InvalidArgumentsError`."""
        parsed = parse_arguments(TodosArguments, {**arguments, "todos": _with_text_ids(arguments.get("todos"))})
        ids = [item.id for item in parsed.todos]
        duplicates = sorted({name for name in ids if ids.count(name) > 1})
        if duplicates:
            raise InvalidArgumentsError(f"todos: duplicate ids: {', '.join(duplicates)}; make them unique")
        context.state.todos = [Todo(item.id, item.title, item.status) for item in parsed.todos]
        return _summary(context.state.todos)


def written_todos(messages: Sequence[Message]) -> list[Todo] | None:
    """Return the list that the last successful call of `write_todos` in a history wrote, None without such a call."""
    failed = {each.tool_call_id for each in messages if isinstance(each, ToolMessage) and each.is_error}
    answers = [message for message in reversed(messages) if isinstance(message, AssistantMessage)]
    for call in (call for answer in answers for call in reversed(answer.tool_calls)):
        if call.name == WRITE_TODOS and call.id not in failed:
            with suppress(msgspec.ValidationError):
                return msgspec.convert(_with_text_ids(call.arguments.get("todos")), list[Todo])
    return None


def incomplete(state: AgentState) -> list[Todo]:
    """Return the todos that are not done, in the order of the list."""
    return [todo for todo in state.todos if todo.status != "done"]


def _with_text_ids(todos: Any) -> Any:
    """Return the tasks with numbers as ids turned into text: models write both."""
    if not isinstance(todos, list | tuple):
        return todos
    return [
        {**each, "id": str(each["id"])} if isinstance(each, Mapping) and type(each.get("id")) in {int, float} else each
        for each in todos
    ]


def _summary(todos: list[Todo]) -> str:
    if not todos:
        return "The list of todos is empty now."
    counts = {status: sum(todo.status == status for todo in todos) for status in ("done", "in_progress", "pending")}
    return f"Todos: {len(todos)} ({', '.join(f'{count} {status}' for status, count in counts.items())})"
