"""Reading the JSON that agents print, whatever is wrong with it. Never raises; `None` means: not an object."""

import json
from typing import Any

import msgspec

from agent_mux._util.sanitize import replace_surrogates

MAX_DEPTH = 200  # what is nested deeper could be read here and overflow the stack of whoever handles it later

_ANY = msgspec.json.Decoder()


def load_object(line: bytes) -> dict[str, Any] | None:
    """Parse one native line. None when it is no JSON object (noise, a bare value, a cut-off line)."""
    try:
        value = _ANY.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = _load_damaged(line)
    return value if isinstance(value, dict) and not _is_too_deep(line, value) else None


def _is_too_deep(line: bytes, root: Any) -> bool:
    if len(line) <= 2 * MAX_DEPTH or _opened(line) <= MAX_DEPTH:
        return False
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _parts(value) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _opened(line: bytes) -> int:
    # `bytes.count` looks at each byte for itself; this is six times as fast.
    return len(line) - len(line.replace(b"{", b"").replace(b"[", b""))


def _parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def _load_damaged(line: bytes) -> Any:
    """Second try, for what strict parsers refuse: bytes that are no UTF-8, lone surrogates, NUL, a BOM, NaN."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff").replace("\0", "").strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    _clean_in_place(value)
    return value


def _clean_in_place(root: Any) -> None:
    """Lone surrogates cannot be encoded again: they become U+FFFD, like any other byte that is no character.

    Without recursion: the parser may have taken more levels than are left here.
    """
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            items = [(_clean(key), _clean(item)) for key, item in value.items()]
            value.clear()
            value.update(items)
        else:
            value[:] = map(_clean, value)
        waiting += [item for item in _parts(value) if isinstance(item, dict | list)]


def _clean(value: Any) -> Any:
    return replace_surrogates(value) if isinstance(value, str) else value
