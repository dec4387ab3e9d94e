"""The tools of a run by canonical name, and the names under which a model knows them (wire names).

Aliases are used in requests to the model and its responses only; history, hooks and events contain canonical names.
An alias may be for a tool that the toolset does not contain, because the history can still contain calls of it.
A tool of an MCP server may have any name; without an alias, a name that providers refuse has a derived wire name.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from agent_loop.errors import ConfigurationError
from agent_loop.messages import AssistantMessage, Block, Message, ToolCall, ToolMessage
from agent_loop.providers.provider import ToolDefinition
from agent_loop.tools.tool import Tool, mcp_origin_of

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""The names that all providers accept."""
_INVALID = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_DIGEST = 8
"""Characters of the digest in a derived name."""

ToolLike = Tool | Callable[..., Any]
"""A tool, or a typed function that becomes one."""
AnyMessage = TypeVar("AnyMessage", bound=Message)


class Toolset:
    """An ordered collection of tools by name. Raises `ConfigurationError` for invalid and duplicate names."""

    def __init__(self, tools: Iterable[ToolLike] = (), aliases: Mapping[str, str] | None = None) -> None:
        """`aliases` maps canonical names to wire names. Functions become tools, as by `function_tool`."""
        self._tools: dict[str, Tool] = {}
        for tool in map(as_tool, tools):
            if mcp_origin_of(tool) is None:
                _check_name(tool.name)
            if tool.name in self._tools:
                raise ConfigurationError(f"two tools are named {tool.name!r}; rename or remove one of them")
            self._tools[tool.name] = tool
        self._wire = dict(aliases or {})
        self._canonical = self._canonical_names()
        self.is_offered: Callable[[str], bool] = lambda _name: True
        """Whether requests contain the definition of a tool, by canonical name. A run may change it."""

    def _canonical_names(self) -> dict[str, str]:
        """Return the canonical names by wire name. Raises `ConfigurationError` for duplicates."""
        names: dict[str, str] = {}
        for canonical in [*self._wire, *(name for name in self._tools if name not in self._wire)]:
            wire = self.wire(canonical)
            _check_name(wire)
            if wire in names:
                raise ConfigurationError(
                    f"the tools {names[wire]!r} and {canonical!r} have the same wire name {wire!r}; change an alias"
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
        """The canonical names, in order."""
        return tuple(self._tools)

    @property
    def aliases(self) -> Mapping[str, str]:
        """The wire names by canonical name, where they differ."""
        return self._wire

    def get(self, name: str) -> Tool | None:
        """Return the tool with this canonical name, None if there is none."""
        return self._tools.get(name)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the definitions of the tools for a model request, under their wire names."""
        return tuple(
            ToolDefinition(self.wire(tool.name), tool.description, dict(tool.parameters)) for tool in self._offered()
        )

    def offered_names(self) -> tuple[str, ...]:
        """Return the wire names of the tools that requests contain, in order."""
        return tuple(self.wire(tool.name) for tool in self._offered())

    def _offered(self) -> Iterator[Tool]:
        return (tool for tool in self._tools.values() if self.is_offered(tool.name))

    def wire(self, canonical: str) -> str:
        """Return the wire name of a tool; without an alias, the canonical name or the name derived from it."""
        alias = self._wire.get(canonical)
        return derived_name(canonical) if alias is None else alias

    def canonical(self, wire: str) -> str:
        """Return the canonical name for a wire name; an unknown name is returned unchanged."""
        return self._canonical.get(wire, wire)

    def to_wire(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Return the messages of a history with wire names, for a model request."""
        sent = tuple(messages)
        changed = {name: wire for name in _tool_names(sent) if (wire := self.wire(name)) != name}
        return tuple(_rename(message, changed) for message in sent) if changed else sent

    def to_canonical(self, message: AnyMessage) -> AnyMessage:
        """Return a message of the model with canonical names. Its `native` content is left unchanged."""
        return _rename(message, self._canonical)


def derived_name(canonical: str) -> str:
    """Return a name that providers accept: the name itself, or a part of it with a digest of the whole."""
    if NAME.fullmatch(canonical):
        return canonical
    digest = hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{_INVALID.sub('_', canonical)[: 63 - _DIGEST]}_{digest}"


def as_tool(candidate: ToolLike) -> Tool:
    """Return a tool, or the tool of a typed function. Raises `ConfigurationError` for anything else."""
    if isinstance(candidate, Tool) and not isinstance(candidate, type):
        return candidate
    if isinstance(candidate, type):
        raise ConfigurationError(f"{candidate.__name__} is a class; pass an instance as the tool")
    if not callable(candidate):
        raise ConfigurationError(f"{candidate!r} is not a tool; pass a typed function or an object with Tool's methods")
    from agent_loop.tools.function import function_tool  # noqa: PLC0415  # it imports pydantic

    return function_tool(candidate)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is not a valid tool name: use up to 64 letters, digits, _ and -")


def _tool_names(messages: Iterable[Message]) -> set[str]:
    """Return the names of the tools in these messages, without a call for each message: histories are long."""
    names: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            names.add(message.name)
        elif isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, ToolCall):
                    names.add(block.name)
    return names


def _rename(message: AnyMessage, names: Mapping[str, str]) -> AnyMessage:
    """Return the message with tools renamed; the same object if no name changes."""
    match message:
        case AssistantMessage() if any(_is_renamed(call.name, names) for call in message.tool_calls):
            return msgspec.structs.replace(
                message, content=tuple(_rename_block(block, names) for block in message.content)
            )
        case ToolMessage() if _is_renamed(message.name, names):
            return msgspec.structs.replace(message, name=names[message.name])
    return message


def _is_renamed(name: str, names: Mapping[str, str]) -> bool:
    return names.get(name, name) != name


def _rename_block(block: Block, names: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCall) and _is_renamed(block.name, names):
        return msgspec.structs.replace(block, name=names[block.name])
    return block
