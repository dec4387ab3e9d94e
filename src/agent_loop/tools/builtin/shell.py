"""The tool `shell`, which runs a command line of the model in a shell.

Its risk is high. Approval of each command or a container makes it safe; deny patterns and the filtered environment do
not (see `shell_rules`). An exit code other than 0 is not an error of the tool: the result contains it, and the model
decides.
"""

import os
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from anyio import to_thread

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.messages import Text
from agent_loop.tools.builtin.background import BackgroundCommands
from agent_loop.tools.builtin.command import CommandExit, ShellCommand, run_command
from agent_loop.tools.builtin.output import CapturedOutput, shortened
from agent_loop.tools.builtin.processes import MARK
from agent_loop.tools.builtin.sandbox import ShellSandbox
from agent_loop.tools.builtin.shell_directory import last_directory, remember_directory, reporting_argv
from agent_loop.tools.builtin.shell_rules import DENIED, denied_by, without_secrets
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

MAX_COMMAND = 100_000
"""The longest command line in characters. Linux accepts 128 KiB; checking deny patterns takes quadratic time."""


def _token() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellTool:
    """The tool `shell`; its fields are settings. Raises `ConfigurationError` for values out of range."""

    timeout: float = 120.0
    """The default time limit of a command in seconds."""
    max_timeout: float = 600.0
    """The longest time limit that the model can set, in seconds."""
    max_output_bytes: int = 32_768
    """The limit of stdout and stderr together; of longer output, the result has the beginning and the end. 0: no limit
    up to 16 MiB each.
    """
    output_directory: Path | None = None
    """The directory for files with the whole of a longer output; None: no such files. Tools must be able to read it."""
    metadata: bool = True
    """Whether the result contains the exit code, the duration and stderr."""
    grace: float = 2.0
    """Seconds between SIGTERM and SIGKILL."""
    keep_background: bool = False
    """Whether background processes of a command (`server &`) continue. They must not write to its stdout or stderr."""
    keep_directory: bool = True
    """Whether a `cd` holds for the next command of the session, inside the workspace. Needs bash."""
    background: BackgroundCommands | None = None
    """The background commands of the conversation; None: the model cannot start any."""
    sandbox: ShellSandbox | None = None
    """The sandbox of commands; None: they have all rights of the user."""
    may_leave_sandbox: bool = False
    """Whether the model can run single commands without the sandbox. A handler of `tool:gate` must ask for them."""
    denied: tuple[str, ...] = DENIED
    """Deny patterns: sequences of words that no command may contain."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """The environment of commands; None: that of this process without variables that look like secrets."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that are added to the environment."""
    keep_variables: frozenset[str] = frozenset()
    """Names of variables that are kept although they look like secrets."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    """A monotonic clock in seconds."""
    new_mark: Callable[[], str] = field(default=_token, repr=False)
    """A function that returns a unique word."""

    name: ClassVar[str] = "shell"
    label: ClassVar[str] = "Shell"
    kind: ClassVar[ToolKind] = "execute"
    risk: ClassVar[Risk] = "high"

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= self.max_timeout:
            raise ConfigurationError("the timeout of shell must be above 0 and at most max_timeout")
        if self.max_output_bytes < 0 or self.grace < 0:
            raise ConfigurationError("max_output_bytes and grace of shell must not be negative")

    @property
    def _can_leave(self) -> bool:
        return self.may_leave_sandbox and self.sandbox is not None and self.sandbox.obstacle is None

    def leaves_sandbox(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call runs its command without the sandbox; also for arguments before their validation."""
        return self._can_leave and arguments.get("unsandboxed", False) is not False

    @property
    def description(self) -> str:
        """The description for the model, which depends on `keep_background`."""
        rest = "keep running" if self.keep_background else "are ended"
        return (
            "Run a command line with bash (sh if bash is missing) and return its output and exit code. "
            f"It has no terminal and no standard input. {self._long_output()} "
            f"Background processes that outlive the command {rest}.{self._further()}"
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        seconds = f"Time limit in seconds; default {self.timeout:g}, maximum {self.max_timeout:g}."
        default = " Default: where the last command ended." if self.keep_directory else ""
        background = {"type": "boolean", "description": "Start it in the background and return an id at once."}
        unsandboxed = {"type": "boolean", "description": "Run it without the sandbox; the user is asked first."}
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "timeout": {"type": "number", "description": seconds},
                "cwd": {"type": "string", "description": f"Working directory, relative to the workspace.{default}"},
                **({} if self.background is None else {"background": background}),
                **({"unsandboxed": unsandboxed} if self._can_leave else {}),
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Run a command line.

        Raises:
            InvalidArgumentsError: The command is empty, or the timeout is out of range.
            WorkspaceError: The agent has no workspace, or `cwd` is not a directory in it.
            ToolError: A deny pattern matches the command, or it could not be started.
        """
        keeps = self.keep_directory and not arguments.get("background")
        with tempfile.TemporaryFile() if keeps else nullcontext() as report:
            command = self._command(arguments, context, None if report is None else report.fileno())
            if arguments.get("background") and self.background is not None:
                return await self._start(self.background, command, str(arguments["command"]))
            ran = await self._run(command, context)
            notes = []
            if self.keep_directory:
                notes = remember_directory(context, command.cwd, None if ran.ended.timed_out else report)
        return self._result(ran, command.timeout, notes)

    async def run_program(
        self,
        argv: Sequence[str],
        cwd: Path,
        context: ToolContext,
        *,
        seconds: float | None,
        variables: Mapping[str, str],
    ) -> ToolResult:
        """Run a program without a shell, with the limits, the environment and the sandbox of commands.

        `seconds` is its time limit, None for the default; `variables` are added to the environment.

        Raises:
            InvalidArgumentsError: The time limit is out of range, or an argument cannot be one.
            ToolError: A deny pattern matches the command, or it could not be started.
        """
        self._check_denied(_check_command(shlex.join(argv)))
        command = self._command_of(tuple(argv), cwd, {**self._environment(), **variables}, seconds, (), self.sandbox)
        return self._result(await self._run(command, context), command.timeout, ())

    async def _run(self, command: ShellCommand, context: ToolContext) -> "_RanCommand":
        file = None if self.output_directory is None else self.output_directory / f"shell-{self.new_mark()}.log"
        captured = CapturedOutput(self.max_output_bytes, file)
        started_at = self.clock()
        try:
            ended = await run_command(command, captured, context.update)
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror or 'unknown reason'}") from None
        finally:
            captured.close()
        return _RanCommand(captured, ended, round((self.clock() - started_at) * 1000))

    async def _start(self, background: BackgroundCommands, command: ShellCommand, line: str) -> ToolResult:
        try:
            name = await to_thread.run_sync(background.start, command, line)
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror or 'unknown reason'}") from None
        text = f"Started in the background as {name}. Read its output with shell_output, end it with shell_stop."
        return ToolResult((Text(text),), details={"background": name})

    def _further(self) -> str:
        parts = (
            (self.keep_directory, "A cd holds for the next command."),
            (self.background is not None, "Use background for servers and watchers."),
            (self._can_leave, "Use unsandboxed only for a command that the sandbox made fail and that the task needs."),
        )
        return "".join(f" {sentence}" for applies, sentence in parts if applies)

    def _long_output(self) -> str:
        where = "" if self.output_directory is None else "; a file has the whole of it"
        return f"Of long output, the result has the beginning and the end{where}."

    def _command(self, arguments: Mapping[str, Any], context: ToolContext, report: int | None) -> ShellCommand:
        """Return the command of a call. It writes its last directory to the descriptor `report`, if there is one."""
        line = _check_command(str(arguments.get("command", "")))
        self._check_denied(line)
        environment = self._environment()
        bash = shutil.which("bash", path=environment.get("PATH"))
        given = arguments.get("cwd")
        argv: tuple[str, ...] = (bash or "/bin/sh", "-c", line)
        descriptors: tuple[int, ...] = ()
        if bash is not None and report is not None:
            argv, descriptors = reporting_argv(bash, line, report), (report,)
        cwd = _working_directory(context, str(given)) if given else self._last_directory(context)
        sandbox = None if self.leaves_sandbox(arguments) else self.sandbox
        return self._command_of(argv, cwd, environment, arguments.get("timeout"), descriptors, sandbox)

    def _command_of(  # noqa: PLR0913, PLR0917  # what differs between commands and programs
        self,
        argv: tuple[str, ...],
        cwd: Path,
        environment: Mapping[str, str],
        timeout: float | None,
        descriptors: tuple[int, ...],
        sandbox: ShellSandbox | None,
    ) -> ShellCommand:
        if sandbox is not None:
            argv, variables = sandbox.wrap(argv)
            environment = {**environment, **variables}
        return ShellCommand(
            argv=argv,
            cwd=cwd,
            descriptors=descriptors,
            environment=environment,
            mark=MARK + self.new_mark(),
            timeout=self._timeout(timeout),
            grace=self.grace,
            keep_background=self.keep_background,
        )

    def _check_denied(self, line: str) -> None:
        pattern = denied_by(line, self.denied)
        if pattern is not None:
            raise ToolError(f"the command was denied: it contains {pattern!r}, which is not allowed here")

    def _last_directory(self, context: ToolContext) -> Path:
        root = _working_directory(context, ".")
        return last_directory(context, root) if self.keep_directory else root

    def _environment(self) -> Mapping[str, str]:
        base = without_secrets(os.environ, self.keep_variables) if self.environment is None else self.environment
        return {**base, **self.variables}

    def _timeout(self, wanted: float | None) -> float:
        seconds = self.timeout if wanted is None else float(wanted)
        if not 0 < seconds <= self.max_timeout:
            raise InvalidArgumentsError(f"timeout must be above 0 and at most {self.max_timeout:g} seconds")
        return seconds

    def _result(self, ran: "_RanCommand", timeout: float, notes: Sequence[str]) -> ToolResult:
        captured, ended, duration_ms = ran.captured, ran.ended, ran.duration_ms
        timed_out = timeout if ended.timed_out else None
        text = render_result(captured, ended, duration_ms, timed_out=timed_out, metadata=self.metadata)
        if self.metadata:
            text = "\n".join([text, *notes])
        return ToolResult(
            (Text(text),),
            is_error=ended.timed_out,
            details={"exit_code": ended.exit_code, "duration_ms": duration_ms, "timed_out": ended.timed_out},
            effects=(CommandRan(ended.exit_code, captured.stdout_end, captured.stderr_end),),
        )


@dataclass(frozen=True, slots=True)
class _RanCommand:
    """A command that ended, with its output and its duration in milliseconds."""

    captured: CapturedOutput
    ended: CommandExit
    duration_ms: int


def render_result(
    captured: CapturedOutput, ended: CommandExit, duration_ms: int, *, timed_out: float | None, metadata: bool
) -> str:
    """Render the result for the model: stdout, stderr under a heading, and the exit. Without metadata: stdout only.

    `timed_out` is the time limit in seconds if the command reached it, None otherwise.
    """
    output = captured.stdout.text
    dropped = captured.stdout.dropped
    if metadata and captured.stderr:
        output = f"{_with_newline(output)}[stderr]\n{captured.stderr.text}"
        dropped += captured.stderr.dropped
    body = shortened(captured, output, dropped)
    if not metadata and timed_out is None:
        return body or "(no output)"
    return _with_newline(body) + "\n".join(_footer(ended, duration_ms, timed_out))


def _footer(ended: CommandExit, duration_ms: int, timed_out: float | None) -> list[str]:
    lines = [f"(exit {ended.exit_code}, {duration_ms}ms)"]
    if timed_out is not None:
        lines.insert(0, f"(timed out after {timed_out:g} seconds: the command and all its processes were ended)")
    elif ended.ended_processes:
        lines.insert(0, f"(background processes that were ended: {ended.ended_processes})")
    return lines


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _check_command(line: str) -> str:
    if not line.strip():
        raise InvalidArgumentsError("command is empty; give the command line to run")
    if len(line) > MAX_COMMAND:
        raise InvalidArgumentsError(f"command is longer than {MAX_COMMAND} characters; write it to a file and run that")
    if "\0" in line:
        raise InvalidArgumentsError("command contains a NUL character, which is not possible in a command line")
    try:
        line.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentsError("command contains an unpaired surrogate; write the whole character") from None
    return line


def _working_directory(context: ToolContext, cwd: str) -> Path:
    if context.workspace is None:
        raise WorkspaceError("the agent has no workspace to run commands in")
    root = context.workspace.root
    try:
        path = (root / cwd).resolve()
        is_directory = path.is_dir()
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL character, or a name that is too long
        is_directory = False
    if not is_directory or not path.is_relative_to(root):
        raise WorkspaceError(f"cwd {cwd[:200]!r} is not a directory in the workspace; use a path relative to it")
    return path
