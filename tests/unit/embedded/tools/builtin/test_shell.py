"""The tool `shell`, with real processes."""

import re
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.tools.builtin import ShellTool
from agent_loop.tools.builtin.processes import MARK, StartedCommand, find_processes
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import Tool, ToolContext, ToolResult, kind_of, risk_of, shell_command_of
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.parametrize("backend", ["asyncio", "trio"])
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere only process groups are known")


class Bench:
    """A shell in a workspace of its own, with a clock that stands."""

    def __init__(self, root: Path, backend: str) -> None:
        self.mark = f"{root.name}_{backend}".replace("-", "_")
        self.context = ToolContext(call_id="1", tool_name="shell", workspace=Workspace(root), update=self.update)
        self.backend = backend
        self.updates: list[tuple[str, str]] = []

    async def update(self, text: str, stream: str = "stdout") -> None:
        self.updates.append((stream, text))

    def shell(self, **known: Any) -> ShellTool:
        return ShellTool(**{"clock": lambda: 0.0, "new_mark": lambda: self.mark, "grace": 0.2, **known})

    def run(self, command: str, arguments: dict[str, Any] | None = None, **known: Any) -> ToolResult:
        async def bounded() -> ToolResult:
            with anyio.fail_after(30):
                found = await self.shell(**known).execute({"command": command, **(arguments or {})}, self.context)
            assert isinstance(found, ToolResult)
            return found

        return anyio.run(bounded, backend=self.backend)

    def survivors(self) -> list[int]:
        return find_processes(StartedCommand(-1, MARK + self.mark))


@pytest.fixture
def bench(tmp_path: Path, backend: str) -> Bench:
    return Bench(tmp_path, backend)


def test_shell_has_high_risk_and_reports_its_command(bench: Bench) -> None:
    shell = bench.shell()
    assert isinstance(shell, Tool)
    assert (kind_of(shell), risk_of(shell)) == ("execute", "high")
    assert shell_command_of(shell, {"command": "ls"}) == "ls"
    assert shell.parameters["required"] == ["command"]


def test_output_ends_with_exit_code_and_duration(bench: Bench) -> None:
    times = iter([1.0, 1.25])
    result = bench.run("echo hi", clock=lambda: next(times))
    assert result.text == "hi\n(exit 0, 250ms)"
    assert result.details == {"exit_code": 0, "duration_ms": 250, "timed_out": False}
    assert result.effects == (CommandRan(0, "hi\n", ""),)


def test_variables_are_added_to_the_environment(bench: Bench) -> None:
    result = bench.run("echo $SIGN $OTHER", environment={"OTHER": "there"}, variables={"SIGN": "1"})
    assert result.effects == (CommandRan(0, "1 there\n", ""),)


def test_stderr_is_included_if_not_empty(bench: Bench) -> None:
    result = bench.run("printf out; echo no >&2")
    assert result.text == "out\n[stderr]\nno\n(exit 0, 0ms)"
    assert result.effects == (CommandRan(0, "out", "no\n"),)


def test_nonzero_exit_is_reported_and_not_a_tool_error(bench: Bench) -> None:
    result = bench.run("exit 3")
    assert (result.text, result.is_error) == ("(exit 3, 0ms)", False)


def test_exit_code_of_a_signal_is_that_of_shells(bench: Bench) -> None:
    assert bench.run("kill -KILL $$").text == f"(exit {128 + signal.SIGKILL}, 0ms)"


def test_metadata_false_opts_out(bench: Bench) -> None:
    assert bench.run("echo hi; echo no >&2; exit 3", metadata=False).text == "hi\n"
    assert bench.run("true", metadata=False).text == "(no output)"


def test_long_output_keeps_its_beginning_and_its_end(bench: Bench) -> None:
    head, note, tail = re.split(r"(\n\[\.\.\. .* \.\.\.\]\n)", bench.run("seq 100000").text)
    assert note == "\n[... 556127 bytes are left out ...]\n"
    assert head.startswith("1\n2\n3\n")
    assert tail.endswith("99999\n100000\n(exit 0, 0ms)")
    assert len(head) + len(tail.removesuffix("(exit 0, 0ms)")) in {32_768, 32_767}


