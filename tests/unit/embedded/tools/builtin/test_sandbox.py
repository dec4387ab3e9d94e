"""The sandbox of the shell, with real commands where the kernel has what it needs."""

import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.errors import ConfigurationError
from agent_loop.tools.builtin import BackgroundCommands, ShellSandbox, ShellTool, sandbox
from agent_loop.tools.builtin.sandbox import SandboxMode
from agent_loop.tools.tool import ToolContext, ToolResult, leaves_sandbox
from agent_loop.workspace import Workspace

POSSIBLE = ShellSandbox("auto", ()).obstacle is None
needs_kernel = pytest.mark.skipif(not POSSIBLE, reason="the kernel has no Landlock or no user namespaces")


class Bench:
    """A sandboxed shell in a workspace beside another directory."""

    def __init__(self, root: Path, *, network: bool = False, mode: SandboxMode = "required") -> None:
        self.workspace, self.outside = root / "workspace", root / "outside"
        self.workspace.mkdir()
        self.outside.mkdir()
        (self.outside / "file").write_text("content\n")
        self.sandbox = ShellSandbox(mode, [self.workspace], network=network)
        self.background = BackgroundCommands()
        self.tool = ShellTool(sandbox=self.sandbox, background=self.background)

    def run(self, command: str, *, background: bool = False) -> str:
        return self.call(self.tool, {"command": command, "background": background})

    def call(self, tool: ShellTool, arguments: dict[str, Any]) -> str:
        context = ToolContext(call_id="1", tool_name="shell", workspace=Workspace(self.workspace))

        async def bounded() -> str:
            with anyio.fail_after(60):
                found = await tool.execute(arguments, context)
            assert isinstance(found, ToolResult)
            return found.text

        return anyio.run(bounded)

    def close(self) -> None:
        self.background.close()
        self.sandbox.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path.resolve())
    yield bench
    bench.close()


@needs_kernel
def test_command_leaves_the_sandbox_only_if_the_tool_allows_it(bench: Bench) -> None:
    command = {"command": f"echo more >> {bench.outside}/file", "unsandboxed": True}
    for tool, has_left in ((bench.tool, False), (replace(bench.tool, may_leave_sandbox=True), True)):
        assert ("unsandboxed" in tool.parameters["properties"]) is has_left
        assert [leaves_sandbox(tool, given) for given in (command, {"command": "ls"})] == [has_left, False]
        bench.call(tool, command)
        assert (bench.outside / "file").read_text().endswith("more\n") is has_left


@needs_kernel
@pytest.mark.parametrize("given", ["true", "false", 1, None])
def test_argument_that_is_coerced_later_counts_as_leaving(bench: Bench, given: object) -> None:
    assert leaves_sandbox(replace(bench.tool, may_leave_sandbox=True), {"command": "ls", "unsandboxed": given})


def test_shell_without_a_sandbox_offers_none_to_leave() -> None:
    for sandboxed in (None, ShellSandbox("off", ())):
        tool = ShellTool(sandbox=sandboxed, may_leave_sandbox=True)
        assert "unsandboxed" not in tool.parameters["properties"]
        assert not leaves_sandbox(tool, {"command": "ls", "unsandboxed": True})


@needs_kernel
def test_commands_write_in_the_workspace_and_in_their_temporary_directory(bench: Bench) -> None:
    text = bench.run("mkdir a && echo one > a/b && mv a/b c && rm -r a && cat c && mktemp && echo x > /dev/null")
    assert text.startswith(f"one\n{bench.sandbox.temporary}/")
    assert "(exit 0" in text


