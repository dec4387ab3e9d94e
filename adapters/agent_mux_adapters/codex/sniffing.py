"""Which lines can only be Codex's."""

from collections.abc import Mapping
from typing import Any

from agent_mux_adapters.codex.items import EXEC_ITEMS
from agent_mux_adapters.codex.notices import KNOWN
from agent_mux_adapters.codex.requests import DECIDABLE

_TOLD = KNOWN | DECIDABLE | {"item/completed", "item/started", "thread/started", "turn/completed", "turn/started"}
_TURNS = {"turn.started": None, "turn.completed": "usage", "turn.failed": "error"}


def is_exec_line(line: Mapping[str, Any]) -> bool:
    """A line of `codex exec --json`."""
    kind, item = line.get("type"), line.get("item")
    if kind == "thread.started":
        return isinstance(line.get("thread_id"), str)
    if kind in ("item.started", "item.updated", "item.completed"):
        return isinstance(item, dict) and item.get("type") in list(EXEC_ITEMS)
    return isinstance(kind, str) and kind in _TURNS and (_TURNS[kind] or "type") in line


def is_app_server_line(line: Mapping[str, Any]) -> bool:
    """A line of `codex app-server`: one of its methods, or the answer to `initialize`."""
    method, result = line.get("method"), line.get("result")
    if isinstance(method, str):
        return "jsonrpc" not in line and method in _TOLD and "params" in line
    return isinstance(result, dict) and "codexHome" in result and "userAgent" in result