def test_file_has_the_whole_of_a_long_output(bench: Bench, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    result = bench.run("seq 100000; echo no >&2", output_directory=outputs)
    [path] = outputs.iterdir()
    assert f"the whole output is in {path}: read it in pages" in result.text
    assert path.read_text().replace("no\n", "") == "".join(f"{number}\n" for number in range(1, 100_001))
    assert (path.stat().st_mode & 0o777, outputs.stat().st_mode & 0o777) == (0o600, 0o700)
    assert result.text.endswith("100000\n[stderr]\nno\n(exit 0, 0ms)")


def test_short_output_needs_no_file(bench: Bench, tmp_path: Path) -> None:
    assert bench.run("echo hi", output_directory=tmp_path / "outputs").text == "hi\n(exit 0, 0ms)"
    assert not (tmp_path / "outputs").exists()


def test_output_that_cannot_be_written_is_shortened_with_the_reason(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    result = bench.run("seq 100000", output_directory=tmp_path / "outputs")
    assert "the whole output is in no file: it could not be written: File exists" in result.text


def test_both_streams_together_keep_to_the_limit(bench: Bench) -> None:
    result = bench.run("printf 'aaaaaaaaaa'; printf 'bbbb' >&2", max_output_bytes=20)
    assert result.text == "aaaaa\n[... 4 bytes are left out ...]\na\n[stderr]\nbbbb\n(exit 0, 0ms)"


def test_max_output_bytes_zero_disables_the_truncation(bench: Bench) -> None:
    result = bench.run("seq 100000", max_output_bytes=0)
    assert result.text.startswith("1\n2\n")
    effect = result.effects[0]
    assert isinstance(effect, CommandRan)
    assert len(effect.stdout.encode()) == 32_768


def test_utf8_is_never_split_and_invalid_bytes_are_replaced(bench: Bench) -> None:
    assert bench.run(r"printf 'a\xff\xe2\x82\xac\xe2\x82'").text == "a\ufffd\u20ac\ufffd\n(exit 0, 0ms)"
    cut = bench.run(r"printf '\xe2\x82\xac\xe2\x82\xac'", max_output_bytes=4).text
    assert cut == "[... 3 bytes are left out ...]\n\u20ac\n(exit 0, 0ms)"


def test_updates_are_sent_while_the_command_runs(bench: Bench) -> None:
    bench.run("echo one; echo two >&2")
    assert sorted(bench.updates) == [("stderr", "two\n"), ("stdout", "one\n")]  # two pipes have no common order


@pytest.mark.slow
@linux
def test_runaway_output_is_drained_bounded_and_ended_at_the_timeout(bench: Bench) -> None:
    result = bench.run("yes", {"timeout": 0.3})
    assert result.is_error
    assert result.text.endswith(
        "y\n(timed out after 0.3 seconds: the command and all its processes were ended)\n(exit 143, 0ms)"
    )
    assert len(result.text) < 33_000
    assert all(len(text) < 17_000 for _, text in bench.updates)
    assert bench.survivors() == []


@pytest.mark.slow
@linux
def test_process_that_ignores_sigterm_is_killed_after_the_grace_period(bench: Bench) -> None:
    result = bench.run("trap '' TERM; echo here; sleep 1000 & wait; while :; do sleep 1; done", {"timeout": 0.3})
    assert result.text.startswith("here\n(timed out")
    assert result.details["exit_code"] == 128 + signal.SIGKILL
    assert bench.survivors() == []


@linux
def test_children_with_a_session_of_their_own_are_ended_too(bench: Bench) -> None:
    result = bench.run("setsid sleep 1000 & wait", {"timeout": 0.3})
    assert result.details["timed_out"]
    assert bench.survivors() == []


@pytest.mark.slow
@linux
@pytest.mark.parametrize("command", ["sleep 1000 &", "setsid sleep 1000 >/dev/null 2>&1 & sleep 0.1", "yes &"])
def test_background_children_do_not_hang_the_tool_and_are_ended(bench: Bench, command: str) -> None:
    result = bench.run(f"echo started; {command}")
    assert not result.is_error
    assert "(background processes that were ended: 1)\n(exit 0, 0ms)" in result.text
    assert bench.survivors() == []


@linux
def test_keep_background_leaves_background_children_running(bench: Bench) -> None:
    result = bench.run("sleep 1000 >/dev/null 2>&1 & echo $!", keep_background=True)
    pid = int(result.text.split()[0])
    assert pid in bench.survivors()
    anyio.run(anyio.run_process, ["kill", "-KILL", str(pid)])


@linux
def test_cancelling_ends_everything_first(bench: Bench) -> None:
    async def run() -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def update(_text: str, _stream: str) -> None:
                    tasks.cancel_scope.cancel()

                context = ToolContext(call_id="1", tool_name="shell", workspace=bench.context.workspace, update=update)
                await bench.shell().execute(
                    {"command": "trap '' TERM; setsid sleep 1000 & sleep 1000 & echo ready; wait; wait"}, context
                )
                pytest.fail("it ended by itself")

    anyio.run(run, backend=bench.backend)
    assert bench.survivors() == []


def test_stdin_is_empty(bench: Bench) -> None:
    assert bench.run("cat; echo done").text == "done\n(exit 0, 0ms)"


def test_shell_is_bash_if_available_and_sh_otherwise(bench: Bench, tmp_path: Path) -> None:
    assert bench.run("[[ a == a ]] && echo ${BASH_VERSION:+bash}").text.startswith("bash\n")
    assert bench.run("type type", environment={"PATH": str(tmp_path)}).details["exit_code"] == 0


def test_the_directory_is_one_of_the_workspace(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "out").symlink_to("/")
    assert bench.run("pwd").text.startswith(f"{tmp_path}\n")
    assert bench.run("pwd", {"cwd": "sub"}).text.startswith(f"{tmp_path}/sub\n")
    for cwd in ("..", "/", "out", "missing", "a\0b", "x" * 5000):
        with pytest.raises(WorkspaceError, match="is not a directory in the workspace"):
            bench.run("pwd", {"cwd": cwd})


def test_without_a_workspace_nothing_runs(bench: Bench) -> None:
    async def run() -> None:
        await bench.shell().execute({"command": "true"}, ToolContext(call_id="1", tool_name="shell"))

    with pytest.raises(WorkspaceError, match="no workspace"):
        anyio.run(run, backend=bench.backend)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": " "}, "is empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "x" * 4_000_000}, "longer than 100000"),
        ({"command": "\ud800"}, "an unpaired surrogate"),
        ({"command": "true", "timeout": 0}, "timeout must be above 0 and at most 600"),
        ({"command": "true", "timeout": 601}, "timeout must be"),
        ({"command": "true", "timeout": float("nan")}, "timeout must be"),
    ],
)
def test_invalid_command_is_rejected_with_a_reason(bench: Bench, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=message):
        bench.run("", arguments)


