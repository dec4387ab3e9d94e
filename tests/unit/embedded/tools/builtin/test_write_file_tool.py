"""`write_file`."""

from hashlib import sha256
from pathlib import Path

import pytest
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.write import WriteTool
from agent_loop.tools.effects import FileWritten

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_write_file_reports_created_updated_or_no_change(files: Files) -> None:
    created = await files.call("write_file", path="new/dir/a", content="é\r\n")
    assert created.text == "Created new/dir/a (4 bytes)."
    assert created.effects == (FileWritten("new/dir/a", 4, created=True),)
    same = await files.call("write_file", path="new/dir/a", content="é\r\n")
    assert (same.text, same.effects) == ("No change needed: new/dir/a already has this content.", ())
    updated = await files.call("write_file", path="new/dir/a", content="no newline")
    assert updated.text == "Updated new/dir/a (10 bytes)."
    assert updated.effects == (FileWritten("new/dir/a", 10, created=False),)
    assert files.get("new/dir/a") == b"no newline"


async def test_write_file_keeps_the_hash_in_the_state(files: Files) -> None:
    await files.call("write_file", path="./a", content="x")
    assert files.state.files == {"a": sha256(b"x").hexdigest()}


async def test_prior_content_for_tool_before(files: Files) -> None:
    tool, context = WriteTool(), files.context("write_file")
    assert tool.prior_content({"path": "a", "content": "x"}, context) is None
    files.put("a", "before")
    assert tool.prior_content({"path": "a", "content": "x"}, context) == "before"
    assert tool.prior_content({"path": "../a", "content": "x"}, context) is None
    assert tool.prior_content({}, context) is None


async def test_write_file_rejects_what_it_cannot_write(files: Files) -> None:
    (files.root / "dir").mkdir()
    with pytest.raises(WorkspaceError, match="a directory"):
        await files.call("write_file", path="dir", content="x")
    with pytest.raises(WorkspaceError, match="leads out"):
        await files.call("write_file", path="/tmp/elsewhere", content="x")
    with pytest.raises(ToolError, match="UTF-8 cannot encode"):
        await files.call("write_file", path="a", content="\ud800")
    assert not (files.root / "a").exists()
