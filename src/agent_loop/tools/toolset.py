"""The tools of a run by their canonical names, and the names that a model knows them by.

Source: zidane, "Tool aliasing (wire vs. canonical)". Aliases exist at the boundary to the model only: history, hooks
and events have canonical names. An alias may name a tool that is not here: calls of it can still be in the history.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from agent_loop.errors import ConfigurationError
from agent_loop.messages import AssistantMessage, Block, Message, ToolCall, ToolMessage
from agent_loop.providers.provider import ToolDefinition
from agent_loop.tools.tool import Tool

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""What all providers take as the name of a tool."""

AnyMessage = TypeVar("AnyMessage", bound=Message)


class Toolset:
    """Tools by name, in their order. Raises `ConfigurationError` for names that are invalid or there twice."""

    def __init__(self, tools: Iterable[Tool] = (), aliases: Mapping[str, str] | None = None) -> None:
        """`aliases`: canonical name -> the name that the model knows."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            _check_name(tool.name)
            if tool.name in self._tools:
                raise ConfigurationError(f"two tools are called {tool.name!r}; rename or leave out one of them")
            self._tools[tool.name] = tool
        self._wire = dict(aliases or {})
        self._canonical = self._reversed()

    def _reversed(self) -> dict[str, str]:
        """Wire name -> canonical name, of all that is aliased."""
        names: dict[str, str] = {}
        for canonical in [*self._wire, *(name for name in self._tools if name not in self._wire)]:
            wire = self.wire(canonical)
            _check_name(wire)
            if wire in names:
                raise ConfigurationError(
                    f"the tools {names[wire]!r} and {canonical!r} would both be {wire!r} to the model; change an alias"
                )
            names[wire] = canonical
        return names

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names, in order."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of this canonical name."""
        return self._tools.get(name)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is told of the tools, under their wire names."""
        return tuple(
            ToolDefinition(self.wire(tool.name), tool.description, dict(tool.parameters))
            for tool in self._tools.values()
        )

    def wire(self, canonical: str) -> str:
        """The name that the model knows; the same where there is no alias."""
        return self._wire.get(canonical, canonical)

    def canonical(self, wire: str) -> str:
        """Our name of what the model calls so; the same where nothing is known under that name."""
        return self._canonical.get(wire, wire)

    def to_wire(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """A history as the model is to see it."""
        if not self._wire:
            return tuple(messages)
        return tuple(_renamed(message, self._wire) for message in messages)

    def to_canonical(self, message: AnyMessage) -> AnyMessage:
        """A message of the model as history and hooks are to see it. `native` stays as the provider wrote it."""
        return _renamed(message, self._canonical)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name for a tool: use letters, digits, _ and -, up to 64 of them")


def _renamed(message: AnyMessage, names: Mapping[str, str]) -> AnyMessage:
    """The same message, the very object where no name changes."""
    match message:
        case AssistantMessage() if any(_is_renamed(call.name, names) for call in message.tool_calls):
            return msgspec.structs.replace(message, content=tuple(_block(block, names) for block in message.content))
        case ToolMessage() if _is_renamed(message.name, names):
            return msgspec.structs.replace(message, name=names[message.name])
    return message


def _is_renamed(name: str, names: Mapping[str, str]) -> bool:
    return names.get(name, name) != name


def _block(block: Block, names: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCall) and _is_renamed(block.name, names):
        return msgspec.structs.replace(block, name=names[block.name])
    return block
