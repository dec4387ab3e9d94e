"""Background commands of the shell: start, read new output, stop; and the tools `shell_output` and `shell_stop`.

Each command runs under a keeper (`command_keeper`), which ends it when the agent ends, also when the agent is killed.
Output goes to a private file, so that nothing has to read it while the model works on something else.
"""

import codecs
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio
from anyio import to_thread

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.command import MAX_KILLS, ShellCommand
from agent_loop.tools.builtin.processes import StartedCommand, find_processes, signal_processes
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

MAX_RUNNING = 16
"""The most background commands that run at once."""
MAX_OUTPUT = 64 * 1024 * 1024
"""The output in bytes after which a background command is ended."""
MAX_SHOWN = 32_768
"""The most bytes of output that one result shows; of more, the beginning and the end."""
MAX_WAIT = 60.0
"""The longest time in seconds that a call waits for output."""
POLL_INTERVAL = 0.05
STOP_MARGIN = 5.0
"""Seconds beyond the grace period that a keeper has to end, before it is killed."""
_KEEPER_ARGV = (sys.executable, "-I", "-S", str(Path(__file__).with_name("command_keeper.py")))


@dataclass(slots=True)
class _Running:
    keeper: subprocess.Popen[bytes]
    command: ShellCommand
    line: str
    file: Path
    shown: int = 0
    """The bytes of the output that the model has."""
    seen: int = 0
    """The size of the output at the last call; more than `shown` if it ended within a character."""

    @property
    def started(self) -> StartedCommand:
        return StartedCommand(self.keeper.pid, self.command.mark)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the command but its keeper."""
        for pid in {*find_processes(self.started)} - {self.keeper.pid}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    @property
    def size(self) -> int:
        return self.file.stat().st_size

    @property
    def state(self) -> str:
        code = self.keeper.poll()
        return "running" if code is None else f"exit {code}"


class BackgroundCommands:
    """The background commands of one conversation. `close` ends them; it must be called."""

    def __init__(self, directory: Path | None = None) -> None:
        """`directory` is a private directory for output, which tools can read; None: a temporary one."""
        self._directory = directory
        self._temporary: Path | None = None
        self._commands: dict[str, _Running] = {}

    def start(self, command: ShellCommand, line: str) -> str:
        """Start a command and return its id. Blocks shortly. Raises `ToolError` if too many run, and `OSError`."""
        running = [each for each in self._commands.values() if each.keeper.poll() is None]
        if len(running) >= MAX_RUNNING:
            raise ToolError(f"{MAX_RUNNING} background commands are running; stop one with shell_stop first")
        name = f"bg{len(self._commands) + 1}"
        file = self._output_directory() / f"shell-{command.mark}.log"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            keeper = subprocess.Popen(
                (*_KEEPER_ARGV, command.mark, f"{command.grace}", f"{MAX_OUTPUT}", *command.argv),
                cwd=command.cwd,
                env={**command.environment, command.mark: "1"},
                stdin=subprocess.PIPE,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        self._commands[name] = _Running(keeper, command, line, file)
        return name

    async def output(self, name: str, wait: float) -> str:
        """Return the output since the last call, and the state. Waits up to `wait` seconds for either to change."""
        command = self._find(name)
        with anyio.move_on_after(wait):
            while command.size <= command.seen and command.keeper.poll() is None:  # noqa: ASYNC110  # a file has no event
                await anyio.sleep(POLL_INTERVAL)
        state = command.state  # before the output is read, so that the output of a command that exited is complete
        text = _new_output(command, is_final=state != "running")
        return f"{text or '(no new output)'}\n({name}: {state})"

    async def stop(self, name: str) -> str:
        """End a command with all its processes, and return its last output."""
        command = self._find(name)
        await to_thread.run_sync(_end, command)
        return await self.output(name, 0)

    async def pause(self) -> None:
        """Stop the processes of all commands, but not their keepers, which end them when this process ends."""
        await to_thread.run_sync(self._signal, signal.SIGSTOP)

    def add_time(self, seconds: float) -> None:
        """Do nothing: background commands have no time limit."""

    async def resume(self) -> None:
        """Continue the processes of all commands."""
        await to_thread.run_sync(self._signal, signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for command in self._commands.values():
            if command.keeper.poll() is None:
                command.send_signal(number)

    def close(self) -> None:
        """End all commands, and remove the output that is in a temporary directory. Blocks up to the grace period."""
        commands = list(self._commands.values())
        for each in commands:  # all at once, so that the grace periods are the same seconds
            _close_input(each)
        for each in commands:
            _end(each)
        self._commands.clear()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def _output_directory(self) -> Path:
        if self._directory is not None:
            return self._directory
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="agent-loop-"))
        return self._temporary

    def _find(self, name: str) -> _Running:
        command = self._commands.get(name)
        if command is None:
            known = ", ".join(f"{key} ({each.state}): {each.line[:60]}" for key, each in self._commands.items())
            raise InvalidArgumentsError(f"no background command {name!r}; known: {known or 'none'}")
        return command


def _close_input(command: _Running) -> None:
    if command.keeper.stdin is not None:
        with suppress(OSError):
            command.keeper.stdin.close()


def _end(command: _Running) -> None:
    """End a command through its keeper, or directly if the keeper does not end in time or was killed."""
    _close_input(command)
    if _has_ended_all(command):
        return
    try:
        command.keeper.wait(command.command.grace + STOP_MARGIN)
    except subprocess.TimeoutExpired:
        command.keeper.kill()
    if _has_ended_all(command):
        return
    for _ in range(MAX_KILLS):
        if not signal_processes(command.started, signal.SIGKILL):
            break
        with suppress(subprocess.TimeoutExpired):
            command.keeper.wait(POLL_INTERVAL)


def _has_ended_all(command: _Running) -> bool:
    """Return whether the keeper exited by itself, after all processes; its id may then be that of another process."""
    code = command.keeper.poll()
    return code is not None and code >= 0


def _new_output(command: _Running, *, is_final: bool) -> str:
    """Return the output since the last call, up to the last complete character unless `is_final`."""
    size, start = command.size, command.shown
    command.seen = size
    with command.file.open("rb") as file:
        file.seek(start)
        head = b"" if size - start <= MAX_SHOWN else file.read(MAX_SHOWN // 4)
        tail_size = min(size - start, MAX_SHOWN - len(head))
        file.seek(size - tail_size)
        tail, used = codecs.utf_8_decode(file.read(tail_size), "replace", is_final)
    command.shown = size - tail_size + used
    left_out = size - start - len(head) - tail_size
    note = f"\n[... {left_out:,} bytes left out; the whole output is in {command.file} ...]\n" if left_out else ""
    return (head.decode("utf-8", "replace") + note + tail).removesuffix("\n")


@dataclass(frozen=True, slots=True)
class ShellOutputTool:
    """The tool `shell_output`, which returns new output of a background command."""

    commands: BackgroundCommands

    name: ClassVar[str] = "shell_output"
    label: ClassVar[str] = "Output of a background command"
    kind: ClassVar[ToolKind] = "read"
    risk: ClassVar[Risk] = "low"
    sequential: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Return the output of a background command since the last call, and whether it is running. `wait` seconds for "
        "new output or the end of the command instead of asking again and again."
    )
    parameters: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id that shell returned, such as bg1."},
            "wait": {"type": "number", "description": f"Seconds to wait; default 0, maximum {MAX_WAIT:g}."},
        },
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:  # noqa: ARG002  # the protocol of tools
        """Return new output. Raises `InvalidArgumentsError` for an unknown id."""
        wait = min(max(float(arguments.get("wait") or 0), 0.0), MAX_WAIT)
        return ToolResult((Text(await self.commands.output(str(arguments["id"]), wait)),))


@dataclass(frozen=True, slots=True)
class ShellStopTool:
    """The tool `shell_stop`, which ends a background command."""

    commands: BackgroundCommands

    name: ClassVar[str] = "shell_stop"
    label: ClassVar[str] = "Stop a background command"
    kind: ClassVar[ToolKind] = "other"
    risk: ClassVar[Risk] = "low"
    description: ClassVar[str] = "End a background command with all its processes, and return its last output."
    parameters: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "The id that shell returned, such as bg1."}},
        "required": ["id"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:  # noqa: ARG002  # the protocol of tools
        """End the command. Raises `InvalidArgumentsError` for an unknown id."""
        return ToolResult((Text(await self.commands.stop(str(arguments["id"]))),))