@needs_kernel
@pytest.mark.parametrize(
    "command",
    [
        "echo x > {outside}/new",
        "echo x >> {outside}/file",
        "truncate -s 0 {outside}/file",
        "rm {outside}/file",
        "mv {outside}/file .",
        "ln {outside}/file . && echo x > file",
        "ln -s {outside} link && echo x > link/new",
        "mkdir {outside}/directory",
        "setsid sh -c 'echo x > {outside}/new'",
        '{python} -c \'open("{outside}/new", "w")\'',
        "unshare -rm mount --bind {outside} . && echo x > new",
    ],
)
def test_no_command_changes_files_outside(bench: Bench, command: str) -> None:
    text = bench.run(command.format(outside=bench.outside, python=sys.executable))
    assert "(exit 0" not in text
    assert [path.name for path in bench.outside.iterdir()] == ["file"]
    assert (bench.outside / "file").read_text() == "content\n"


@needs_kernel
def test_commands_read_files_outside(bench: Bench) -> None:
    assert bench.run(f"cat {bench.outside}/file").startswith("content\n")


CONNECT = '{python} -c \'import socket; socket.create_connection(("127.0.0.1", {port}), 20); print("con" + "nected")\''


@needs_kernel
@pytest.mark.parametrize("network", [False, True])
def test_commands_reach_the_network_only_if_it_is_allowed(tmp_path: Path, network: bool) -> None:
    bench = Bench(tmp_path.resolve(), network=network)
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = bench.run(CONNECT.format(python=sys.executable, port=server.getsockname()[1]))
    bench.close()
    assert ("connected" in text) is network


@needs_kernel
def test_processes_of_one_command_reach_each_other_without_network(bench: Bench) -> None:
    script = (
        'import socket; s = socket.create_server(("127.0.0.1", 0)); '
        'socket.create_connection(s.getsockname(), 20); print("con" + "nected")'
    )
    assert bench.run(f"{sys.executable} -c '{script}'").startswith("connected\n")


@pytest.mark.slow
@needs_kernel
def test_background_commands_are_in_the_sandbox(bench: Bench) -> None:
    name = bench.run(f"echo x > {bench.outside}/new", background=True).split("background as ")[1].split(".")[0]
    with anyio.from_thread.start_blocking_portal() as portal:
        text = ""
        while "exit" not in text:
            text = portal.call(bench.background.output, name, 30.0)
    assert "exit 0" not in text
    assert not (bench.outside / "new").exists()


@needs_kernel
def test_directory_of_the_shell_is_kept_in_the_sandbox(bench: Bench) -> None:
    (bench.workspace / "sub").mkdir()
    assert f"(working directory: {bench.workspace}/sub)" in bench.run("cd sub")


@needs_kernel
def test_temporary_directory_is_removed_at_the_end(bench: Bench) -> None:
    bench.run("touch $TMPDIR/file")
    assert bench.sandbox.temporary.is_relative_to(tempfile.gettempdir())
    bench.close()
    assert not bench.sandbox.temporary.exists()


@needs_kernel
def test_model_learns_where_it_can_write(bench: Bench) -> None:
    assert f"can write only in {bench.workspace} and in $TMPDIR. They have no network" in bench.sandbox.describe()


def without_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("import sys\nsys.exit('the sandbox cannot be set up: Landlock: Function not implemented')\n")
    monkeypatch.setattr(sandbox, "_PROGRAM", program)


def test_without_kernel_support_auto_runs_commands_and_states_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_kernel(monkeypatch, tmp_path)
    bench = Bench(tmp_path.resolve(), mode="auto")
    assert bench.sandbox.obstacle == "Landlock: Function not implemented"
    assert bench.sandbox.describe() == ""
    assert "(exit 0" in bench.run("true")


def test_without_kernel_support_required_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_kernel(monkeypatch, tmp_path)
    bench = Bench(tmp_path.resolve(), mode="required")
    with pytest.raises(
        ConfigurationError, match="cannot be sandboxed: Landlock: Function not implemented; use --sandbox"
    ):
        bench.run("true")


def test_off_starts_no_program_for_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_PROGRAM", tmp_path / "missing")
    assert ShellSandbox("off", [tmp_path]).wrap(("true",)) == (("true",), {})
