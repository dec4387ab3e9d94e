"""What a model says and does in a scenario, said once for all agents; a kit spells it for its agent.

Paths are relative to the workspace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Answer",
    "Ask",
    "Delegate",
    "Edit",
    "Mcp",
    "Part",
    "Read",
    "Say",
    "Shell",
    "Think",
    "Todo",
    "ToolPart",
    "Write",
]

SUBTASK = "SUBTASK"
"""Begins the prompts of sub-agents, so that a script can tell them from the main agent."""
MCP_SERVER = "echo"
"""Name of the MCP server in scenarios: `agent_mux.testing.mcp_echo`, with the tools `echo {text}` and `boom {}`."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers in text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """The model thinks aloud."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The model runs a command."""

    command: str
    asks: bool = False
    """One that has to be permitted, where the agent's model says so itself."""


@dataclass(frozen=True, slots=True)
class Write:
    """The model makes a file, or writes over it."""

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
    """The model reads a file."""

    name: str


@dataclass(frozen=True, slots=True)
class Mcp:
    """The model calls a tool of the MCP server."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """The model asks the person a question."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Todo:
    """The model writes down what it has to do; the first is in progress."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delegate:
    """The model gives a task to a sub-agent. Its prompt has to begin with `SUBTASK`."""

    task: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model gives the answer that a schema asked for."""

    value: Mapping[str, Any]


ToolPart = Shell | Write | Edit | Read | Mcp | Ask | Todo | Delegate | Answer
"""What a model does by calling a tool: each agent has tools of its own."""
Part = Say | Think | ToolPart
