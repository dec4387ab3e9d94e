"""Parts of a model's answers in scenarios, independent of the agent; a kit translates them for its agent.

Paths are relative to the workspace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Ask",
    "Delegate",
    "Edit",
    "Mcp",
    "Part",
    "Read",
    "Say",
    "Shell",
    "StructuredAnswer",
    "Think",
    "Todo",
    "ToolPart",
    "Write",
]

SUBTASK = "SUBTASK"
"""Begins the prompts of sub-agents, so that a script can distinguish them from those of the main agent."""
MCP_SERVER = "echo"
"""Name of the MCP server in scenarios: `agent_mux_testing.mcp_echo`, with the tools `echo {text}` and `boom {}`."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers with this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """The model emits this thinking before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The model runs a shell command."""

    command: str
    asks: bool = False
    """Whether the command needs permission, for agents whose model decides that itself."""


@dataclass(frozen=True, slots=True)
class Write:
    """The model creates or overwrites a file."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    """The model replaces one line of a file."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Read:
    """The model reads a whole file."""

    name: str


@dataclass(frozen=True, slots=True)
class Mcp:
    """The model calls a tool of an MCP server."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    server: str = MCP_SERVER


@dataclass(frozen=True, slots=True)
class Ask:
    """The model asks the user a question."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Todo:
    """The model writes a list of tasks, of which the first is in progress."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delegate:
    """The model delegates a task to a sub-agent, whose prompt must begin with `SUBTASK`."""

    task: str


@dataclass(frozen=True, slots=True)
class StructuredAnswer:
    """The model gives an answer that conforms to the schema of the run."""

    value: Mapping[str, Any]


ToolPart = Shell | Write | Edit | Read | Mcp | Ask | Todo | Delegate | StructuredAnswer
"""Parts that are tool calls; each agent has tools of its own."""
Part = Say | Think | ToolPart
