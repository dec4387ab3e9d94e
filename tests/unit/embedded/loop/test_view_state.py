"""State about what the model has seen follows the requests: compaction, hooks, reruns and branches remove results."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.embedded.fake_provider import FakeProvider, calls, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop.behavior import Behavior, ContextSettings
from agent_loop.hooks.contexts import ToolTransform, TransformContext
from agent_loop.messages import Text, ToolCall, ToolMessage
from agent_loop.state import Todo
from agent_loop.tools.builtin import WriteTodosTool, file_tools
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio
UNCHANGED = "unchanged since you last read it"


def reading(call_id: str) -> Any:
    return reply("", calls("read_file", call_id, path="a"))


def reader(tmp_path: Path, *answers: Any, **known: Any) -> Any:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(200)))
    return agent(FakeProvider(*answers), *file_tools(), workspace=Workspace(tmp_path), **known)


def outputs(one: Any) -> list[str]:
    return [message.text for message in one.messages if isinstance(message, ToolMessage)]


async def test_repeated_read_is_answered_by_a_stub_while_the_first_one_is_sent(tmp_path: Path) -> None:
    one = reader(tmp_path, reading("1"), reading("2"), reply("ok"))
    await streamed(one)
    assert UNCHANGED not in outputs(one)[0]
    assert UNCHANGED in outputs(one)[1]


async def test_read_after_a_rerun_or_a_branch_returns_the_file_again(tmp_path: Path) -> None:
    one = reader(tmp_path, reading("1"), reply("ok"), reading("2"), reply("ok"), reading("3"), reply("ok"))
    await streamed(one)
    await one.continue_run("rerun")
    assert UNCHANGED not in outputs(one)[0]
    await one.continue_run("branch", at=1)
    assert len(outputs(one)) == 1
    assert UNCHANGED not in outputs(one)[0]


async def test_read_after_compaction_returns_the_file_again(tmp_path: Path) -> None:
    context = ContextSettings(max_context_tokens=2_000, system_prompt_tokens=0, keep_recent=2, keep_first=1)
    fill = [reply("", calls("ls", f"ls{number}", path=".")) for number in range(4)]
    model_answers = [reading("1"), *fill, reading("2"), reply("ok")]
    one = reader(tmp_path, *model_answers, behavior=Behavior(context=context))
    (tmp_path / "a").write_text("word " * 1_200)
    await streamed(one)
    sent = [m.text for m in one.provider.requests[-2].messages if isinstance(m, ToolMessage) and m.tool_call_id == "1"]
    assert "word " * 1_200 not in "".join(sent)
    assert UNCHANGED not in outputs(one)[-1]


async def test_read_whose_result_a_hook_changed_is_repeated(tmp_path: Path) -> None:
    def shorten(context: ToolTransform) -> None:
        if context.call_id == "1":
            context.result = replace(context.result, content=(Text("(left out)"),))

    one = reader(tmp_path, reading("1"), reading("2"), reply("ok"), hooks={"tool:transform": shorten})
    await streamed(one)
    assert outputs(one)[0] == "(left out)"
    assert UNCHANGED not in outputs(one)[1]


async def test_read_that_a_hook_removes_from_requests_is_repeated(tmp_path: Path) -> None:
    def hide(context: TransformContext) -> None:
        context.messages = [
            replace(each, content=(Text("(hidden)"),)) if isinstance(each, ToolMessage) else each
            for each in context.messages
        ]

    one = reader(tmp_path, reading("1"), reading("2"), reply("ok"), hooks={"context:transform": hide})
    await streamed(one)
    assert UNCHANGED not in outputs(one)[1]


async def test_edit_after_a_branch_without_the_read_requires_a_read(tmp_path: Path) -> None:
    edit = ToolCall("2", "edit", {"path": "a", "old_string": "line 7\n", "new_string": ""})
    one = reader(
        tmp_path,
        *(reading("1"), reply("ok"), reply("", edit), reply("ok")),
        behavior=Behavior(require_read_before_edit=True),
    )
    await streamed(one)
    await one.continue_run("rerun")
    assert "was not read yet" in outputs(one)[0]


async def test_rerun_and_branch_restore_the_todos_of_the_kept_history() -> None:
    def todos(call_id: str, title: str) -> Any:
        return reply("", ToolCall(call_id, "write_todos", {"todos": [{"id": "1", "title": title}]}))

    model = FakeProvider(todos("1", "first"), reply("ok"), todos("2", "second"), reply("ok"), reply("ok"), reply("ok"))
    one = agent(model, WriteTodosTool())
    await streamed(one, "one")
    await streamed(one, "two")
    assert one.session.state.todos == [Todo("1", "second")]
    await one.continue_run("rerun")
    assert one.session.state.todos == [Todo("1", "first")]
    await one.continue_run("branch", at=1)
    assert one.session.state.todos == []
