"""The tool `write_todos`, and which todos are still to be done. Source: hooks seed, sections 1.4 and 6.5."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent_loop.errors import InvalidArgumentsError
from agent_loop.state import AgentState, Todo, TodoStatus
from agent_loop.tools.function import FunctionTool, function_tool
from agent_loop.tools.tool import ToolContext

MOST_TODOS = 200
"""Of one list: it is stored with the session, and told in reminders."""


class TodoItem(BaseModel):
    """One task, as the model writes it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str = Field(min_length=1, max_length=64, description="Unique in the list; stays the same while the task does.")
    title: str = Field(min_length=1, max_length=500)
    status: TodoStatus = "pending"


async def write_todos(todos: Annotated[list[TodoItem], Field(max_length=MOST_TODOS)], context: ToolContext) -> str:
    """Write the list of tasks that your work consists of. The whole list replaces the one before.

    Use it for work of several steps: write the tasks first, set one to in_progress when you begin it and to done when
    it is done.

    Args:
        todos: All tasks, those that are done as well.
        context: Of the call.
    """
    ids = [item.id for item in todos]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise InvalidArgumentsError(f"todos: these ids are there more than once: {', '.join(twice)}; make them unique")
    context.state.todos = [Todo(item.id, item.title, item.status) for item in todos]
    return _summary(context.state.todos)


def incomplete(state: AgentState) -> list[Todo]:
    """What is not done yet, in the order of the list."""
    return [todo for todo in state.todos if todo.status != "done"]


def todo_tool() -> FunctionTool:
    """The tool. Its calls do not run beside others: each replaces the whole list."""
    return function_tool(write_todos, label="Todos", risk="low", sequential=True)


def _summary(todos: list[Todo]) -> str:
    if not todos:
        return "The list of todos is empty now."
    counts = {status: sum(todo.status == status for todo in todos) for status in ("done", "in_progress", "pending")}
    return f"Todos: {len(todos)} ({', '.join(f'{count} {status}' for status, count in counts.items())})"
