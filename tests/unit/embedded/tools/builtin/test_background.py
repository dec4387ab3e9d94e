"""Background commands of the shell, with real processes."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.tools.builtin import BackgroundCommands, ShellTool, background, default_tools
from agent_loop.tools.builtin.processes import MARK, StartedCommand, find_processes
from agent_loop.tools.tool import ToolContext, ToolResult
from agent_loop.workspace import Workspace

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere only process groups are known")
PATIENCE = 60


class Bench:
    """The tools of a shell with background commands."""

    def __init__(self, root: Path) -> None:
        self.mark = root.name.replace("-", "_")
        self.commands = BackgroundCommands()
        self._count = 0
        shell = ShellTool(background=self.commands, grace=0.5, new_mark=self._new_mark)
        self.tools = {tool.name: tool for tool in default_tools(shell)}
        self.workspace = Workspace(root)

    def _new_mark(self) -> str:
        self._count += 1
        return f"{self.mark}_{self._count}"

    def call(self, name: str, **arguments: Any) -> str:
        context = ToolContext(call_id="1", tool_name=name, workspace=self.workspace)

        async def bounded() -> str:
            with anyio.fail_after(PATIENCE):
                found = await self.tools[name].execute(arguments, context)
            assert isinstance(found, ToolResult)
            return found.text

        return anyio.run(bounded)

    def start(self, command: str) -> str:
        text = self.call("shell", command=command, background=True)
        return text.split("background as ")[1].split(".")[0]

    def output_until(self, name: str, expected: str) -> str:
        """Return all output until it contains a text."""
        text, deadline = "", time.monotonic() + PATIENCE
        while expected not in text:
            assert time.monotonic() < deadline, text
            text += self.call("shell_output", id=name, wait=5)
        return text

    def survivors(self) -> list[int]:
        return [pid for number in range(1, self._count + 1) for pid in alive(f"{self.mark}_{number}")]


def alive(mark: str) -> list[int]:
    return find_processes(StartedCommand(-1, MARK + mark))


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.commands.close()


def test_background_command_runs_while_others_do_and_its_output_is_read_in_parts(bench: Bench) -> None:
    name = bench.start("echo first; until [ -e go ]; do sleep 0.05; done; echo second; exit 3")
    assert "first" in bench.output_until(name, f"({name}: running)")
    bench.call("shell", command="touch go")
    rest = bench.output_until(name, f"({name}: exit 3)")
    assert "second" in rest
    assert "first" not in rest
    assert bench.call("shell_output", id=name) == f"(no new output)\n({name}: exit 3)"


@pytest.mark.slow
@linux
def test_stopping_ends_all_processes_of_the_command(bench: Bench) -> None:
    name = bench.start("trap '' TERM; setsid sleep 1000 & sleep 1000 & echo up; wait")
    bench.output_until(name, "up")
    assert "running" not in bench.call("shell_stop", id=name)
    assert bench.survivors() == []


@linux
def test_closing_ends_all_commands_and_removes_their_output(bench: Bench) -> None:
    names = [bench.start(f"echo up{number}; sleep 1000") for number in range(3)]
    for number, name in enumerate(names):
        bench.output_until(name, f"up{number}")
    files = [each.file for each in bench.commands._commands.values()]
    bench.commands.close()
    assert bench.survivors() == []
    assert not any(file.exists() for file in files)


@linux
def test_killed_keeper_leaves_no_process_after_a_stop(bench: Bench) -> None:
    name = bench.start("echo up; sleep 1000")
    bench.output_until(name, "up")
    bench.commands._commands[name].keeper.kill()
    bench.call("shell_stop", id=name)
    assert bench.survivors() == []


def test_nothing_is_signalled_after_a_command_that_ended_by_itself(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [bench.start("exit 0"), bench.start("exit 3")]
    for name in names:
        bench.output_until(name, "exit ")
    signalled: list[StartedCommand] = []
    monkeypatch.setattr(background, "signal_processes", lambda started, _: signalled.append(started))
    bench.call("shell_stop", id=names[0])
    bench.commands.close()
    assert signalled == []  # the ids of the keepers may be those of other processes


def test_character_that_is_read_in_two_calls_is_whole(bench: Bench) -> None:
    name = bench.start(r"printf 'a\303'; until [ -e go ]; do sleep 0.05; done; printf '\251b'")
    command = bench.commands._commands[name]
    eventually(lambda: command.size == 2)
    assert bench.call("shell_output", id=name) == f"a\n({name}: running)"
    bench.call("shell", command="touch go")
    eventually(lambda: command.keeper.poll() is not None)
    assert bench.call("shell_output", id=name) == f"éb\n({name}: exit 0)"


def test_incomplete_character_is_replaced_at_the_end(bench: Bench) -> None:
    name = bench.start(r"printf 'a\303'")
    eventually(lambda: bench.commands._commands[name].keeper.poll() is not None)
    assert bench.call("shell_output", id=name) == f"a\ufffd\n({name}: exit 0)"


AGENT = """
import sys
from pathlib import Path
import anyio
from agent_loop.tools.builtin import BackgroundCommands, ShellTool
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace import Workspace
shell = ShellTool(background=BackgroundCommands(), grace=0.5, new_mark=lambda: sys.argv[1])
context = ToolContext(call_id="1", tool_name="shell", workspace=Workspace(sys.argv[2]))
anyio.run(shell.execute, {"command": "setsid sleep 1000 & touch up; sleep 1000", "background": True}, context)
print("started", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@linux
def test_killed_agent_leaves_no_background_process(tmp_path: Path) -> None:
    mark = tmp_path.name.replace("-", "_")
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, mark, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        eventually((tmp_path / "up").exists)
        assert alive(mark)
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.communicate(timeout=PATIENCE)
    eventually(lambda: not alive(mark))


def test_long_output_has_beginning_end_and_the_file(bench: Bench) -> None:
    name = bench.start("echo begin; head -c 200000 /dev/zero | tr '\\0' x; echo; echo end")
    eventually(lambda: bench.commands._commands[name].keeper.poll() is not None)
    text = bench.call("shell_output", id=name)
    assert text.startswith("begin\n")
    assert "bytes left out; the whole output is in " in text
    assert text.endswith(f"end\n({name}: exit 0)")
    assert len(text) < background.MAX_SHOWN + 1000


def test_runaway_output_ends_the_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_OUTPUT", 1_000_000)
    name = bench.start("yes")
    assert "[ended: the output exceeded 1000000 bytes]" in bench.output_until(name, "exit ")


def test_unknown_id_names_the_known_ones(bench: Bench) -> None:
    name = bench.start("sleep 1000")
    with pytest.raises(InvalidArgumentsError, match=rf"no background command 'bg9'; known: {name} \(running\): sleep"):
        bench.call("shell_output", id="bg9")


def test_number_of_running_commands_is_limited(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_RUNNING", 1)
    bench.start("sleep 1000")
    with pytest.raises(ToolError, match="1 background commands are running; stop one"):
        bench.start("sleep 1000")


def test_shell_without_background_commands_offers_none() -> None:
    tools = {tool.name: tool for tool in default_tools()}
    assert "background" not in tools["shell"].parameters["properties"]
    assert not {"shell_output", "shell_stop"} & set(tools)
