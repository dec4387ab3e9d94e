"""Todos: the tool is registered, and open todos cause one reminder."""

import pytest
from tests.unit.embedded.middleware.harness import Around, Probe

from agent_loop.hooks.contexts import IncompleteWork
from agent_loop.middleware import TodoListMiddleware
from agent_loop.middleware.todos import reminder
from agent_loop.state import Todo
from agent_loop.tools.tool import ToolContext

pytestmark = pytest.mark.anyio
OPEN = [Todo("1", "Parse", "done"), Todo("2", "Handle\nit", "in_progress"), Todo("3", "Test")]


async def test_todo_list_middleware_registers_write_todos_which_replaces_the_list() -> None:
    around = Around(TodoListMiddleware())
    await around.begin()
    context = ToolContext(call_id="1", tool_name="write_todos", state=around.state)
    for title in ("Parse", "Test"):
        given = {"todos": [{"id": "1", "title": title, "status": "in_progress"}]}
        await around.tool("write_todos").execute(given, context)
    assert around.state.todos == [Todo("1", "Test", "in_progress")]


async def test_the_agents_own_todo_tool_and_the_todos_of_the_session_stay() -> None:
    own = Probe("write_todos")
    around = Around(TodoListMiddleware(tool=Probe("write_todos")), tools=(own,))
    around.state.todos = list(OPEN)
    await around.begin()
    assert around.tools == [own]
    assert around.state.todos == OPEN


async def _prompt(
    middleware: TodoListMiddleware, todos: list[Todo], reminders: int, prompt: str | None = None
) -> str | None:
    around = Around(middleware)
    around.state.todos = todos
    context = IncompleteWork(state=around.state, text="Done.", reminders=reminders, prompt=prompt)
    await around.fire("work:incomplete", context)
    return context.prompt


async def test_incomplete_work_is_called_to_mind_once_in_a_run() -> None:
    prompt = await _prompt(TodoListMiddleware(), OPEN, 0)
    assert prompt is not None
    assert "- 2 (in_progress): Handle it\n- 3 (pending): Test\n" in prompt
    assert "Parse" not in prompt
    assert await _prompt(TodoListMiddleware(), OPEN, 1) is None
    assert await _prompt(TodoListMiddleware(max_reminders=2), OPEN, 1) == prompt


async def test_no_reminder_without_open_todos() -> None:
    assert await _prompt(TodoListMiddleware(), OPEN[:1], 0) is None
    assert await _prompt(TodoListMiddleware(max_reminders=0), OPEN, 0) is None


async def test_what_another_handler_asks_for_is_kept() -> None:
    prompt = await _prompt(TodoListMiddleware(), OPEN, 0, "Run the tests.")
    assert prompt is not None
    assert prompt.startswith("Run the tests.\n\nThese todos are still open:")


async def test_a_reminder_is_bounded() -> None:
    received = reminder([Todo(str(number), "x" * 1_000) for number in range(500)])
    assert len(received) < 6_000
    assert "- and 480 more" in received
