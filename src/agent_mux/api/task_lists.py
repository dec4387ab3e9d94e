"""Task lists that models keep with a tool of their agent (`TodoWrite`, `update_plan`, `write_todos`), from its input.

The events of these tools are those of any tool call: `tool_call_ready` has the whole list as the input. Agents name the
fields and the states differently; names of tools do not matter. A list can be Markdown (`- [x] Write the parser`), and
a new one can be phases of items without states. Later changes of single items (`op: "done"`) are not lists.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

TaskState = Literal["pending", "in_progress", "completed", "cancelled"]
_LISTS = ("todos", "plan", "entries")
_TEXTS = ("content", "step", "text", "description", "title")
_STATES: Mapping[str, TaskState] = {
    "pending": "pending", "inprogress": "in_progress", "completed": "completed", "done": "completed",
    "cancelled": "cancelled", "canceled": "cancelled",
}  # fmt: skip

_MARKDOWN_ITEM = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]+(\S.*)")


class Task(NamedTuple):
    """One task of a list."""

    text: str
    state: TaskState
    priority: str | None = None
    """The priority in the words of the agent; None: it has none."""


def read_task_list(given: Any) -> tuple[Task, ...]:
    """Return the tasks in the input of a tool; none if it is not a list of tasks with states."""
    if not isinstance(given, Mapping):
        return ()
    found: list[Any] = next((given[key] for key in _LISTS if isinstance(given.get(key), list)), [])
    if not found:
        return _read_markdown(given) or _read_phases(given)
    tasks = [task for item in found if (task := _read_task(item)) is not None]
    return tuple(tasks) if len(tasks) == len(found) else ()


def summarize_tasks(tasks: tuple[Task, ...]) -> str:
    """Return the progress of a list and the task in progress: `1 of 3 done; now: Write the parser`."""
    current = next((task.text for task in tasks if task.state == "in_progress"), "")
    done = sum(task.state == "completed" for task in tasks)
    return f"{done} of {len(tasks)} done" + (f"; now: {current}" if current else "")


def _read_markdown(given: Mapping[str, Any]) -> tuple[Task, ...]:
    """Return the tasks of a Markdown list; none if a line, other than a heading, is no item with a box."""
    text = next((given[key] for key in _LISTS if isinstance(given.get(key), str)), "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [match for line in lines if (match := _MARKDOWN_ITEM.fullmatch(line))]
    tasks = tuple(Task(match[2].strip(), "pending" if match[1] == " " else "completed") for match in found)
    return tasks if len(tasks) == len(lines) else ()


def _read_phases(given: Mapping[str, Any]) -> tuple[Task, ...]:
    """Return the tasks of a new list in phases: `{"op": "init", "list": [{"phase": ..., "items": [...]}]}`."""
    phases = given.get("list")
    if given.get("op") != "init" or not isinstance(phases, list):
        return ()
    items = [phase["items"] if isinstance(phase, Mapping) and isinstance(phase.get("items"), list) else [None]
             for phase in phases]  # fmt: skip
    tasks = [Task(text, "pending") if isinstance(text, str) else None for each in items for text in each]
    return tuple(filter(None, tasks)) if None not in tasks else ()


def _read_task(item: Any) -> Task | None:
    if not isinstance(item, Mapping):
        return None
    text = next((item[key] for key in _TEXTS if item.get(key)), None)
    state = _read_state(item)
    if not isinstance(text, str) or state is None:
        return None
    priority = item.get("priority")
    return Task(text, state, priority if isinstance(priority, str) else None)


def _read_state(item: Mapping[str, Any]) -> TaskState | None:
    status = item.get("status")
    if isinstance(status, str):
        return _STATES.get(status.lower().removeprefix("todo_status_").replace("_", ""))
    is_done = item.get("completed")
    return ("completed" if is_done else "pending") if isinstance(is_done, bool) else None
