"""Values as JSON that can always be stored: a history is never lost because something in it is odd.

Plain data comes back as it was. What is no plain data is stored as its text, and half of a character (a lone surrogate,
which models do write) as the replacement character: neither can be said in JSON.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_LONE = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def encode_json(value: Any) -> bytes:
    """The value as JSON. Raises `ValueError` for what is nested more deeply than Python can follow."""
    try:
        return _encoded(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply to be stored") from error


def _encoded(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, TypeError):
        return _ENCODER.encode(_storable(msgspec.to_builtins(value, enc_hook=str)))


def _storable(value: Any) -> Any:
    match value:
        case str():
            return _LONE.sub("\ufffd", value)
        case Mapping():
            return {_storable(str(name)): _storable(each) for name, each in value.items()}
        case list() | tuple():
            return [_storable(each) for each in value]
        case _:
            return value
