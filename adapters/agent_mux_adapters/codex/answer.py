"""The answer of a run with an output schema."""

from typing import Any

import msgspec


def parsed_answer(text: str, schema: dict[str, Any] | None) -> Any:
    """The last message as JSON, where an output schema was asked for; None when it is not."""
    if schema is None:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
