"""What stays of a tool result that is far too large. Pure. Source: hooks seed, sections 6.1 and 11."""

import msgspec

from agent_loop.messages import Text
from agent_loop.tools.tool import ToolResult

MAX_RESULT_CHARACTERS = 80_000
"""About 20,000 tokens."""
KEPT_CHARACTERS = 2_000
"""Of the beginning, and of the end."""


def evicted(text: str, limit: int = MAX_RESULT_CHARACTERS, kept: int = KEPT_CHARACTERS) -> str:
    """Beginning and end of a text that is longer than `limit` characters; any other as it is."""
    if len(text) <= limit:
        return text
    return f"{text[:kept]}\n\n... (truncated {len(text) - 2 * kept} characters) ...\n\n{text[-kept:]}"


def evicted_result(result: ToolResult) -> ToolResult:
    """The result with all its text as one where that is too large: the text is evicted, images stay."""
    if len(result.text) <= MAX_RESULT_CHARACTERS:
        return result
    images = tuple(block for block in result.content if not isinstance(block, Text))
    return msgspec.structs.replace(result, content=(Text(evicted(result.text)), *images))
