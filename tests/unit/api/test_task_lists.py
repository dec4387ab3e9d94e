"""Task lists in the tool inputs of the agents, as recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.api.event_lines import short_input
from agent_mux.api.task_lists import Task, read_task_list, summarize_tasks

FIXTURES = Path(__file__).parents[3] / "fixtures"


def recorded_inputs(scenario: str) -> list[Any]:
    """Return the tool inputs of a recording in which there is a list of tasks."""
    lines = (FIXTURES / scenario / "events.jsonl").read_text("utf-8").splitlines()
    ready = [event for line in lines if (event := json.loads(line))["type"] == "tool_call_ready"]
    return [event["input"] for event in ready if read_task_list(event["input"])]


@pytest.mark.parametrize(
    ("scenario", "texts", "states"),
    [
        ("native/0.1.0/todos", "look change", "in_progress pending"),
        ("claude/2.1.330/todowrite", "A B", "in_progress pending"),
        ("codex/0.169.0/plan_tool", "A B", "pending pending"),
        ("cursor/documented/todos", "look", "in_progress"),
        ("gemini/0.61.0/live_shell", "one two", "in_progress pending"),
        ("hermes/0.19.0/tui_todo", "first second", "in_progress pending"),
        ("omp/18.2.3/tools", "step one step two", "pending pending"),
    ],
)
def test_recorded_list_has_its_tasks_and_states(scenario: str, texts: str, states: str) -> None:
    tasks = read_task_list(recorded_inputs(scenario)[0])
    assert (" ".join(task.text for task in tasks), " ".join(task.state for task in tasks)) == (texts, states)


def test_other_spellings_of_states_and_texts() -> None:
    given = {
        "plan": [
            {"text": "a", "completed": True}, {"text": "b", "completed": False},
            {"title": "c", "status": "done"}, {"step": "d", "status": "inProgress", "priority": "high"},
            {"content": "e", "status": "canceled"},
        ]
    }  # fmt: skip
    tasks = read_task_list(given)
    assert [task.state for task in tasks] == ["completed", "pending", "completed", "in_progress", "cancelled"]
    assert tasks[3] == Task("d", "in_progress", "high")
    assert summarize_tasks(tasks) == "2 of 5 done; now: d"
    assert short_input(given, 30) == "2 of 5 done; now: d"


def test_markdown_list_has_its_tasks_and_states() -> None:
    given = {"todos": "# Parser\n- [x] Read the grammar\n  * [ ] Write the parser\n\n"}
    assert read_task_list(given) == (Task("Read the grammar", "completed"), Task("Write the parser", "pending"))
    assert summarize_tasks(read_task_list(given)) == "1 of 2 done"


@pytest.mark.parametrize(
    "given",
    [None, [], {"todos": []}, {"todos": "- [ ] a\nand b"}, {"todos": "a"}, {"todos": [{"content": "a"}]},
     {"plan": [{"status": "done"}]}, {"op": "init", "list": [{"items": "a"}]}, {"op": "init", "list": ["a"]},
     {"op": "done", "list": [{"items": ["a"]}]}, {"entries": [{"content": "a", "status": "done"}, 5]},
     {"todos": [{"content": 5, "status": "done"}]}],
)  # fmt: skip
def test_other_inputs_have_no_tasks(given: Any) -> None:
    assert read_task_list(given) == ()
