"""The working directory of the shell from one command to the next."""

import tempfile
from pathlib import Path

import anyio
import pytest

from agent_loop.state import AgentState
from agent_loop.tools.builtin import ShellTool
from agent_loop.tools.tool import ToolContext, result_of
from agent_loop.workspace import Workspace


class Bench:
    """A shell in a workspace, and the state of one session."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = AgentState()

    def run(self, command: str, *, shell: ShellTool | None = None, **arguments: str) -> str:
        tool = shell or ShellTool(clock=lambda: 0.0)
        context = ToolContext(call_id="1", tool_name="shell", workspace=Workspace(self.root), state=self.state)

        async def bounded() -> str:
            with anyio.fail_after(60):
                return result_of(await tool.execute({"command": command, **arguments}, context)).text

        return anyio.run(bounded)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = (tmp_path / "workspace").resolve()
    (root / "sub" / "deep").mkdir(parents=True)
    return Bench(root)


def test_cd_holds_for_the_next_command_and_is_reported(bench: Bench) -> None:
    assert bench.run("cd sub").endswith(f"(exit 0, 0ms)\n(working directory: {bench.root}/sub)")
    assert bench.run("pwd").startswith(f"{bench.root}/sub\n")
    bench.run("cd deep; false")
    assert bench.run("pwd").startswith(f"{bench.root}/sub/deep\n")
    assert "working directory" not in bench.run("cd ../..")


@pytest.mark.parametrize("command", ["cd sub && exit 3", "cd sub; kill -TERM $$", "set -e; cd sub; false"])
def test_directory_is_kept_however_the_command_ends(bench: Bench, command: str) -> None:
    bench.run(command)
    assert bench.run("pwd").startswith(f"{bench.root}/sub\n")


def test_cd_out_of_the_workspace_does_not_hold(bench: Bench) -> None:
    bench.run("cd sub")
    text = bench.run("cd /; pwd")
    assert f"(/ is outside of the workspace: the next command starts in {bench.root}/sub again)" in text
    assert bench.run("pwd").startswith(f"{bench.root}/sub\n")


def test_link_out_of_the_workspace_does_not_hold(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (bench.root / "link").symlink_to(tmp_path / "outside")
    assert "is outside of the workspace" in bench.run("cd link")
    assert bench.run("pwd").startswith(f"{bench.root}\n")


def test_directory_that_is_gone_is_replaced_by_the_workspace(bench: Bench) -> None:
    bench.run("cd sub/deep")
    (bench.root / "sub" / "deep").rmdir()
    assert bench.run("pwd").startswith(f"{bench.root}\n")


def test_directory_that_the_command_removes_is_replaced_with_a_note(bench: Bench) -> None:
    bench.run("cd sub/deep")
    note = f"(the working directory was removed: the next command starts in {bench.root})"
    assert bench.run("rm -r ../../sub").endswith(f"(exit 0, 0ms)\n{note}")
    assert bench.run("pwd").startswith(f"{bench.root}\n")
    assert "pwd" not in bench.run("mkdir new; cd new; rmdir ../new")


def test_given_directory_is_relative_to_the_workspace(bench: Bench) -> None:
    bench.run("cd sub/deep")
    assert bench.run("pwd", cwd="sub").startswith(f"{bench.root}/sub\n")
    assert bench.run("pwd", cwd=".").startswith(f"{bench.root}\n")


def test_directory_is_part_of_the_session_and_of_no_other(bench: Bench) -> None:
    bench.run("cd sub")
    assert bench.state.extra == {"shell": {"directory": f"{bench.root}/sub"}}
    bench.state = AgentState()
    assert bench.run("pwd").startswith(f"{bench.root}\n")


def test_keep_directory_false_starts_each_command_in_the_workspace(bench: Bench) -> None:
    shell = ShellTool(keep_directory=False)
    bench.run("cd sub", shell=shell)
    assert bench.run("pwd", shell=shell).startswith(f"{bench.root}\n")


def test_command_sees_no_arguments_of_the_wrapper_in_its_messages(bench: Bench) -> None:
    assert "bash: line 1: missing-program: command not found" in bench.run("missing-program")


@pytest.mark.parametrize("keeps", [True, False])
def test_file_for_the_directory_exists_only_if_it_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    made: list[object] = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: made.append(None) or make())
    text = bench.run("cd deep; pwd", shell=ShellTool(clock=lambda: 0.0, keep_directory=keeps), cwd="sub")
    assert text.startswith(f"{bench.root}/sub/deep\n")
    assert (len(made), "shell" in bench.state.extra) == (int(keeps), keeps)
