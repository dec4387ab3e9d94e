"""`grep` with ripgrep and with the worker, which return the same output."""

import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.tools.builtin.grep import GrepTool
from agent_loop.tools.builtin.grep_process import MatchReader
from agent_loop.tools.tool import ToolContext, result_of
from agent_loop.workspace import Workspace
from agent_mux_testing.provision import find_tool

pytestmark = pytest.mark.anyio


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def installed_ripgrep() -> str | None:
    provisioned = find_tool("ripgrep")
    return shutil.which("rg") or (None if provisioned is None else str(provisioned.program))


RIPGREP = installed_ripgrep()
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
WORKER = GrepTool(program=lambda: None)


@pytest.fixture(params=[pytest.param(RIPGREP, marks=needs_ripgrep, id="ripgrep"), pytest.param(None, id="worker")])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Files:
    files = Files(tmp_path)
    files.tools["grep"] = GrepTool(program=lambda: request.param)
    return files


@pytest.fixture
def tree(files: Files) -> Files:
    files.put("a/x.py", "one\ntwo foo\n")
    files.put("a-b/z", b"caf\xff foo\n")
    files.put("a.py", "foo\r\nbar\r\nFoo foo")
    files.put("ignored", "foo")
    files.put("sub/.gitignore", "*.log\n!keep.log\n")
    files.put("sub/x.log", "foo")
    files.put("sub/keep.log", "foo")
    files.put(".git/config", "foo")
    files.put(".hidden", "foo")
    files.put("binary", b"foo\n" + b"x" * 100_000 + b"\0foo")
    files.put(".gitignore", "ignored\n")
    (files.root / "link").symlink_to("a.py")
    return files


async def test_grep_content_has_path_line_number_and_line(tree: Files) -> None:
    assert await tree.text("grep", pattern="foo") == (
        ".hidden:1:foo\na/x.py:2:two foo\na-b/z:1:caf\ufffd foo\na.py:1:foo\na.py:3:Foo foo\nsub/keep.log:1:foo"
    )


async def test_grep_files_and_count(tree: Files) -> None:
    assert await tree.text("grep", pattern="foo", path="a", output_mode="files") == "a/x.py"
    assert await tree.text("grep", pattern="foo", glob="*.py", output_mode="count") == "a/x.py:1\na.py:2"


async def test_grep_searches_an_ignored_file_that_is_named(tree: Files) -> None:
    assert await tree.text("grep", pattern="foo", path="a/x.py") == "a/x.py:2:two foo"
    assert await tree.text("grep", pattern="foo", path="ignored", output_mode="count") == "ignored:1"
    assert await tree.text("grep", pattern="foo", path="link", output_mode="files") == "a.py"


async def test_grep_ignore_case(tree: Files) -> None:
    assert await tree.text("grep", pattern="^FOO", glob="a.py", ignore_case=True) == "a.py:1:foo\na.py:3:Foo foo"


async def test_grep_head_limit_is_250_and_offset_continues(files: Files) -> None:
    files.put("a", "x\n" * 300)
    lines = (await files.text("grep", pattern="x")).split("\n")
    assert (len(lines), lines[249:]) == (252, ["a:250:x", "", "[more lines follow; continue with offset=250]"])
    assert (await files.text("grep", pattern="x", offset=250)).split("\n")[::49] == ["a:251:x", "a:300:x"]
    assert await files.text("grep", pattern="x", offset=300) == "No match for 'x' in '.' after the first 300 lines."


async def test_grep_reports_regex_errors(files: Files) -> None:
    with pytest.raises(ToolError, match="the search failed: "):
        await files.call("grep", pattern="(")
    with pytest.raises(ToolError, match="NUL"):
        await files.call("grep", pattern="a\0")
    with pytest.raises(ToolError, match="pattern is a regular expression: put a backslash before special characters"):
        await files.call("grep", pattern="f(oo")


async def test_absolute_glob_below_the_searched_directory_matches(tree: Files) -> None:
    assert await tree.text("grep", pattern="two", glob=f"{tree.root}/a/*.py") == "a/x.py:2:two foo"


@pytest.mark.parametrize("pattern", ["-e", "--files", "-", "--pre=touch"])
async def test_grep_patterns_are_never_flags_and_there_is_no_shell(files: Files, pattern: str) -> None:
    files.put("a", f"{pattern}\n$(touch made)\n")
    assert await files.text("grep", pattern=pattern, output_mode="files") == "a"
    assert await files.text("grep", pattern=r"\$\(touch made\)") == "a:2:$(touch made)"
    assert names_in(files.root) == ["a"]


