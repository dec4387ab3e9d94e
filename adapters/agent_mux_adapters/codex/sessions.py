"""Sessions that Codex stores: rollouts, one file of JSON lines for each thread.

`$CODEX_HOME` (else `~/.codex`) `/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and `/archived_sessions/`
for threads that the user archived. Codex compresses rollouts that did not change for a week (`.jsonl.zst`).
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.session_files import (
    COMPRESSED,
    JsonLinesReader,
    SubagentUsageReader,
    find_session_files,
    read_json_objects,
)
from agent_mux.sdk.sessions import (
    FoundSession,
    SessionDescribed,
    SessionEntry,
    SessionReader,
    SessionStore,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.codex.rollbacks import KeptTurns, removed_turns
from agent_mux_adapters.codex.rollouts import RolloutReader

MAX_FORKS = 50
"""The longest chain of forks that is followed. A longer one is a cycle."""
PLAIN = ".jsonl"
SESSIONS, ARCHIVE = "sessions", "archived_sessions"
INDEX = "session_index.jsonl"
"""File with the names of threads: the last line of a thread applies."""
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_REVERTED = re.compile(r"-(?P<thread>[0-9a-f-]{36})_(?P<revision>[0-9a-f-]{36})$")
"""The end of the name of a rollout that replaces what follows a certain line of the thread's earlier rollout."""


def root(place: AgentPaths) -> Path:
    """Return the directory with the directories of the years."""
    return _home(place) / SESSIONS


def _home(place: AgentPaths) -> Path:
    return place.home_of("CODEX_HOME", ".codex")


def find(place: AgentPaths) -> Iterator[FoundSession]:
    """Find the rollouts of all threads. While Codex compresses a rollout, or resumes it, both files exist."""
    home = _home(place)
    compressed: list[FoundSession] = []
    plain: set[str] = set()
    named_at = _modified(home / INDEX)
    everything = list(_find_rollouts(home))
    replaced = {path for found in everything for path in _replaced_by(found.path)}
    for one in everything:
        if one.path in replaced:
            continue
        found = one._replace(modified=max(one.modified, named_at))
        if found.path.suffix == COMPRESSED:
            compressed.append(found)
        elif found.path.suffix in {PLAIN, ".json"}:
            plain.add(found.path.name)
            yield found
    yield from (found for found in compressed if found.path.stem not in plain)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _find_rollouts(home: Path) -> Iterator[FoundSession]:
    return chain(
        find_session_files(home / SESSIONS, "*/*/*/rollout-*.jsonl*"),
        find_session_files(home / ARCHIVE, "rollout-*.jsonl*"),
        find_session_files(home / SESSIONS, "rollout-*.json"),
    )


def _replaced_by(path: Path) -> list[Path]:
    """Return the earlier rollouts of the same thread, oldest first, if a user reverted turns of it."""
    found = _REVERTED.search(path.name.removesuffix(COMPRESSED).removesuffix(PLAIN))
    if found is None:
        return []
    home = _home_of(path)
    names = [f"{place}/rollout-*-{found['thread']}*{PLAIN}*" for place in (f"{SESSIONS}/*/*/*", ARCHIVE)]
    others = {other for name in names for other in home.glob(name)} - {path}
    earlier = [other for other in others if _revision(other) < found["revision"]]
    return sorted(earlier, key=_revision)


def _revision(path: Path) -> str:
    found = _REVERTED.search(path.name.removesuffix(COMPRESSED).removesuffix(PLAIN))
    return "" if found is None else found["revision"]


def _home_of(path: Path) -> Path:
    return path.parents[1 if path.parent.name == ARCHIVE else 4]


def _title_of(thread_id: str, home: Path) -> str | None:
    index = home / INDEX
    if not thread_id or not index.is_file():
        return None
    names = [row.get("thread_name") for row in read_json_objects(index) if row.get("id") == thread_id]
    return text(names[-1]) or None if names else None


def open_session(found: FoundSession) -> SessionReader:
    """Return a cursor at the first line of a rollout."""
    if found.path.suffix == ".json":
        raise UnreadableSessionError("it has the format of the first Codex CLI, which agent-mux does not read")
    return RolloutCursor(found.path)


class RolloutCursor:
    """A cursor over a thread and, before it, the part of the thread that it was forked from.

    The rollout of a fork contains only what came after the fork.
    """

    def __init__(self, path: Path, *, until: int | None = None, forks_left: int = MAX_FORKS) -> None:
        """`until`: the ordinal of the first line to leave out; None for no limit."""
        self._path = path
        self._forks_left = forks_left
        self._is_new = True
        self._until = until
        self._turns = KeptTurns(())
        self._thread = RolloutReader(until)
        self._lines = JsonLinesReader(path, self._thread.read, self._thread.close)
        self._subagents = SubagentUsageReader(lambda: RolloutReader().read)

    def read(self) -> Iterator[SessionEntry]:
        """Read the entries since the last call. See `Cursor.read`."""
        if self._is_new:
            self._is_new = False
            self._turns = KeptTurns(removed_turns(self._path, self._until))
            origin = self._reverted() or self._origin()
            inherited = origin.read() if origin is not None else ()
            yield from (entry for entry in inherited if not isinstance(entry.fact, SessionDescribed))
        for entry in self._turns.filter(self._lines.read()):
            yield entry
            described = entry.fact
            if isinstance(described, SessionDescribed) and described.session_id and self._until is None:
                title = _title_of(described.session_id, _home_of(self._path))
                if title is not None:
                    yield SessionEntry(None, SessionDescribed(title=title))
        paths = map(self._rollout_of, self._thread.subagents)
        yield from self._subagents.read(path for path in paths if path is not None)

    def _rollout_of(self, thread_id: str) -> Path | None:
        if not _THREAD_ID.fullmatch(thread_id):
            return None
        home = _home_of(self._path)
        names = [f"rollout-*-{thread_id}{suffix}" for suffix in (PLAIN, PLAIN + COMPRESSED)]
        patterns = (f"{place}/{name}" for name in names for place in (f"{SESSIONS}/*/*/*", ARCHIVE))
        return next((path for pattern in patterns for path in home.glob(pattern)), None)

    def _reverted(self) -> "RolloutCursor | None":
        """Return the part of the thread that the user kept, in its earlier rollout."""
        earlier = _replaced_by(self._path)
        until = next(read_json_objects(self._path), {}).get("ordinal")
        if not earlier or not isinstance(until, int) or not self._forks_left:
            return None
        until = until if self._until is None else min(until, self._until)
        return RolloutCursor(earlier[-1], until=until, forks_left=self._forks_left - 1)

    def _origin(self) -> "RolloutCursor | None":
        first = mapping(next(read_json_objects(self._path), {}).get("payload"))
        path, until = self._rollout_of(text(first.get("forked_from_id"))), first.get("forked_from_ordinal_exclusive")
        if path is None or not isinstance(until, int) or not self._forks_left:
            return None
        return RolloutCursor(path, until=until, forks_left=self._forks_left - 1)


STORE = SessionStore(root=root, find=find, open=open_session, has_quota=True)
