"""Shell operations events. Source: agent-events spec, section 11."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, Milliseconds


class ShellStartEvent(BaseEvent, frozen=True):
    """A command begins, inside its tool call. Source: agent-events spec, section 11.1."""

    type: ClassVar[Literal["shell_start"]] = "shell_start"

    command: str
    """As the agent executed it."""
    cwd: str
    """Its working directory."""


class ShellStdoutDeltaEvent(BaseEvent, frozen=True):
    """A chunk of the command's standard output. Source: agent-events spec, section 11.2."""

    type: ClassVar[Literal["shell_stdout_delta"]] = "shell_stdout_delta"

    delta: str
    """The new output."""


class ShellStderrDeltaEvent(BaseEvent, frozen=True):
    """A chunk of the command's standard error. Source: agent-events spec, section 11.3."""

    type: ClassVar[Literal["shell_stderr_delta"]] = "shell_stderr_delta"

    delta: str
    """The new output."""


class ShellExitEvent(BaseEvent, frozen=True):
    """The command ended. Source: agent-events spec, section 11.4."""

    type: ClassVar[Literal["shell_exit"]] = "shell_exit"

    exit_code: int
    """0 is success; -1: killed by a signal, or never reported."""
    duration_ms: Milliseconds
    """Wall clock."""
