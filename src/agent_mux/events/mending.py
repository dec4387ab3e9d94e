"""What Python values can hold and JSON cannot, made encodable. Only used after encoding failed.

Lone surrogates (a path that is no UTF-8, half an emoji) become U+FFFD; what is nested deeper than any honest value
becomes a note.
"""

import re
from typing import Any

import msgspec

MAX_DEPTH = 100  # well below the recursion limit of the encoder, whoever calls it from wherever
_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Each lone surrogate becomes one U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def mended(value: Any, depth: int = 0) -> Any:
    """A copy of a value, or of an event, that can be encoded."""
    match value:
        case str():
            return without_surrogates(value)
        case list() | tuple() | dict() | msgspec.Struct() if depth >= MAX_DEPTH:
            return "(nested too deeply)"
        case list() | tuple():
            return [mended(item, depth + 1) for item in value]
        case dict():
            return {mended(key, depth + 1): mended(item, depth + 1) for key, item in value.items()}
        case msgspec.Struct():
            return type(value)(**{name: mended(getattr(value, name), depth + 1) for name in value.__struct_fields__})
    return value
