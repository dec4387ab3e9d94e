"""Answers of a model, spelled for an agent."""

from pathlib import Path
from typing import Any

from agent_mux.testing.live.kit import LiveKit
from agent_mux.testing.live.parts import SUBTASK, Delegate, Part, Say, Think
from agent_mux.testing.model_server import Message, Reasoning, Step, Text, Thinking
from agent_mux.testing.model_server.script import Block, Item

__all__ = ["answer", "delegation"]


def answer(kit: LiveKit, workspace: Path, *parts: Part, **fields: Any) -> Step:
    """One answer of the model. `fields` are those of `Step`. Raises `Unspeakable` when the agent has no such tool."""
    said: Any = tuple(_spelled(kit, part, workspace) for part in parts)
    return Step(items=said, **fields) if kit.api == "responses" else Step(blocks=said, **fields)


def _spelled(kit: LiveKit, part: Part, workspace: Path) -> Block | Item:
    # What a model says and thinks is up to the API; how it calls a tool is up to the agent.
    has_items = kit.api == "responses"
    match part:
        case Say(text):
            return Message(text) if has_items else Text(text)
        case Think(text):
            return Reasoning(text) if has_items else Thinking(text)
    return kit.spell(part, workspace)


def delegation(kit: LiveKit, workspace: Path, task: str, *inside: Part) -> tuple[Step, ...]:
    """The model has a sub-agent do something, each part an answer of its own, and waits for the report."""
    subtask = tuple(answer(kit, workspace, part, first=SUBTASK) for part in inside)
    return (*subtask, answer(kit, workspace, Delegate(task)), *kit.after_delegation)