async def test_grep_does_not_leave_the_workspace(files: Files, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret")
    (files.root / "out").symlink_to(outside)
    (files.root / "file").symlink_to(outside / "secret")
    assert await files.text("grep", pattern="secret") == "No match for 'secret' in '.'."
    for path in ("out", "file", str(outside), ".."):
        with pytest.raises(WorkspaceError, match="leads out of the workspace"):
            await files.call("grep", pattern="secret", path=path)


async def test_grep_cuts_long_lines_and_skips_large_files(files: Files) -> None:
    files.put("a", "x" * 2000)
    with (files.root / "large").open("wb") as file:
        file.write(b"x\n")
        file.truncate(10 * 1024 * 1024 + 1)
    assert await files.text("grep", pattern="x+") == f"a:1:{'x' * 500}..."


async def test_grep_stops_when_it_has_enough_lines(files: Files) -> None:
    for n in range(300):
        files.put(f"{n:03}", "x\n" * 1000)
    assert (await files.text("grep", pattern="x", head_limit=1)).startswith("000:1:x\n")


async def test_grep_uses_ripgrep_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake ripgrep reports its arguments, directory and environment."""
    program = tmp_path / "bin" / "rg"
    program.parent.mkdir()
    body = (
        "import json, os, sys\n"
        "output = {'arguments': sys.argv[1:], 'directory': os.getcwd(), 'environment': sorted(os.environ)}\n"
        "data = {'path': {'text': './f'}, 'lines': {'text': json.dumps(output)}, 'line_number': 1}\n"
        "print(json.dumps({'type': 'match', 'data': data}))\n"
        "print(json.dumps({'type': 'end', 'data': {'path': {'text': './f'}, 'binary_offset': None}}))\n"
    )
    program.write_text(f"#!{sys.executable} -IS\n{body}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("agent_loop.tools.builtin.grep_process.MAX_WIDTH", 10_000)
    (tmp_path / "root").mkdir()
    output = await Files(tmp_path / "root").text("grep", pattern="--x")
    assert "'.'" in output.replace('"', "'")
    assert "--regexp=--x" in output
    assert str(tmp_path / "root") in output
    assert "PATH" not in output.partition("environment")[2]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A fake ripgrep that writes its process id to a file and sleeps."""
    program, pid_path = tmp_path / "rg", tmp_path / "pid"
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, time\n"
        f"open('{pid_path}.new', 'w').write(str(os.getpid()))\n"
        f"os.rename('{pid_path}.new', '{pid_path}')\ntime.sleep(600)\n"
    )
    program.chmod(0o700)
    yield str(program), pid_path
    if pid_path.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_path.read_text()), signal.SIGKILL)


async def test_grep_cancellation_kills_the_process(tmp_path: Path, sleeper: tuple[str, Path]) -> None:
    program, pid_path = sleeper
    (tmp_path / "root").mkdir()
    context = ToolContext(call_id="1", tool_name="grep", workspace=Workspace(tmp_path / "root"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(GrepTool(program=lambda: program).execute, {"pattern": "x"}, context)
            while not pid_path.exists():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_path.read_text()), 0)


@pytest.mark.slow
async def test_grep_worker_times_out_on_catastrophic_backtracking(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.put("a", "a" * 60)
    files.tools["grep"] = replace(WORKER, timeout=1.0)
    with pytest.raises(ToolError, match="longer than 1 seconds; use a narrower path"):
        await files.call("grep", pattern="(a*)*b")


def test_invalid_lines_of_output_are_ignored() -> None:
    reader = MatchReader(keep=1, includes=lambda _name: True)
    for line in (b"", b"{", b"[]", b'{"type": "match"}', b'{"type": "end", "data": {"path": {}}}', b"\xff"):
        assert reader.receive(line) is None


@pytest.mark.slow
@needs_ripgrep
@settings(max_examples=25)
@given(
    contents=st.dictionaries(
        st.sampled_from(["a", "b.py", "c/d", "c/e.py", "c.x", "ig", "c/ig", "Z"]),
        st.lists(
            st.sampled_from([b"foo", b"bar foo", b"", b"\r", b"f\xc3\xb6o", b"\xff", b"FOO", b"x" * 600, b"\0"]),
            max_size=5,
        ).map(b"\n".join),
    ),
    rules=st.sampled_from(["", "ig\n", "c/\n", "*.py\n!b.py\n", "/ig\n"]),
    arguments=st.fixed_dictionaries(
        {"pattern": st.sampled_from(["foo", "^$", "o+$", "f.o", r"\w{2,}", "(?i)foo"])},
        optional={
            "path": st.sampled_from([".", "c", "a", "nope"]),
            "glob": st.sampled_from(["*.py", "c/*", "**"]),
            "output_mode": st.sampled_from(["content", "files", "count"]),
            "ignore_case": st.booleans(),
            "head_limit": st.integers(1, 5),
            "offset": st.integers(0, 5),
        },
    ),
)
def test_ripgrep_and_the_worker_return_the_same_output(
    contents: dict[str, bytes], rules: str, arguments: dict[str, Any]
) -> None:
    async def search(tool: GrepTool, root: Path) -> str:
        context = ToolContext(call_id="1", tool_name="grep", workspace=Workspace(root))
        with anyio.fail_after(60):
            try:
                return result_of(await tool.execute(dict(arguments), context)).text
            except (WorkspaceError, InvalidArgumentsError) as error:
                return str(error)

    async def both() -> None:
        with tempfile.TemporaryDirectory() as root:
            files = Files(Path(root))
            files.put(".gitignore", rules)
            for name, content in contents.items():
                files.put(name, content)
            assert await search(GrepTool(program=lambda: RIPGREP), Path(root)) == await search(WORKER, Path(root))

    anyio.run(both)
