"""The table of differences between the agents of this dialect: data and small pure functions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_mux.sdk.facts import FileEffect, ShellInvocation
from agent_mux_adapters._dialects.pi.approvals import PiDialog

Arguments = Mapping[str, Any]
Details = Mapping[str, Any]
FileEffectsReader = Callable[[Arguments, Details], tuple[FileEffect, ...]]
"""Returns the effects of a successful call on files, from its input and the `details` of its result."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The result of a shell tool, split into its parts."""

    stdout: str
    """The output of the command, as far as the agent shows it."""
    total_bytes: int | None = None
    """Size of the whole output, where the agent counts it; `stdout` is then its end."""
    is_cut: bool = False
    """Whether parts of the output are missing in `stdout`."""
    exit_code: int | None = None
    duration_ms: int | None = None
    is_background: bool = False
    """Whether the agent moved the command to the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """The differences of one agent."""

    agent: str
    shell_of: Callable[[str, Arguments], ShellInvocation | None]
    """Returns the foreground command of a tool call; None for other calls. Takes the tool's name and its input."""
    read_shell_result: Callable[[str, Details, bool], ShellResult]
    """Splits a shell tool's result, partial or final; takes the shown text, the details, whether the call failed."""
    file_effects: Mapping[str, FileEffectsReader]
    """Tool name -> the reader of its effects on files."""
    mcp_server_and_tool: Callable[[str, Collection[str]], tuple[str, str] | None] = field(
        default=lambda _, _servers: None
    )
    """Returns server and tool for the name of an MCP tool, else None. Takes the name and the run's MCP servers."""
    delegating_tools: frozenset[str] = frozenset()
    """Names of the tools that start sub-agents."""
    read_approval: Callable[[str, Mapping[str, Any]], PiDialog | None]
    """Returns a dialog that asks for permission; None for other dialogs. Takes the request's id and its line."""
    free_text_option: str = ""
    """The option of a question that asks for a free text; empty if the agent has none."""
    marks_final_end: bool = False
    """Whether `agent_end` states that it is the last one (`isTerminal`); otherwise the lines after it decide."""
    session_command: str = "get_state"
    """The command whose response contains the session id."""
    initial_commands: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Commands to send first in rpc mode, with their fields."""
    protocol_version: int | None = None
    """The version of rpc mode to ask for; None where there is only one."""
    ignored_lines: Mapping[str, str] = field(default_factory=dict)
    """Line types of this agent alone that carry nothing about the run -> why."""
