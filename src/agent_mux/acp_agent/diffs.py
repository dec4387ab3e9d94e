"""File changes as the protocol shows them: the text before and the text after."""

from collections.abc import Mapping
from typing import Any

from acp.schema import FileEditToolCallContent

from agent_mux.acp_agent.tool_kinds import absolute

_CONTENTS = ("content", "contents", "file_text", "text")


def diffs_of_patch(path: str, diff: str, cwd: str) -> list[FileEditToolCallContent]:
    """A unified diff, hunk by hunk: each with the lines around the change."""
    hunks: list[tuple[list[str], list[str]]] = []
    for line in diff.splitlines():
        if line.startswith("@@"):
            hunks.append(([], []))
        elif hunks and not line.startswith("\\"):
            before, after = hunks[-1]
            if not line.startswith("+"):
                before.append(line[1:])
            if not line.startswith("-"):
                after.append(line[1:])
    return [_diff(path, cwd, "\n".join(before), "\n".join(after)) for before, after in hunks]


def diff_of_new_file(path: str, byte_count: int, given: Any, cwd: str) -> list[FileEditToolCallContent]:
    """A new file, where the input of the tool has its text: the one that is as long as what was written."""
    if not isinstance(given, Mapping):
        return []
    texts = [given[key] for key in _CONTENTS if isinstance(given.get(key), str)]
    found = next((text for text in texts if len(text.encode("utf-8", "replace")) == byte_count), None)
    return [] if found is None else [_diff(path, cwd, None, found)]


def _diff(path: str, cwd: str, before: str | None, after: str) -> FileEditToolCallContent:
    return FileEditToolCallContent(type="diff", path=absolute(path, cwd), old_text=before or None, new_text=after)
