"""File tools: registration, workspace, record of written files, truncation."""

import hashlib
from pathlib import Path

import pytest
from tests.unit.embedded.middleware.harness import Around, Probe, text_result

from agent_loop.context.tool_outputs import truncate_middle
from agent_loop.messages import Image, Text, ToolCall
from agent_loop.middleware import FilesystemMiddleware
from agent_loop.middleware.filesystem import FILE_TOOLS
from agent_loop.state import AgentState
from agent_loop.tools.effects import FileDeleted, FilePatched, FileRead, FileWritten
from agent_loop.tools.tool import RawTool, ToolContext, ToolResult, label_of, risk_of
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio


async def test_filesystem_middleware_registers_the_file_tools_and_the_shell(tmp_path: Path) -> None:
    around = Around(FilesystemMiddleware(Workspace(tmp_path)))
    await around.begin()
    assert {tool.name for tool in around.tools} == {*FILE_TOOLS, "shell"}


async def test_a_tool_the_agent_has_already_stays(tmp_path: Path) -> None:
    own = Probe("ls")
    around = Around(FilesystemMiddleware(Workspace(tmp_path), tools=[Probe("ls"), Probe("more")]), tools=(own,))
    await around.begin()
    assert around.tool("ls") is own
    assert [tool.name for tool in around.tools] == ["ls", "more"]


async def test_its_tools_work_in_its_workspace_and_are_otherwise_unchanged(tmp_path: Path) -> None:
    probe, workspace = Probe(), Workspace(tmp_path)
    around = Around(FilesystemMiddleware(workspace, tools=[probe]))
    await around.begin()
    tool = around.tool("probe")
    assert await tool.execute({}, ToolContext(call_id="1", tool_name="probe")) == "ok"
    assert probe.contexts[0].workspace is workspace
    assert (tool.description, label_of(tool), risk_of(tool)) == (probe.description, "Probe", "low")
    assert not isinstance(tool, RawTool)


async def test_files_that_a_tool_wrote_are_tracked_in_the_state(tmp_path: Path) -> None:
    around = Around(FilesystemMiddleware(Workspace(tmp_path), tools=[]))
    await around.begin()
    around.state.files["gone.txt"] = around.state.files["deleted.txt"] = "old"
    (tmp_path / "new.txt").write_text("new")
    (tmp_path / "patched.txt").write_text("patched")
    effects = (
        FileWritten("new.txt", 3, created=True),
        FilePatched("patched.txt", ""),
        FileWritten("gone.txt", 3, created=False),
        FileDeleted("deleted.txt"),
        FileRead("read.txt"),
        FileWritten("../outside.txt", 3, created=True),
    )
    await around.call_tool(ToolCall("1", "generate"), text_result("ok", effects=effects))
    assert around.state.files == {
        "new.txt": hashlib.sha256(b"new").hexdigest(),
        "patched.txt": hashlib.sha256(b"patched").hexdigest(),
    }


async def test_runs_side_by_side_note_their_own_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    middleware = FilesystemMiddleware(Workspace(tmp_path), tools=[])
    parent, child = Around(middleware, loop_id="parent"), Around(middleware, loop_id="child")
    await parent.begin()
    await child.begin()
    await parent.call_tool(ToolCall("1", "x"), text_result("ok", effects=(FileWritten("a", 1, created=True),)))
    assert (list(parent.state.files), child.state.files) == (["a"], {})
    await parent.end()
    parent.state = AgentState()
    await parent.call_tool(ToolCall("2", "x"), text_result("ok", effects=(FileWritten("a", 1, created=True),)))
    assert parent.state.files == {}


async def test_results_over_80000_characters_are_evicted_to_head_and_tail(tmp_path: Path) -> None:
    around = Around(FilesystemMiddleware(Workspace(tmp_path), tools=[]))
    text = "a" * 40_000 + "b" * 40_001
    image = Image("aGk=", "image/png")
    given = await around.call_tool(ToolCall("1", "shell"), ToolResult((Text(text), image), details={"exit_code": 0}))
    assert given.text == f"{'a' * 2_000}\n\n... (truncated 76001 characters) ...\n\n{'b' * 2_000}"
    assert (given.content[1], given.details) == (image, {"exit_code": 0})


@pytest.mark.parametrize(("name", "length"), [*((name, 80_001) for name in sorted(FILE_TOOLS)), ("shell", 80_000)])
async def test_excluded_tools_and_results_that_fit_are_never_evicted(tmp_path: Path, name: str, length: int) -> None:
    around = Around(FilesystemMiddleware(Workspace(tmp_path), tools=[]))
    result = text_result("x" * length)
    assert await around.call_tool(ToolCall("1", name), result) is result


def test_truncation_keeps_beginning_and_end() -> None:
    assert truncate_middle("0123456789", 9, 2) == "01\n\n... (truncated 6 characters) ...\n\n89"
