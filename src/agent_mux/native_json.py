"""Reading the JSON that agents print, whatever is wrong with it. Never raises; `None` means: not an object."""

import json
from typing import Any

import msgspec

_ANY = msgspec.json.Decoder()


def load_object(line: bytes) -> dict[str, Any] | None:
    """Parse one native line. None when it is no JSON object (noise, a bare value, a cut-off line)."""
    try:
        value = _ANY.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = _load_damaged(line)
    return value if isinstance(value, dict) else None


def _load_damaged(line: bytes) -> Any:
    """Second try, for what strict parsers refuse: bytes that are no UTF-8, lone surrogates, NUL, a BOM, NaN."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff").replace("\0", "").strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return _without_surrogates(value)


def _without_surrogates(value: Any) -> Any:
    """Lone surrogates cannot be encoded again: they become U+FFFD, like any other byte that is no character."""
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
