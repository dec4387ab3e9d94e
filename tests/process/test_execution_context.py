"""Execution contexts: tools that run in another program (`amux-agent tool-host`), in containers and on this machine."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop import Agent, ExecutionContext, ScriptedProvider
from agent_loop.behavior import Behavior
from agent_loop.errors import ExecutionError, ToolError
from agent_loop.messages import Text
from agent_loop.providers.script import Script, ScriptedCall, Step
from agent_loop.state import AgentState
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import Tool, ToolContext, ToolResult, kind_of, preview_of_call

pytestmark = pytest.mark.anyio

PROGRAM = (sys.executable, "-m", "agent_loop.cli.main", "tool-host")
BUBBLEWRAP = shutil.which("bwrap")
ENTER = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", "/tmp", "/tmp", "--tmpfs", "/mnt"]
ALL = {
    "read_file", "write_file", "edit", "multi_edit", "apply_patch", "ls", "glob", "grep", "shell", "shell_output",
    "shell_stop",
}  # fmt: skip
ADD = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"


def can_isolate() -> bool:
    argv = [str(BUBBLEWRAP), *ENTER, "--unshare-net", "--unshare-pid", "true"]
    return BUBBLEWRAP is not None and subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0


def context_in(directory: Path, *command: str, **options: Any) -> ExecutionContext:
    return ExecutionContext(command, str(directory), program=options.pop("program", PROGRAM), **options)


def says(body: str) -> tuple[str, ...]:
    """Return a program that executes `body` instead of serving tools."""
    return sys.executable, "-c", f"import sys, time\n{body}"


class Calls:
    """Calls of the tools of a context, in one session."""

    def __init__(self, place: ExecutionContext) -> None:
        self.tools: dict[str, Tool] = {tool.name: tool for tool in place.tools}
        self.state = AgentState()
        self.updates: list[tuple[str, str]] = []
        self.count = 0

    async def __call__(self, tool: str, given: ToolContext | None = None, /, **arguments: Any) -> ToolResult:
        context = given or self.context(tool)
        result = await self.tools[tool].execute(arguments, replace(context, update=self._update))
        assert isinstance(result, ToolResult)
        return result

    def context(self, tool: str, **options: Any) -> ToolContext:
        self.count += 1
        return ToolContext(call_id=f"call-{self.count}", tool_name=tool, state=self.state, **options)

    async def _update(self, text: str, stream: str = "stdout") -> None:
        self.updates.append((stream, text))


async def wait_until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not holds():  # noqa: ASYNC110  # processes of others have no event
            await anyio.sleep(0.02)


def is_running(word: str) -> bool:
    """Whether a process has this argument."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                return True
        except OSError:
            continue
    return False


@pytest.fixture(autouse=True)
async def _bound() -> Any:
    with anyio.fail_after(60):
        yield


# -- tools


async def test_files_and_commands_are_those_of_the_context(tmp_path: Path) -> None:
    async with context_in(tmp_path) as place:
        call = Calls(place)
        assert set(call.tools) == ALL
        assert place.workspace == str(tmp_path)
        assert f"Working directory: {tmp_path}" in place.environment
        assert kind_of(call.tools["read_file"]) == "read"
        assert isinstance(call.tools["shell"], Tool)
        written = await call("write_file", path="a/b.txt", content="one\n")
        assert (tmp_path / "a" / "b.txt").read_text() == "one\n"
        assert [type(effect).__name__ for effect in written.effects] == ["FileWritten"]
        ran = await call("shell", command="cd a && cat b.txt && echo bad >&2 && exit 3")
        assert ran.effects == (CommandRan(3, "one\n", "bad\n"),)
        assert set(call.updates) >= {("stdout", "one\n"), ("stderr", "bad\n")}
        assert (await call("shell", command="pwd")).text.startswith(f"{tmp_path}/a\n")
        with pytest.raises(ToolError, match="'missing' does not exist; look for it with glob or ls"):
            await call("read_file", path="missing")


