"""What came of a tool call: `{content: blocks, details}`, partial or final."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result, taken apart."""

    call_id: str
    content: list[Mapping[str, Any]]
    details: Mapping[str, Any]
    failed: bool

    @property
    def shown(self) -> str:
        """The text the model was shown."""
        return "\n".join(text(block.get("text")) for block in self.content if block.get("type") == "text")

    @property
    def output(self) -> Any:
        """What is told as the output: text where it is only text, else the blocks, without the bytes of images."""
        if all(block.get("type") == "text" for block in self.content):
            return self.shown
        return [{key: value for key, value in block.items() if key != "data"} for block in self.content]

    @property
    def error(self) -> str:
        """What is told as the error."""
        return self.shown or "the tool failed and said nothing"


def read_result(call_id: str, result: Any, *, failed: bool) -> Result:
    """The `result` or `partialResult` of a line."""
    fields = mapping(result)
    return Result(
        call_id=call_id, content=rows(fields.get("content")), details=mapping(fields.get("details")), failed=failed
    )


def images(result: Result) -> tuple[facts.Fact, ...]:
    """The images in a result."""
    return tuple(
        facts.ImageProduced(text(block.get("mimeType")) or "image/png", base64=text(block.get("data")))
        for block in result.content
        if block.get("type") == "image" and text(block.get("data"))
    )


def written(path: str, content: str, details: Mapping[str, Any]) -> facts.FileWritten:
    """A file that a tool wrote. Only our extension tells whether it was there before; without it, nobody knows."""
    return facts.FileWritten(path, len(content.encode("utf-8", "replace")), details.get("existedBefore") is False)
