"""What an edit did to its file: from both whole texts where they are told, else from the CLI's own diff."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import FileEffect, FilePatched, FileWritten
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import text

NO_FILE = "--- /dev/null"


def effects(path: str, body: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    """The file that was made or patched. Nothing where the CLI does not say what changed."""
    before, after, diff = (
        body.get("beforeFullFileContent"),
        body.get("afterFullFileContent"),
        text(body.get("diffString")),
    )
    if isinstance(after, str) and (not isinstance(before, str) or diff.startswith(NO_FILE)):
        return (FileWritten(path, len(after.encode("utf-8", "replace")), created=True),)
    if isinstance(before, str) and isinstance(after, str):
        patch = unified_diff.from_texts(path, before, after)
    else:
        patch = unified_diff.with_header(path, _hunks(diff))
    return (FilePatched(path, patch),) if patch else ()


def _hunks(diff: str) -> list[str]:
    """The hunks of the CLI's diff. Old versions print the changed lines alone: they become a hunk of their own."""
    lines = diff.removesuffix("\n").split("\n") if diff else []
    first = next((index for index, line in enumerate(lines) if line.startswith("@@ ")), None)
    if first is not None:
        return lines[first:]
    changed = [line for line in lines if line[:1] in {"+", "-", " "} and not line.startswith(("--- ", "+++ "))]
    old, new = (sum(line[0] in marks for line in changed) for marks in ("- ", "+ "))
    return [f"@@ -{min(old, 1)},{old} +{min(new, 1)},{new} @@", *changed] if changed else []
