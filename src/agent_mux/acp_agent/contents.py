"""What tools give, as contents of the protocol."""

import json
from typing import Any

from acp import text_block
from acp.schema import ContentToolCallContent


def said(words: str) -> ContentToolCallContent:
    """Text, as the content of a tool call."""
    return ContentToolCallContent(type="content", content=text_block(words))


def shown(output: Any) -> str:
    """What a tool gave the model, as text."""
    if isinstance(output, str):
        return output
    return "" if output is None else json.dumps(output, ensure_ascii=False, indent=1, default=str)
