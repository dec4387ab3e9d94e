"""Plain data as people may see it: options of runs, and files that say them."""

from collections.abc import Mapping
from typing import Any

from agent_mux.redaction.names import HIDDEN, is_secret_name, without_secret_values

_SHOWN_AS_NAMES = frozenset({"env", "headers"})  # their values may be secrets


def shown(name: str, value: Any) -> Any:
    """A value without what its name, or a name in it, says is secret. What JSON has no word for becomes text."""
    if name in _SHOWN_AS_NAMES and isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    if value is not None and (name == "base64" or is_secret_name(name)) and isinstance(value, str):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: shown(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [shown("", item) for item in value]
        return list(without_secret_values(items)) if name in {"args", "command"} else items
    return value if isinstance(value, str | int | float | bool | None) else str(value)
