"""`ls` and `glob`, and the tools together."""

import json
import os
from pathlib import Path

import anyio
import pytest
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.tools.builtin import file_tools, listing
from agent_loop.tools.tool import Tool, ToolContext, kind_of, risk_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_ls_returns_name_type_and_size_as_json(files: Files) -> None:
    files.put("b.txt", "123")
    files.put("dir/x", "")
    (files.root / "link").symlink_to("/etc")
    listed = json.loads(await files.text("ls"))
    assert [(entry["name"], entry["type"]) for entry in listed] == [
        ("b.txt", "file"), ("dir", "directory"), ("link", "symlink"),
    ]  # fmt: skip
    assert listed[0]["size"] == 3
    assert json.loads(await files.text("ls", path="dir"))[0]["name"] == "x"


async def test_ls_is_bounded(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_ENTRIES", 2)
    for name in "abc":
        files.put(name, "")
    result = await files.call("ls")
    assert [len(json.loads(result.content[0].text)), result.content[1].text] == [  # type: ignore[union-attr]
        2, "[2 of 3 entries; find the others with glob]",
    ]  # fmt: skip


async def test_ls_rejects_files_and_paths_outside(files: Files) -> None:
    files.put("a", "")
    errors = {"a": "'a' is not a directory, or goes through a file; read a", "..": "leads out", "nope": "not exist"}
    for path, error in errors.items():
        with pytest.raises(WorkspaceError, match=error):
            await files.call("ls", path=path)


async def test_absolute_pattern_below_the_searched_directory_matches(files: Files) -> None:
    files.put("src/a.py", "")
    assert await files.text("glob", pattern=f"{files.root}/**/*.py") == "src/a.py"
    assert await files.text("glob", pattern=f"{files.root}/src/*.py", path="src") == "src/a.py"


@pytest.mark.parametrize("pattern", ["/etc/*.conf", "../*.py", "~/*.py"])
async def test_pattern_that_cannot_match_is_explained(files: Files, pattern: str) -> None:
    files.put("a.py", "")
    assert await files.text("glob", pattern=pattern) == (
        f"No file matches {pattern!r} in '.'. Patterns are relative to `path`: give the directory as `path`."
    )


async def test_glob_lists_the_newest_first_and_respects_gitignore(files: Files) -> None:
    for age, name in enumerate(["c.py", "src/a.py", "src/b.py", "ignored/d.py", "e.txt"]):
        files.put(name, "")
        os.utime(files.root / name, ns=(age, age))
    files.put(".gitignore", "ignored/\n")
    assert await files.text("glob", pattern="**/*.py") == "src/b.py\nsrc/a.py\nc.py"
    assert await files.text("glob", pattern="*.py", path="src") == "src/b.py\nsrc/a.py"
    assert await files.text("glob", pattern="*.rs") == "No file matches '*.rs' in '.'."


async def test_glob_sorts_files_of_equal_age_by_name_and_notes_omitted_ones(files: Files) -> None:
    for name in ("b", "a", "c"):
        files.put(name, "")
        os.utime(files.root / name, ns=(5, 5))
    assert await files.text("glob", pattern="*", limit=2) == (
        "a\nb\n\n[2 of 3 files; use a narrower pattern or a larger limit]"
    )


async def test_glob_refuses_hostile_patterns(files: Files) -> None:
    with pytest.raises(ToolError, match="more than 64 patterns"):
        await files.call("glob", pattern="{a,b}" * 10)


async def test_glob_ends_when_it_is_cancelled(files: Files) -> None:
    files.put("a/b", "")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await files.call("glob", pattern="*")
    assert scope.cancelled_caught


def test_file_tools_are_tools_with_kind_risk_and_a_schema_without_references() -> None:
    tools = file_tools()
    names = ["read_file", "write_file", "edit", "multi_edit", "apply_patch", "ls", "glob", "grep"]
    assert [tool.name for tool in tools] == names
    assert all(isinstance(tool, Tool) for tool in tools)
    assert {tool.name for tool in tools if kind_of(tool) == "edit"} == set(names[1:5])
    assert {tool.name for tool in tools if risk_of(tool) == "low"} == {"read_file", "ls", "glob", "grep"}
    for tool in tools:
        schema = json.dumps(tool.parameters)
        assert tool.parameters["type"] == "object"
        assert "$ref" not in schema
        assert "title" not in schema


async def test_file_tools_reject_missing_workspace_and_wrong_arguments(files: Files) -> None:
    arguments = {
        "read_file": {"path": "a"}, "write_file": {"path": "a", "content": ""}, "ls": {}, "glob": {"pattern": "*"},
        "edit": {"path": "a", "old_string": "a", "new_string": "b"}, "grep": {"pattern": "a"},
        "multi_edit": {"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]},
        "apply_patch": {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"},
    }  # fmt: skip
    for tool in file_tools():
        with pytest.raises(ToolError, match="no workspace"):
            await tool.execute(dict(arguments[tool.name]), ToolContext(call_id="1", tool_name=tool.name))
        with pytest.raises(InvalidArgumentsError):
            await tool.execute({"path": 5}, files.context(tool.name))
