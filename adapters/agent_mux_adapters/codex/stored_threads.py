"""Which rollouts belong to a thread that Codex stores, and what the user named it.

`rollout-<time>-<thread>.jsonl` is a thread. If a user reverts turns, Codex 0.169 leaves the file as it is and begins
`rollout-<time>-<thread>_<revision>.jsonl`: its first line has the ordinal of the first line that it replaces. Ids of
threads and revisions are UUIDs of version 7, which sort by time.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent_mux.sdk.session_files import COMPRESSED, read_json_objects
from agent_mux_adapters._dialects.tolerant import text

PLAIN = ".jsonl"
SESSIONS, ARCHIVE = "sessions", "archived_sessions"
INDEX = "session_index.jsonl"
"""File with the names of threads, one line for each naming: the last line of a thread applies."""
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_NAME = re.compile(r"rollout-[0-9T-]{19}-(?P<thread>[0-9A-Za-z-]{1,64})(?:_(?P<revision>[0-9a-f-]{36}))?")


class RolloutName(NamedTuple):
    """The ids in the file name of a rollout."""

    thread: str
    revision: str
    """Empty for the first rollout of a thread."""


class ThreadName(NamedTuple):
    """The entry of a thread in the index of names."""

    title: str
    changes: int
    """How often the thread was named."""


def name_of(path: Path) -> RolloutName:
    """Parse the file name of a rollout; the fields are empty for another name."""
    found = _NAME.fullmatch(path.name.removesuffix(COMPRESSED).removesuffix(PLAIN))
    return RolloutName("", "") if found is None else RolloutName(found["thread"], found["revision"] or "")


def home_of(path: Path) -> Path:
    """Return the `$CODEX_HOME` that contains a rollout."""
    return path.parents[1 if path.parent.name == ARCHIVE else 4]


def rollout_of(home: Path, thread: str, *, before: str = "") -> Path | None:
    """Return the newest rollout of a thread; `before`: the newest that existed when the thread `before` began."""
    rollouts = [path for path in _rollouts_of(home, thread) if not before or name_of(path).revision < before]
    return max(rollouts, key=lambda path: name_of(path).revision, default=None)


def replaced_rollouts(path: Path) -> list[Path]:
    """Return the rollouts of a thread that were reverted to get this one, oldest first."""
    thread, revision = name_of(path)
    if not revision:
        return []
    earlier = {name_of(other).revision: other for other in _rollouts_of(home_of(path), thread)}
    return [earlier[other] for other in sorted(earlier) if other < revision]


def _rollouts_of(home: Path, thread: str) -> Iterator[Path]:
    if _THREAD_ID.fullmatch(thread):
        names = [f"rollout-*-{thread}{end}{suffix}" for suffix in (PLAIN, PLAIN + COMPRESSED) for end in ("", "_*")]
        for pattern in (f"{place}/{name}" for name in names for place in (f"{SESSIONS}/*/*/*", ARCHIVE)):
            yield from home.glob(pattern)


def read_names(home: Path) -> dict[str, ThreadName]:
    """Return the names that the user gave to threads, by the id of the thread."""
    names: dict[str, ThreadName] = {}
    try:
        for row in read_json_objects(home / INDEX):
            thread, title = text(row.get("id")), text(row.get("thread_name"))
            names[thread] = ThreadName(title, names[thread].changes + 1 if thread in names else 1)
    except OSError:  # nothing was named
        return names
    return names
