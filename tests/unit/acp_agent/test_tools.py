"""Kinds, titles and plans of tool calls."""

from typing import Any

import pytest

from agent_mux.acp_server.tools import LONGEST_TITLE, read_plan, tool_kind, tool_title


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bash", "execute"), ("run_shell_command", "execute"), ("exec_command", "execute"), ("Read", "read"),
        ("read_file", "read"), ("Edit", "edit"), ("apply_patch", "edit"), ("NotebookEdit", "edit"),
        ("str_replace_editor", "edit"), ("WebFetch", "fetch"), ("WebSearch", "fetch"), ("Grep", "search"),
        ("Glob", "search"), ("list_directory", "search"), ("TodoWrite", "think"), ("update_plan", "think"),
        ("delete_file", "delete"), ("rename", "move"), ("AskUserQuestion", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_kinds(name: str, kind: str) -> None:
    assert tool_kind(name) == kind


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ({"command": "make  all"}, "make all"), ({"command": ["ls", "-l"]}, "ls -l"), ({"cmd": ""}, "Tool"),
        ({"file_path": "/a"}, "Tool /a"), ({"pattern": "x"}, "Tool x"), ({"path": 5}, "Tool"), (None, "Tool"),
        (["x"], "Tool"), ({"command": 5}, "Tool"),
    ],
)  # fmt: skip
def test_titles(given: Any, title: str) -> None:
    assert tool_title("Tool", given) == title


def test_a_title_is_not_longer_than_a_line() -> None:
    assert len(tool_title("Tool", {"command": "x" * 5000})) == LONGEST_TITLE


@pytest.mark.parametrize(
    "given",
    [None, {}, {"plan": "1. do"}, {"todos": []}, {"todos": [1]}, {"todos": [{"content": "x"}]},
     {"todos": [{"status": "pending"}]}, {"todos": [{"content": "x", "status": "dreamt"}]},
     {"todos": [{"content": "x", "status": ["pending"]}]}],
)  # fmt: skip
def test_inputs_without_a_plan(given: Any) -> None:
    assert read_plan(given) is None


@pytest.mark.parametrize("priority", [["high"], {}, 5, None])
def test_a_priority_of_another_type_is_medium(priority: Any) -> None:
    plan = read_plan({"todos": [{"content": "x", "status": "pending", "priority": priority}]})
    assert plan is not None
    assert [(entry.status, entry.priority) for entry in plan.entries] == [("pending", "medium")]


def test_states_of_all_agents_are_states_of_the_protocol() -> None:
    done = {"title": "a", "status": "done"}
    plan = read_plan({"todos": [done, {"step": "b", "status": "inProgress"}, {"text": "c", "status": "cancelled"}]})
    assert plan is not None
    assert [(entry.content, entry.status) for entry in plan.entries] == [
        ("a", "completed"), ("b", "in_progress"), ("c", "completed"),
    ]  # fmt: skip
