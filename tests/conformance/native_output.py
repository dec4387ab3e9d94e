"""Output of CLIs, parsed independently of their adapters."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux_testing.fixtures import Fixture

ENDED = frozenset({"completed", "failed"})


def native_lines(fixture: Fixture) -> Iterator[dict[str, Any]]:
    """Yield the lines that are JSON objects."""
    for line in fixture.stdout_lines:
        try:
            native = json.loads(line)
        except ValueError:
            continue
        if isinstance(native, dict):
            yield native


def acp_update(native: Mapping[str, Any]) -> dict[str, Any]:
    """Return the update of an ACP session; empty for other messages."""
    update: dict[str, Any] = (native.get("params") or {}).get("update") or {}
    return update


def acp_ends(fixture: Fixture) -> Iterator[dict[str, Any]]:
    """Yield the updates that end tool calls."""
    return (update for update in map(acp_update, native_lines(fixture)) if update.get("status") in ENDED)


def acp_texts(update: Mapping[str, Any]) -> str:
    """Return the texts of a tool call's content, joined by newlines."""
    return "\n".join(item["content"]["text"] for item in update.get("content", ()) if item["type"] == "content")
