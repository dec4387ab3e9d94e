"""The tool `shell`. Source: zidane, "Tool ergonomics defaults"; phi-core, section 5, "Shell".

The command line is the model's, and goes to a shell: that is what this tool is for, and why its risk is high. Approval
before it runs, or a container around it, is what makes it safe; deny patterns and the filtered environment are not
(see `shell_rules`). An exit code other than 0 is no error of the tool: it is told, and the model decides.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.messages import Text
from agent_loop.tools.builtin.captured import Captured
from agent_loop.tools.builtin.census import MARK
from agent_loop.tools.builtin.running import Command, Ended, run_command
from agent_loop.tools.builtin.shell_output import shown
from agent_loop.tools.builtin.shell_rules import DENIED, denied_by, without_secrets
from agent_loop.tools.effects import CommandRan
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

LONGEST = 100_000
"""Characters of a command line. Linux takes 128 KiB, and looking at the words of one takes quadratic time."""


def _token() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellTool:
    """Runs command lines in the workspace. The defaults are the seeds'."""

    timeout: float = 120.0
    """Seconds, where the model does not say."""
    max_timeout: float = 600.0
    """Seconds: the most that the model can say."""
    max_output_bytes: int = 32_768
    """Of stdout and stderr together: the end is kept. 0: all of it, up to 16 MiB."""
    metadata: bool = True
    """The result tells the exit code, the duration, and what went to stderr."""
    grace: float = 2.0
    """Seconds that processes have after SIGTERM, before SIGKILL."""
    keep_background: bool = False
    """What a command leaves in the background (`server &`) lives on. It must not write to the output of the command."""
    denied: tuple[str, ...] = DENIED
    """Rows of words that no command may contain."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """All that commands have; None: that of this process, without what looks like a secret."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What commands have besides, over that."""
    keep_variables: frozenset[str] = frozenset()
    """Variables that look like secrets, and that commands need all the same."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    """Seconds, from whenever."""
    new_mark: Callable[[], str] = field(default=_token, repr=False)
    """A word that was never used before."""

    name: ClassVar[str] = "shell"
    label: ClassVar[str] = "Shell"
    kind: ClassVar[ToolKind] = "execute"
    risk: ClassVar[Risk] = "high"
    sequential: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= self.max_timeout:
            raise ConfigurationError("the timeout of shell must be above 0 and at most max_timeout")
        if self.max_output_bytes < 0 or self.grace < 0:
            raise ConfigurationError("max_output_bytes and grace of shell must not be negative")

    @property
    def description(self) -> str:
        """What the model is told."""
        rest = "is left running" if self.keep_background else "is ended"
        return (
            "Run a command line with bash (sh where there is no bash) and return its output and exit code. "
            "There is no terminal and no standard input. Long output is cut at its head. "
            f"What is still running in the background when the command ends {rest}."
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        seconds = f"Seconds after which it is ended; {self.timeout:g} by default, at most {self.max_timeout:g}."
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "timeout": {"type": "number", "description": seconds},
                "cwd": {"type": "string", "description": "Directory to run it in, relative to the workspace."},
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Run it.

        Raises:
            InvalidArgumentsError: no command, or a timeout out of range.
            WorkspaceError: there is no workspace, or `cwd` is no directory in it.
            ToolError: the command is refused by a deny pattern, or could not be started.
        """
        command = self._command(arguments, context)
        captured = Captured(self.max_output_bytes)
        began = self.clock()
        try:
            ended = await run_command(command, captured, context.update)
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror or 'unknown reason'}") from None
        return self._result(captured, ended, command.timeout, round((self.clock() - began) * 1000))

    def _command(self, arguments: Mapping[str, Any], context: ToolContext) -> Command:
        line = _checked_line(str(arguments.get("command", "")))
        pattern = denied_by(line, self.denied)
        if pattern is not None:
            raise ToolError(f"the command is refused: it contains {pattern!r}, which is denied here; do it another way")
        environment = self._environment()
        shell = shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"
        return Command(
            argv=(shell, "-c", line),
            cwd=_directory(context, str(arguments.get("cwd") or ".")),
            environment=environment,
            mark=MARK + self.new_mark(),
            timeout=self._timeout(arguments.get("timeout")),
            grace=self.grace,
            keep_background=self.keep_background,
        )

    def _environment(self) -> Mapping[str, str]:
        base = without_secrets(os.environ, self.keep_variables) if self.environment is None else self.environment
        return {**base, **self.variables}

    def _timeout(self, wanted: float | None) -> float:
        seconds = self.timeout if wanted is None else float(wanted)
        if not 0 < seconds <= self.max_timeout:
            raise InvalidArgumentsError(f"timeout must be above 0 and at most {self.max_timeout:g} seconds")
        return seconds

    def _result(self, captured: Captured, ended: Ended, timeout: float, milliseconds: int) -> ToolResult:
        timed_out = timeout if ended.timed_out else None
        text = shown(captured, ended, milliseconds, timed_out=timed_out, metadata=self.metadata)
        return ToolResult(
            (Text(text),),
            is_error=ended.timed_out,
            details={"exit_code": ended.exit_code, "duration_ms": milliseconds, "timed_out": ended.timed_out},
            effects=(CommandRan(ended.exit_code, captured.stdout_end, captured.stderr_end),),
        )


def _checked_line(line: str) -> str:
    if not line.strip():
        raise InvalidArgumentsError("command is empty; give the command line to run")
    if len(line) > LONGEST:
        raise InvalidArgumentsError(f"command is longer than {LONGEST} characters; write it to a file and run that")
    if "\0" in line:
        raise InvalidArgumentsError("command contains a NUL character; no command line can")
    try:
        line.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentsError("command contains half of a Unicode character; write the whole one") from None
    return line


def _directory(context: ToolContext, cwd: str) -> Path:
    if context.workspace is None:
        raise WorkspaceError("there is no workspace to run commands in; give the agent one")
    root = context.workspace.root
    try:
        path = (root / cwd).resolve()
        is_directory = path.is_dir()
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL, a name that is too long
        is_directory = False
    if not is_directory or not path.is_relative_to(root):
        raise WorkspaceError(f"cwd {cwd[:200]!r} is no directory in the workspace; give a path relative to it")
    return path
