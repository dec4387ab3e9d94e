"""Order of the calls of one answer: readers together, writers and commands alone and in the order given."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop.messages import ToolCall, ToolMessage
from agent_loop.tools.builtin import AskUserTool, ShellTool, file_tools
from agent_loop.tools.builtin.http import HTTPTool
from agent_loop.tools.function import function_tool
from agent_loop.tools.tool import Tool, is_read_only
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio


class Recorder:
    """Tools that record when their calls start and end, with checkpoints in between."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def tool(self, name: str, **known: Any) -> FakeTool:
        async def work() -> str:
            self.steps.append(f"+{name}")
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            self.steps.append(f"-{name}")
            return "ok"

        return FakeTool(name, work, **known)


async def steps_of(*names: str) -> str:
    recorder = Recorder()
    tools = [
        recorder.tool("read", kind="read"),
        recorder.tool("edit", kind="edit"),
        recorder.tool("shell", kind="execute"),
        recorder.tool("function"),
        recorder.tool("lookup", read_only=True),
    ]
    wanted = [calls(name, str(number)) for number, name in enumerate(names)]
    await streamed(agent(FakeProvider(reply("", *wanted), reply("ok")), *tools))
    return " ".join(recorder.steps)


async def test_writers_and_commands_run_one_by_one_in_the_order_given() -> None:
    assert await steps_of("edit", "shell", "function") == "+edit -edit +shell -shell +function -function"


async def test_readers_run_together_between_writers() -> None:
    steps = await steps_of("read", "lookup", "edit", "read", "lookup")
    first, last = steps.split(" +edit -edit ")
    for together in (first, last):
        assert sorted(together.split()[:2]) == ["+lookup", "+read"]
        assert sorted(together.split()[2:]) == ["-lookup", "-read"]


async def test_reader_behind_a_writer_sees_its_change() -> None:
    assert await steps_of("function", "read") == "+function -function +read -read"


async def test_command_behind_an_edit_sees_the_edited_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("old\n")
    wanted = [
        ToolCall("1", "edit", {"path": "state", "old_string": "old", "new_string": "new"}),
        ToolCall("2", "shell", {"command": "cat state"}),
        ToolCall("3", "write_file", {"path": "state", "content": "newer\n"}),
        ToolCall("4", "read_file", {"path": "state"}),
    ]
    one = agent(
        FakeProvider(reply("", *wanted), reply("ok")),
        *file_tools(),
        ShellTool(),
        workspace=Workspace(tmp_path),
    )
    _, result = await streamed(one)
    texts = [message.text for message in result.messages if isinstance(message, ToolMessage)]
    assert texts[1].startswith("new\n")
    assert "newer" in texts[3]


def test_tools_that_declare_nothing_count_as_writers() -> None:
    def look(path: str) -> str:
        """Look at a path."""
        return path

    http = HTTPTool(name="remote", description="Remote.", parameters={}, callback_url="http://localhost/")
    assert not is_read_only(FakeTool("mcp"))
    assert not is_read_only(FakeTool("fetch", kind="fetch"))
    assert not is_read_only(function_tool(look))
    assert not is_read_only(http)
    assert is_read_only(function_tool(look, read_only=True))
    assert is_read_only(function_tool(look, kind="read"))
    assert not is_read_only(function_tool(look, kind="read", read_only=False))


def test_built_in_tools_declare_their_effect() -> None:
    tools: list[Tool] = [*file_tools(), ShellTool(), AskUserTool()]
    readers = {tool.name for tool in tools if is_read_only(tool)}
    assert readers == {"read_file", "ls", "glob", "grep", "ask_user"}
