"""Unified diffs of what an edit did, from two texts or from hunks that the agent made. Pure; no I/O."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from agent_mux.facts import FileEffect, FilePatched

CONTEXT_LINES = 3
NO_NEWLINE = "\\ No newline at end of file"


def with_header(path: str, lines: list[str]) -> str:
    """The diff of these lines: hunks with their `@@`. Empty when there are none."""
    if not lines:
        return ""
    return _header(path.lstrip("/")) + "\n".join(lines) + "\n"


def from_texts(path: str, old: str, new: str) -> str:
    """The diff between two whole texts, in one hunk; empty when they are the same. Linear in their length."""
    return with_header(path, list(_hunk_between(old, new)))


def from_replacements(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    """The diff of replacements whose place in the file nobody told: line numbers count from the fragment's start."""
    return with_header(path, [line for old, new in pairs for line in _hunk_between(old, new)])


def relative_to(directory: str, effect: FileEffect) -> FileEffect:
    """A patch of a file inside of the directory, with a header that can be applied there. Others as they are."""
    if not isinstance(effect, FilePatched) or not directory or not PurePath(effect.path).is_relative_to(directory):
        return effect
    _, _, hunks = effect.diff.split("\n", 2)
    return FilePatched(effect.path, _header(str(PurePath(effect.path).relative_to(directory))) + hunks)


def _header(name: str) -> str:
    return f"--- a/{name}\n+++ b/{name}\n"


def _hunk_between(old: str, new: str) -> Iterator[str]:
    if old == new:
        return
    before, after = _lines(old), _lines(new)
    same_head = _common(before, after)
    same_tail = _common(before[same_head:][::-1], after[same_head:][::-1])
    first = max(same_head - CONTEXT_LINES, 0)
    kept = min(same_tail, CONTEXT_LINES)
    old_end, new_end = len(before) - same_tail, len(after) - same_tail
    old_count, new_count = old_end + kept - first, new_end + kept - first
    yield f"@@ -{first + (old_count > 0)},{old_count} +{first + (new_count > 0)},{new_count} @@"
    yield from _marked(" ", before[first:same_head])
    yield from _marked("-", before[same_head:old_end])
    yield from _marked("+", after[same_head:new_end])
    yield from _marked(" ", before[old_end : old_end + kept])


def _lines(content: str) -> list[str]:
    # Not splitlines(): it also splits at characters that are part of a line for everybody else.
    *complete, rest = content.split("\n")
    return [f"{line}\n" for line in complete] + ([rest] if rest else [])


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_NEWLINE