def test_a_command_that_cannot_be_started_is_an_error_of_the_tool(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "bash").write_bytes(b"no program")
    (tmp_path / "bash").chmod(0o755)
    with pytest.raises(ToolError, match="could not be started: Exec format error"):
        bench.run("true", environment={"PATH": str(tmp_path)})


def test_denied_commands_do_not_run(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="denied: it contains 'touch x'"):
        bench.run("touch x", denied=("touch x",))
    assert not (tmp_path / "x").exists()


def test_secrets_of_providers_are_not_in_the_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("SOME_TOKEN", "kept")
    monkeypatch.setenv("SOME_NAME", "shown")
    line = "echo [$SOME_API_KEY] [$SOME_TOKEN] [$SOME_NAME]"
    assert bench.run(line, keep_variables=frozenset({"SOME_TOKEN"})).text.startswith("[] [kept] [shown]\n")
    given = {"PATH": "/usr/bin:/bin", "SOME_API_KEY": "mine"}
    assert bench.run(line, environment=given).text.startswith("[mine] [] []\n")
    assert "mine" not in repr(bench.shell(environment=given))


def test_invalid_settings_are_rejected(bench: Bench) -> None:
    for known in ({"timeout": 0}, {"timeout": 700}, {"max_output_bytes": -1}, {"grace": -1}):
        with pytest.raises(ConfigurationError):
            bench.shell(**known)
