"""What a model says and does, and how each agent's model says it: a scenario is written once, for all agents.

`block` is for the Anthropic Messages API with the tools of Claude Code, `item` for the OpenAI Responses API with the
tools of Codex.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_mux.testing.model_server import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Step,
    Text,
    Thinking,
    ToolUse,
)
from agent_mux.testing.model_server.script import Block, Item

SUBTASK = "SUBTASK"  # begins the prompts of sub-agents, so that the script can tell them apart
MCP_SERVER = "echo"


class Part(ABC):
    """Something in an answer of the model."""

    @abstractmethod
    def block(self, workspace: Path) -> Block:
        """As Claude Code's model says it."""

    @abstractmethod
    def item(self) -> Item:
        """As Codex's model says it."""


@dataclass(frozen=True)
class Say(Part):
    """The model answers in text."""

    text: str

    def block(self, workspace: Path) -> Block:
        return Text(self.text)

    def item(self) -> Item:
        return Message(self.text)


@dataclass(frozen=True)
class Think(Part):
    """The model thinks aloud."""

    text: str

    def block(self, workspace: Path) -> Block:
        return Thinking(self.text)

    def item(self) -> Item:
        return Reasoning(self.text)


@dataclass(frozen=True)
class Shell(Part):
    """The model runs a command. `asks`: one that needs permission."""

    command: str
    asks: bool = False

    def block(self, workspace: Path) -> Block:
        return ToolUse("Bash", {"command": self.command, "description": "Run it"})

    def item(self) -> Item:
        escalated = {"sandbox_permissions": "require_escalated", "justification": "it has to"} if self.asks else {}
        return FunctionCall("exec_command", {"cmd": self.command, **escalated})


@dataclass(frozen=True)
class Write(Part):
    """The model makes a file in the workspace."""

    name: str
    content: str

    def block(self, workspace: Path) -> Block:
        return ToolUse("Write", {"file_path": str(workspace / self.name), "content": self.content})

    def item(self) -> Item:
        added = "".join(f"+{line}\n" for line in self.content.splitlines())
        return CustomToolCall("apply_patch", f"*** Begin Patch\n*** Add File: {self.name}\n{added}*** End Patch")


@dataclass(frozen=True)
class Edit(Part):
    """The model replaces one line of a file in the workspace."""

    name: str
    old: str
    new: str

    def block(self, workspace: Path) -> Block:
        where = {"file_path": str(workspace / self.name)}
        return ToolUse("Edit", {**where, "old_string": self.old, "new_string": self.new})

    def item(self) -> Item:
        hunk = f"*** Update File: {self.name}\n@@\n-{self.old}\n+{self.new}\n"
        return CustomToolCall("apply_patch", f"*** Begin Patch\n{hunk}*** End Patch")


@dataclass(frozen=True)
class Read(Part):
    """The model reads a file in the workspace. Codex has no tool for that: it runs `cat`."""

    name: str

    def block(self, workspace: Path) -> Block:
        return ToolUse("Read", {"file_path": str(workspace / self.name)})

    def item(self) -> Item:
        return FunctionCall("exec_command", {"cmd": f"cat {self.name}"})


@dataclass(frozen=True)
class Mcp(Part):
    """The model calls a tool of the MCP server `echo`."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def block(self, workspace: Path) -> Block:
        return ToolUse(f"mcp__{MCP_SERVER}__{self.tool}", dict(self.arguments))

    def item(self) -> Item:
        return FunctionCall(self.tool, dict(self.arguments), namespace=f"mcp__{MCP_SERVER}")


@dataclass(frozen=True)
class Ask(Part):
    """The model asks the person a question."""

    question: str
    options: tuple[str, ...]

    def block(self, workspace: Path) -> Block:
        return ToolUse("AskUserQuestion", {"questions": [{**self._asked(), "multiSelect": False}]})

    def item(self) -> Item:
        return FunctionCall("request_user_input", {"questions": [{**self._asked(), "id": "q1"}]})

    def _asked(self) -> dict[str, Any]:
        options = [{"label": option, "description": option} for option in self.options]
        return {"question": self.question, "header": "Pick", "options": options}


@dataclass(frozen=True)
class Delegate(Part):
    """The model gives a task to a sub-agent."""

    task: str

    def block(self, workspace: Path) -> Block:
        kind = {"subagent_type": "general-purpose", "run_in_background": False}
        return ToolUse("Task", {"description": "A task", "prompt": f"{SUBTASK} {self.task}", **kind})

    def item(self) -> Item:
        arguments = {"message": f"{SUBTASK} {self.task}", "agent_type": "default"}
        return FunctionCall("spawn_agent", arguments, namespace="multi_agent_v1")


@dataclass(frozen=True)
class Answer(Part):
    """The model gives the answer that a schema asked for."""

    value: Mapping[str, Any]

    def block(self, workspace: Path) -> Block:
        return ToolUse("StructuredOutput", dict(self.value))

    def item(self) -> Item:
        return Message(json.dumps(dict(self.value)))


def step_of(agent: str, workspace: Path, *parts: Part, **fields: Any) -> Step:
    """One answer of the model. `fields` are those of `Step`."""
    if agent == "claude":
        return Step(blocks=tuple(part.block(workspace) for part in parts), **fields)
    return Step(items=tuple(part.item() for part in parts), **fields)


def delegation(agent: str, workspace: Path, task: str, *inside: Part) -> tuple[Step, ...]:
    """The model has a sub-agent do something, each part an answer of its own, and waits for the report."""
    subtask = tuple(step_of(agent, workspace, part, first=SUBTASK) for part in inside)
    steps = (*subtask, step_of(agent, workspace, Delegate(task)))
    if agent == "claude":
        return steps
    target = "{{re:agent_id[^0-9a-f]+([0-9a-f-]{36})}}"
    wait = FunctionCall("wait_agent", json.dumps({"targets": [target], "timeout_ms": 10_000}), "multi_agent_v1")
    return (*steps, Step(items=(wait,)))
