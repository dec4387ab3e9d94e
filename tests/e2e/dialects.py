"""What a model says and does, in words that are the same for all agents, and how each agent's model says it."""

import json
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


@dataclass(frozen=True)
class Say:
    """The model answers in text."""

    text: str


@dataclass(frozen=True)
class Think:
    """The model thinks aloud."""

    text: str


@dataclass(frozen=True)
class Shell:
    """The model runs a command. `asks`: one that needs permission."""

    command: str
    asks: bool = False


@dataclass(frozen=True)
class Write:
    """The model makes a file in the workspace."""

    name: str
    content: str


@dataclass(frozen=True)
class Read:
    """The model reads a file in the workspace."""

    name: str


@dataclass(frozen=True)
class Edit:
    """The model replaces one line of a file in the workspace."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Mcp:
    """The model calls a tool of the MCP server `echo`."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """The model asks the person a question."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Delegate:
    """The model gives a task to a sub-agent."""

    task: str


@dataclass(frozen=True)
class Answer:
    """The model gives the answer that a schema asked for."""

    value: Mapping[str, Any]


Part = Say | Think | Shell | Write | Read | Edit | Mcp | Ask | Delegate | Answer


def claude_block(part: Part, workspace: Path) -> Block:
    """For the Anthropic Messages API, with the tools of Claude Code."""
    match part:
        case Say(text):
            return Text(text)
        case Think(text):
            return Thinking(text)
        case Shell(command):
            return ToolUse("Bash", {"command": command, "description": "Run it"})
        case Write(name, content):
            return ToolUse("Write", {"file_path": str(workspace / name), "content": content})
        case Read(name):
            return ToolUse("Read", {"file_path": str(workspace / name)})
        case Edit(name, old, new):
            return ToolUse("Edit", {"file_path": str(workspace / name), "old_string": old, "new_string": new})
        case Mcp(tool, arguments):
            return ToolUse(f"mcp__{MCP_SERVER}__{tool}", dict(arguments))
        case Ask(question, options):
            choices = [{"label": option, "description": option} for option in options]
            asked = {"question": question, "header": "Pick", "multiSelect": False, "options": choices}
            return ToolUse("AskUserQuestion", {"questions": [asked]})
        case Delegate(task):
            kind = {"subagent_type": "general-purpose", "run_in_background": False}
            return ToolUse("Task", {"description": "A task", "prompt": f"{SUBTASK} {task}", **kind})
        case Answer(value):
            return ToolUse("StructuredOutput", dict(value))


def codex_item(part: Part, workspace: Path) -> Item:
    """For the OpenAI Responses API, with the tools of Codex. It has no tool that reads files: it runs `cat`."""
    match part:
        case Say(text):
            return Message(text)
        case Think(text):
            return Reasoning(text)
        case Shell(command, asks):
            escalated = {"sandbox_permissions": "require_escalated", "justification": "it has to"} if asks else {}
            return FunctionCall("exec_command", {"cmd": command, **escalated})
        case Write(name, content):
            added = "".join(f"+{line}\n" for line in content.splitlines())
            return CustomToolCall("apply_patch", f"*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch")
        case Read(name):
            return FunctionCall("exec_command", {"cmd": f"cat {name}"})
        case Edit(name, old, new):
            hunk = f"*** Update File: {name}\n@@\n-{old}\n+{new}\n"
            return CustomToolCall("apply_patch", f"*** Begin Patch\n{hunk}*** End Patch")
        case Mcp(tool, arguments):
            return FunctionCall(tool, dict(arguments), namespace=f"mcp__{MCP_SERVER}")
        case Ask(question, options):
            choices = [{"label": option, "description": option} for option in options]
            asked = {"id": "q1", "header": "Pick", "question": question, "options": choices}
            return FunctionCall("request_user_input", {"questions": [asked]})
        case Delegate(task):
            arguments = {"message": f"{SUBTASK} {task}", "agent_type": "default"}
            return FunctionCall("spawn_agent", arguments, namespace="multi_agent_v1")
        case Answer(value):
            return Message(json.dumps(dict(value)))


def step_of(agent: str, workspace: Path, *parts: Part, **fields: Any) -> Step:
    """One answer of the model. `fields` are those of `Step`."""
    if agent == "claude":
        return Step(blocks=tuple(claude_block(part, workspace) for part in parts), **fields)
    return Step(items=tuple(codex_item(part, workspace) for part in parts), **fields)


def delegation(agent: str, workspace: Path, task: str, *inside: Part) -> tuple[Step, ...]:
    """The model has a sub-agent do something, each part an answer of its own, and waits for the report."""
    subtask = tuple(step_of(agent, workspace, part, first=SUBTASK) for part in inside)
    steps = (*subtask, step_of(agent, workspace, Delegate(task)))
    if agent == "claude":
        return steps
    target = "{{re:agent_id[^0-9a-f]+([0-9a-f-]{36})}}"
    wait = FunctionCall("wait_agent", json.dumps({"targets": [target], "timeout_ms": 10_000}), "multi_agent_v1")
    return (*steps, Step(items=(wait,)))
