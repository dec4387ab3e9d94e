"""What a CLI printed, read by other means than its adapter's."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux_testing.fixtures import Fixture

ENDED = frozenset({"completed", "failed"})


def natives(fixture: Fixture) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects."""
    for line in fixture.stdout_lines:
        try:
            native = json.loads(line)
        except ValueError:
            continue
        if isinstance(native, dict):
            yield native


def acp_update(native: Mapping[str, Any]) -> dict[str, Any]:
    """The update of an ACP session; empty when a line is none."""
    update: dict[str, Any] = (native.get("params") or {}).get("update") or {}
    return update


def acp_ends(fixture: Fixture) -> Iterator[dict[str, Any]]:
    """The updates that end calls."""
    return (update for update in map(acp_update, natives(fixture)) if update.get("status") in ENDED)


def acp_texts(update: Mapping[str, Any]) -> str:
    """What a call shows."""
    return "\n".join(item["content"]["text"] for item in update.get("content", ()) if item["type"] == "content")
