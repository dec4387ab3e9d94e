"""What differs between the agents of this dialect: data, and small functions of one line."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_mux.facts import FileEffect, Shell
from agent_mux_adapters._dialects.pi.approvals import PiDialog

Arguments = Mapping[str, Any]
Details = Mapping[str, Any]
FileEffectsReader = Callable[[Arguments, Details], tuple[FileEffect, ...]]
"""What a successful call did to files: from its input and from the `details` of its result."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a shell tool's result says, taken apart."""

    stdout: str
    """What the command printed, as far as it is shown."""
    total_bytes: int | None = None
    """Of all that it printed, where the agent counts; `stdout` is the end of it."""
    is_cut: bool = False
    """Something is left out of `stdout`."""
    exit_code: int | None = None
    duration_ms: int | None = None
    is_background: bool = False
    """It was moved to the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One agent."""

    agent: str
    shell_of: Callable[[str, Arguments], Shell | None]
    """The foreground command of a call."""
    printed: Callable[[str, Details, bool], ShellResult]
    """The text of a shell tool's result, partial or final, its details, and whether it failed."""
    effects: Mapping[str, FileEffectsReader]
    """Tool name -> what it does to files."""
    mcp_server_and_tool: Callable[[str, Collection[str]], tuple[str, str] | None] = field(
        default=lambda _, _servers: None
    )
    """Server and tool, where a tool of this name is one of an MCP server. With it: the servers that the run has."""
    delegating_tools: frozenset[str] = frozenset()
    """Tools that start sub-agents."""
    read_approval: Callable[[str, Mapping[str, Any]], PiDialog | None]
    """A dialog that asks for permission, by its key and its line; None when it is a question."""
    free_text_option: str = ""
    """The option of a question that stands for an answer in the person's own words."""
    marks_final_end: bool = False
    """`agent_end` itself says whether it is the last; otherwise what follows does."""
    session_command: str = "get_state"
    """The command whose response names the session."""
    initial_commands: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Commands of rpc mode to begin with, and their fields."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Line types of this agent alone that say nothing about the run, and why."""