@pytest.mark.slow
async def test_state_of_reads_is_kept_here(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    strict = Behavior(require_read_before_edit=True, dedup_reads=True, read_line_numbers=False)
    async with context_in(tmp_path) as place:
        call = Calls(place)
        edit = {"path": "a.txt", "old_string": "one", "new_string": "two"}
        with pytest.raises(ToolError, match="was not read yet"):
            await call("edit", call.context("edit", behavior=strict), **edit)
        read = await call("read_file", call.context("read_file", behavior=strict), path="a.txt")
        assert read.content == (Text("one"),)
        assert list(call.state.reads) == ["a.txt"]
        again = await call("read_file", call.context("read_file", behavior=strict), path="a.txt")
        assert again.details["unchanged"] is True
        gone = call.context("read_file", behavior=strict, seen=lambda _: None)
        assert (await call("read_file", gone, path="a.txt")).content == (Text("one"),)
        await call("edit", call.context("edit", behavior=strict), **edit)
        assert set(call.state.files) == {"a.txt"}
        await call("apply_patch", patch="*** Begin Patch\n*** Delete File: a.txt\n*** End Patch")
        assert (call.state.files, call.state.reads) == ({}, {})


async def test_previews_and_prior_contents_are_those_of_the_context(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old\n")
    async with context_in(tmp_path) as place:
        call = Calls(place)
        preview = await anyio.to_thread.run_sync(preview_of_call, call.tools["apply_patch"], {"patch": ADD}, None)
        assert preview is not None
        assert (preview.paths, preview.diff.splitlines()[-1]) == (("new.txt",), "+new")
        broken = await anyio.to_thread.run_sync(preview_of_call, call.tools["apply_patch"], {"patch": "x"}, None)
        assert broken is None
        assert not hasattr(call.tools["edit"], "preview")
        read: Any = call.tools["write_file"].prior_content  # type: ignore[attr-defined]  # optional
        arguments = {"path": "old.txt", "content": ""}
        assert await anyio.to_thread.run_sync(read, arguments, call.context("write_file")) == "old\n"


async def test_agent_works_in_the_context(tmp_path: Path) -> None:
    steps = (
        Step(tool_calls=(ScriptedCall("shell", {"command": "echo done > result.txt; pwd"}),)),
        Step(matches=r"(?P<place>/\S+)", text="It is in {{place}}."),
    )
    async with context_in(tmp_path) as place:
        agent = Agent(ScriptedProvider(Script(steps=steps)), tools=place.tools, system_prompt=place.environment)
        result = await agent.run("Write the result.")
    assert result.text == f"It is in {tmp_path}."
    assert (tmp_path / "result.txt").read_text() == "done\n"


@pytest.mark.slow
async def test_concurrent_calls_have_their_own_replies(tmp_path: Path) -> None:
    texts: dict[int, str] = {}
    async with context_in(tmp_path) as place:
        call = Calls(place)

        async def run(number: int) -> None:
            texts[number] = (await call("shell", command=f"sleep 0.{number % 3}; echo {number}")).text

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(run, number)
    assert [texts[number].split("\n")[0] for number in range(12)] == [str(number) for number in range(12)]


@pytest.mark.slow
@pytest.mark.skipif(not can_isolate(), reason="bwrap is not installed, or cannot create namespaces here")
async def test_container_with_its_own_files_and_without_network(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    isolated = ("--unshare-net", "--unshare-pid", "--bind", str(shared), "/mnt/work")
    async with context_in(Path("/mnt/work"), str(BUBBLEWRAP), *ENTER, *isolated) as place:
        call = Calls(place)
        await call("write_file", path="a.txt", content="inside\n")
        found = await call("shell", command="cat /proc/net/dev; pwd; ls /mnt")
    assert (shared / "a.txt").read_text() == "inside\n"
    assert "work" not in os.listdir("/mnt")  # noqa: PTH208  # of this machine
    assert "eth0" not in found.text
    assert "/mnt/work\nwork\n" in found.text


# -- the end of calls and of the connection


async def test_cancelled_call_ends_its_processes_in_the_context(tmp_path: Path) -> None:
    async with context_in(tmp_path) as place:
        call = Calls(place)
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await call("shell", command="sleep 7311 & sleep 7312")

            tasks.start_soon(run)
            await wait_until(lambda: is_running("7312"))
            tasks.cancel_scope.cancel()
        assert not is_running("7311")
        assert not is_running("7312")
        assert "still here" in (await call("shell", command="echo still here")).text


@pytest.mark.slow
async def test_end_of_the_context_ends_background_commands(tmp_path: Path) -> None:
    async with context_in(tmp_path) as place:
        call = Calls(place)
        await call("shell", command="sleep 7313", background=True)
        await wait_until(lambda: is_running("7313"))
    assert not is_running("7313")
    with pytest.raises(ExecutionError, match="the execution context is lost: it was closed"):
        await call("shell", command="true")


@pytest.mark.slow
async def test_killed_agent_leaves_nothing_in_the_context(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import anyio, sys\n"
        "from agent_loop import ExecutionContext\n"
        "from agent_loop.tools.tool import ToolContext\n"
        "async def main():\n"
        f"    async with ExecutionContext([], {str(tmp_path)!r}, program={PROGRAM!r}) as place:\n"
        "        shell = next(tool for tool in place.tools if tool.name == 'shell')\n"
        "        context = ToolContext(call_id='1', tool_name='shell')\n"
        "        await shell.execute({'command': 'sleep 7314', 'background': True}, context)\n"
        "        await shell.execute({'command': 'sleep 7315'}, context)\n"
        "anyio.run(main)\n"
    )
    async with await anyio.open_process([sys.executable, str(program)], stdout=None, stderr=None) as agent:
        try:
            await wait_until(lambda: is_running("7314") and is_running("7315"))
        finally:
            agent.kill()
    await wait_until(lambda: not is_running("7314") and not is_running("7315"))


@pytest.mark.slow
async def test_killed_context_is_an_error_of_the_call(tmp_path: Path) -> None:
    async with context_in(tmp_path) as place:
        call = Calls(place)
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                with pytest.raises(ExecutionError, match="the execution context is lost: the command ended"):
                    await call(
                        "shell", command=f"echo $$ > {tmp_path}/child; echo $PPID > {tmp_path}/host; exec sleep 7316"
                    )

            tasks.start_soon(run)
            await wait_until(lambda: is_running("7316"))
            os.kill(int((tmp_path / "host").read_text()), signal.SIGKILL)
        with pytest.raises(ExecutionError, match="is lost"):
            await call("read_file", path="host")
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)  # a killed host cannot end it


# -- contexts that cannot be used


@pytest.mark.parametrize(
    ("command", "program", "problem"),
    [
        (("/missing/docker", "exec"), PROGRAM, "/missing/docker cannot be started for the execution context: No such"),
        ((), says("sys.exit('no such container: box')"), "exit code 1: no such container: box"),
        ((), says('print(\'{"type": "dance"}\', flush=True); time.sleep(30)'), "sent a line that is no reply"),
        ((), says("print('x' * 99_999, flush=True); time.sleep(30)"), "sent too much that is no reply"),
        (
            (),
            says('print(\'{"type":"ready","protocol":9,"version":"9","directory":"/","environment":"","tools":[]}\')'),
            "speaks version 9 of the protocol; install the same agent-mux",
        ),
    ],
)
async def test_context_that_is_not_ready_is_an_error(
    tmp_path: Path, command: tuple[str, ...], program: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ExecutionError, match=problem):
        async with context_in(tmp_path, *command, program=program):
            pass


async def test_context_that_never_answers_is_an_error(tmp_path: Path) -> None:
    silent = says("print('loading', file=sys.stderr, flush=True); time.sleep(60)")
    with pytest.raises(ExecutionError, match=r"was not ready after 0\.5 seconds"):
        async with context_in(tmp_path, program=silent, connect_timeout=0.5):
            pass


@pytest.mark.slow
async def test_request_that_cannot_be_sent_does_not_outlast_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ExecutionError("the command has closed its input")

    monkeypatch.setattr(ExecutionContext, "_send", fail)
    with pytest.raises(ExecutionError, match=r"was not ready after 0\.5 seconds"):
        async with context_in(tmp_path, program=says("time.sleep(60)"), connect_timeout=0.5):
            pass


@pytest.mark.slow
async def test_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=f"{tmp_path}/none is not a directory there"):
        async with context_in(tmp_path / "none"):
            pass


@pytest.mark.slow
async def test_what_start_up_files_print_is_ignored(tmp_path: Path) -> None:
    greeting = ("/bin/sh", "-c", 'echo "Welcome to box"; echo; exec "$@"', "sh")
    async with context_in(tmp_path, *greeting) as place:
        assert "hi" in (await Calls(place)("shell", command="echo hi")).text


@pytest.mark.slow
async def test_tools_that_are_not_built_in_are_not_offered(tmp_path: Path) -> None:
    body = (
        'print(\'{"type":"ready","protocol":1,"version":"1","directory":"/","environment":"","tools":["ls","evil"]}\','
        " flush=True); sys.stdin.read()"
    )
    async with context_in(tmp_path, program=says(body)) as place:
        assert [tool.name for tool in place.tools] == ["ls"]


@pytest.mark.slow
async def test_secrets_of_this_process_do_not_reach_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    async with context_in(tmp_path) as place:
        found = await Calls(place)("shell", command="cat /proc/$PPID/environ | tr '\\0' '\\n'; env")
    assert "PATH=" in found.text
    assert "sk-secret" not in found.text


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"{}", b"hello", b'{"type": "call"}', b"\xff"])
async def test_host_reports_input_that_is_no_request(line: bytes) -> None:
    ended = await anyio.run_process(PROGRAM, input=line + b"\n", check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.startswith(b"amux-agent: standard input has a line that is no request of version 1")


@pytest.mark.slow
async def test_call_larger_than_a_line_is_an_error_and_the_context_stays(tmp_path: Path) -> None:
    async with context_in(tmp_path) as place:
        call = Calls(place)
        with pytest.raises(ExecutionError, match="the call cannot be sent: it is larger than"):
            await call("write_file", path="big.txt", content="x" * (1 << 26))
        with pytest.raises(ExecutionError, match="the call cannot be sent"):
            await call("write_file", path="a.txt", content="\ud800")
        assert (await call("write_file", path="a.txt", content="ok")).text == "Created a.txt (2 bytes)."
