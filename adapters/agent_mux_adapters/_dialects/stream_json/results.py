"""A `tool_result` block, and the structured result that may stand beside it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


class Call(msgspec.Struct, frozen=True):
    """A tool call that waits for its result."""

    name: str
    input: Mapping[str, Any]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result, taken apart."""

    call_id: str
    content: Any
    """What the model was shown: a string, or blocks."""
    failed: bool
    extra: Any
    """`tool_use_result`: the agent's own structured result, where it prints one."""

    @property
    def shown(self) -> str:
        """The text the model was shown."""
        if isinstance(self.content, str):
            return _without_wrapper(self.content)
        return "\n".join(text(block.get("text")) for block in rows(self.content) if block.get("type") == "text")

    @property
    def output(self) -> Any:
        """What is told as the output: text where it is only text, else the blocks, without the bytes of images."""
        blocks = rows(self.content)
        if all(block.get("type") == "text" for block in blocks):
            return self.shown
        return [_without_bytes(block) for block in blocks]

    @property
    def error(self) -> str:
        """What is told as the error."""
        return self.shown or text(self.extra) or "the tool failed and said nothing"


def read_result(block: Mapping[str, Any], extra: Any) -> Result:
    """A `tool_result` block."""
    return Result(
        call_id=text(block.get("tool_use_id")),
        content=block.get("content"),
        failed=block.get("is_error") is True,
        extra=extra,
    )


def mcp_facts(result: Result) -> tuple[facts.Fact, ...]:
    """The end of a call of an MCP server's tool."""
    if result.failed:
        return (facts.McpDone(result.call_id, error=result.error),)
    return (facts.McpDone(result.call_id, output=result.output), *images(result))


def images(result: Result) -> tuple[facts.Fact, ...]:
    """The images in a result."""
    sources = [mapping(block.get("source")) for block in rows(result.content) if block.get("type") == "image"]
    return tuple(
        facts.ImageProduced(text(source.get("media_type")) or "image/png", base64=text(source.get("data")))
        for source in sources
        if text(source.get("data"))
    )


def _without_wrapper(said: str) -> str:
    return said.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def _without_bytes(block: Mapping[str, Any]) -> Mapping[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict) or "data" not in source:
        return block
    return {**block, "source": {key: value for key, value in source.items() if key != "data"}}
