"""The list of tasks."""

from typing import Any

import anyio
import pytest

from agent_loop.errors import InvalidArgumentsError
from agent_loop.state import AgentState, Todo
from agent_loop.tools.builtin import WriteTodosTool, incomplete
from agent_loop.tools.tool import ToolContext, runs_alone


def write(state: AgentState, *todos: Any) -> Any:
    context = ToolContext(call_id="1", tool_name="write_todos", state=state)
    return anyio.run(WriteTodosTool().execute, {"todos": list(todos)}, context)


def test_write_todos_replaces_the_list_wholesale() -> None:
    state = AgentState(todos=[Todo("old", "Old")])
    message = write(state, {"id": "1", "title": "Parse", "status": "done"}, {"id": 2, "title": "Test"})
    assert state.todos == [Todo("1", "Parse", "done"), Todo("2", "Test", "pending")]
    assert message == "Todos: 2 (1 done, 0 in_progress, 1 pending)"
    assert write(state) == "The list of todos is empty now."
    assert state.todos == []


@pytest.mark.parametrize(
    ("todos", "message"),
    [
        ([{"id": "1", "title": "a"}, {"id": 1, "title": "b"}], "duplicate ids: 1"),
        (
            [{"id": "1", "title": "a", "status": "blocked"}],
            r"Invalid enum value 'blocked' - at `\$\.todos\[0\]\.status`",
        ),
        ([{"id": "", "title": "a"}], r"length >= 1 - at `\$\.todos\[0\]\.id`"),
        ([{"id": "1"}], r"missing required field `title` - at `\$\.todos\[0\]`"),
        ([{"id": str(number), "title": "a"} for number in range(201)], "length <= 200"),
    ],
)
def test_invalid_list_changes_nothing(todos: list[Any], message: str) -> None:
    state = AgentState(todos=[Todo("old", "Old")])
    with pytest.raises(InvalidArgumentsError, match=message):
        write(state, *todos)
    assert state.todos == [Todo("old", "Old")]


def test_schema_has_all_properties_of_a_task_and_their_types() -> None:
    task = WriteTodosTool.parameters["properties"]["todos"]["items"]
    assert {name: schema["type"] for name, schema in task["properties"].items()} == {
        "id": "string", "title": "string", "status": "string",
    }  # fmt: skip
    assert task["properties"]["status"]["enum"] == ["done", "in_progress", "pending"]


def test_incomplete_returns_todos_that_are_not_done() -> None:
    todos = [Todo("1", "a", "done"), Todo("2", "b", "in_progress"), Todo("3", "c")]
    assert incomplete(AgentState(todos=todos)) == todos[1:]
    assert incomplete(AgentState()) == []


def test_todo_calls_run_one_by_one() -> None:
    assert runs_alone(WriteTodosTool())
