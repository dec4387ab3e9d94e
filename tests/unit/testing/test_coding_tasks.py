"""The coding tasks of the benchmarks: their work solves them without a harness, and compiles to each harness."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.coding_tasks.harnesses import HARNESSES, Harness, compile_step
from benchmarks.coding_tasks.model import DONE, CodingModel
from benchmarks.coding_tasks.steps import Answer, Change, Look, Mistake, MultiChange, Run, Step, Task
from benchmarks.coding_tasks.tasks import TASKS
from benchmarks.coding_tasks.workspaces import apply_work, failures_of, write_workspace

from agent_mux_testing.model_server import RequestContent, ScriptStep, ScriptText, ToolUse

NATIVE, PI, OPENCODE = HARNESSES
SUCCESS: Mapping[str, str] = {
    "native": "Edited it: replaced 1 place.",
    "pi": "Successfully replaced 1 block(s) in it.",
    "opencode": "Edit applied successfully.",
}


def test_tasks_are_forty_with_different_names_and_quirks() -> None:
    assert len(TASKS) == len({task.name for task in TASKS}) == len({task.quirk for task in TASKS}) == 40


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_hidden_tests_fail_before_the_work_and_pass_after_it(task: Task, tmp_path: Path) -> None:
    write_workspace(task, tmp_path)
    assert failures_of(task, tmp_path)
    apply_work(task, tmp_path)
    assert not failures_of(task, tmp_path)


# -- the model


class Conversation:
    """A model, and the requests of a harness that gives the results of a test."""

    def __init__(self, harness: Harness, *work: Answer | Step) -> None:
        task = Task(name="x", quirk="x", prompt="x", files={}, hidden="", work=work)
        self.model = CodingModel(task, harness, Path("/workspace"))
        self._messages: list[Any] = [{"role": "user", "content": "x"}]

    def ask(self, *results: str) -> ScriptStep:
        """Return the next answer, after these results of the calls of the answer before."""
        calls = [message["id"] for message in self._messages if message["role"] == "call"]
        for call_id, text in zip(calls, results, strict=True):
            self._messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        self._messages = [message for message in self._messages if message["role"] != "call"]
        step = self.model.choose(RequestContent.of({"messages": self._messages, "tools": [{}]}), aux=False).step
        self._messages += [{"role": "call", "id": call.id} for call in calls_of(step)] if not is_faulty(step) else []
        return step


def is_faulty(step: ScriptStep) -> bool:
    return step.is_cut or step.stop_reason is not None or step.error is not None


def calls_of(step: ScriptStep) -> list[ToolUse]:
    return [block for block in step.blocks or () if isinstance(block, ToolUse)]


def call_of(step: ScriptStep) -> tuple[str, dict[str, Any]]:
    (call,) = calls_of(step)
    return call.name, call.input


def text_of(step: ScriptStep) -> str:
    return "".join(block.text for block in step.blocks or () if isinstance(block, ScriptText))


def test_steps_are_compiled_to_the_tools_of_each_harness() -> None:
    change, run = MultiChange("a.py", (("1", "2"), ("3", "4"))), Run("make", seconds=5)
    compiled = {
        harness.agent: [
            (call.name, call.input) for step in (change, run) for call in compile_step(harness, step, Path("/w"))
        ]
        for harness in HARNESSES
    }
    assert compiled["native"] == [
        (
            "multi_edit",
            {
                "path": "a.py",
                "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
            },
        ),
        ("shell", {"command": "make", "timeout": 5}),
    ]
    assert compiled["pi"] == [
        ("edit", {"path": "a.py", "edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": "4"}]}),
        ("bash", {"command": "make", "timeout": 5}),
    ]
    assert compiled["opencode"] == [
        ("edit", {"filePath": "/w/a.py", "oldString": "1", "newString": "2"}),
        ("edit", {"filePath": "/w/a.py", "oldString": "3", "newString": "4"}),
        ("bash", {"command": "make", "description": "Run it", "timeout": 5000}),
    ]


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.agent)
def test_every_answer_of_every_task_can_be_sent(harness: Harness) -> None:
    for task in TASKS:
        model = CodingModel(task, harness, Path("/workspace"))
        faults = sum(len(answer.faults) for answer in task.answers)
        messages: list[Any] = [{"role": "user", "content": task.prompt}]
        steps = [step for answer in task.answers for step in answer.steps]
        shown = " ".join((step.step if isinstance(step, Mistake) else step).shows for step in steps)
        for _ in range(len(task.answers) + faults):
            step = model.choose(RequestContent.of({"messages": messages, "tools": [{}]}), aux=False).step
            for call in calls_of(step):
                content = f"{SUCCESS[harness.agent]} {shown}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        assert not model.finished, task.name
        last = model.choose(RequestContent.of({"messages": messages, "tools": [{}]}), aux=False).step
        assert (text_of(last), model.reason) == (DONE, ""), task.name


def test_failed_edit_is_repeated_with_the_exact_text_after_reading_the_file() -> None:
    conversation = Conversation(PI, Change("a.py", "exact", "new", wrong="wrong"))
    assert call_of(conversation.ask())[1]["edits"] == [{"oldText": "wrong", "newText": "new"}]
    assert call_of(conversation.ask("Could not find the exact text in a.py.")) == ("read", {"path": "a.py"})
    assert call_of(conversation.ask("exact"))[1]["edits"] == [{"oldText": "exact", "newText": "new"}]
    assert text_of(conversation.ask(SUCCESS["pi"])) == DONE
    assert conversation.model.finished


def test_model_gives_up_after_three_failed_edits() -> None:
    conversation = Conversation(OPENCODE, Change("a.py", "exact", "new"))
    conversation.ask()
    for _ in range(2):
        conversation.ask("Could not find oldString in the file.")
        conversation.ask("text")
    assert "give up" in text_of(conversation.ask("Could not find oldString in the file."))
    assert conversation.model.reason == "Change a.py failed: 'Could not find oldString in the file.'"
    assert not conversation.model.finished


def test_pages_are_read_until_the_text_is_visible() -> None:
    conversation = Conversation(NATIVE, Look("log", shows="needle"))
    conversation.ask()
    assert call_of(conversation.ask("a\n[lines 1-9 of 20; re-read with offset=10 for more]"))[1]["offset"] == 10
    assert text_of(conversation.ask("needle")) == DONE


def test_malformed_call_is_repeated_without_the_mistake() -> None:
    conversation = Conversation(NATIVE, Mistake("wrong type", Look("a.py", shows="x")))
    assert call_of(conversation.ask()) == ("read_file", {"path": ["a.py"]})
    assert call_of(conversation.ask('{"error":"Validation error"}')) == ("read_file", {"path": "a.py"})
    assert text_of(conversation.ask("x")) == DONE


def test_cut_answer_is_repeated_whole() -> None:
    conversation = Conversation(PI, Answer((Change("a.py", "old", "new"),), faults=("cut", "rate limited")))
    cut = conversation.ask()
    assert cut.stop_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(calls_of(cut)[0].raw_input or "")
    error = conversation.ask().error
    assert error is not None
    assert error.status == 429
    assert call_of(conversation.ask())[1]["path"] == "a.py"
