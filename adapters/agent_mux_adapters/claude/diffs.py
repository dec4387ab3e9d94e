"""The unified diff of an edit, from the hunks that Claude Code tells."""

from collections.abc import Mapping
from typing import Any

from agent_mux_adapters._dialects.tolerant import rows, text, whole
from agent_mux_adapters._dialects.unified_diff import with_header


def from_patch(path: str, patch: Any) -> str:
    """The diff of a `structuredPatch`: hunks with their lines ready. Empty when there are none."""
    hunks = [hunk for row in rows(patch) for hunk in _hunk_of_row(row)]
    return with_header(path, hunks)


def _hunk_of_row(row: Mapping[str, Any]) -> list[str]:
    lines = row.get("lines")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return []
    old, new = (_span(row, side) for side in ("old", "new"))
    return [f"@@ -{old} +{new} @@", *map(text, lines)]


def _span(row: Mapping[str, Any], side: str) -> str:
    start, count = whole(row.get(f"{side}Start")), whole(row.get(f"{side}Lines"))
    # The CLI counts from 1 always; in a unified diff, no lines start before the first one.
    return f"{start if count else max(start - 1, 0)},{count}"
