"""The message shapes and method names of the Agent Client Protocol that we read.

See https://agentclientprotocol.com/protocol/v1/schema; ten agents were recorded.
"""

from typing import Any

import msgspec

from agent_mux_adapters._dialects.tolerant import mapping, rows, text

# -- streamed fragments, decoded in one pass (hot path)


class _Content(msgspec.Struct, gc=False):
    type: str
    text: str


class Chunk(msgspec.Struct, gc=False):
    """A fragment of a message or a thought. `kind` may also name another update of the same shape."""

    kind: str = msgspec.field(name="sessionUpdate")
    content: _Content
    message_id: str | None = msgspec.field(name="messageId", default=None)
    meta: Any = msgspec.field(name="_meta", default=None)


class _ChunkParams(msgspec.Struct, gc=False):
    session: str = msgspec.field(name="sessionId")
    update: Chunk


class _ChunkLine(msgspec.Struct, gc=False):
    method: str
    params: _ChunkParams


MESSAGE = "agent_message_chunk"
THOUGHT = "agent_thought_chunk"
USER = "user_message_chunk"
decode_chunk = msgspec.json.Decoder(_ChunkLine).decode


# -- content blocks and configuration options


def text_of(content: Any) -> str:
    """Return the text of a content block or of a list of blocks; empty when it has none."""
    if isinstance(content, list):
        return "".join(map(text_of, content))
    block = mapping(content)
    if block.get("type") == "content":  # tool calls wrap their blocks
        return text_of(block.get("content"))
    if block.get("type") == "resource":
        return text(mapping(block.get("resource")).get("text"))
    return text(block.get("text"))


def choice_of(option: Any) -> str | None:
    """Return the current value of a configuration option with choices; None for another option."""
    value = mapping(option).get("currentValue")
    return value if isinstance(value, str) else None


def values_of(option: Any) -> list[str]:
    """Return the allowed values of a configuration option, with groups flattened."""
    offered = rows(mapping(option).get("options"))
    flat = [row for one in offered for row in (rows(one.get("options")) or [one])]
    return [text(row.get("value")) for row in flat if text(row.get("value"))]


def option_of(result: Any, category: str) -> Any:
    """Return the option of this category (`model`, `mode`, `thought_level`); None when it is missing."""
    options = rows(mapping(result).get("configOptions"))
    return next((option for option in options if option.get("category") == category), None)


def model_of(result: Any) -> str | None:
    """Return the model that the result of an opening request names; None when it names none."""
    fields = mapping(result)
    current = text(mapping(fields.get("models")).get("currentModelId"))
    return current or choice_of(option_of(fields, "model")) or None


# -- methods that the agent may call

_PROTOCOL = ("session/", "fs/", "terminal/", "elicitation/", "mcp/", "$/")
NOT_OFFERED = {
    "fs/read_text_file": "not announced: the agent has the same disk",
    "fs/write_text_file": "not announced: the agent has the same disk",
    "mcp/connect": "not announced: MCP servers are the agent's to connect to",
    "mcp/disconnect": "not announced: MCP servers are the agent's to connect to",
    "mcp/message": "not announced: MCP servers are the agent's to connect to",
    "terminal/create": "not announced: the agent runs its own commands",
    "terminal/kill": "not announced: the agent runs its own commands",
    "terminal/output": "not announced: the agent runs its own commands",
    "terminal/release": "not announced: the agent runs its own commands",
    "terminal/wait_for_exit": "not announced: the agent runs its own commands",
}
"""Known requests that we refuse, each with the reason."""


def is_extension(method: str) -> bool:
    """Return whether the method is not part of the protocol.

    Extensions should begin with an underscore, but not all agents follow that rule.
    """
    return not method.startswith(_PROTOCOL)
