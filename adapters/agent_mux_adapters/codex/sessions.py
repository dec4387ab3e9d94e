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
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


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
    for found in chain(
        find_session_files(home / SESSIONS, "*/*/*/rollout-*.jsonl*"),
        find_session_files(home / ARCHIVE, "rollout-*.jsonl*"),
        find_session_files(home / SESSIONS, "rollout-*.json"),
    ):
        if found.path.suffix == COMPRESSED:
            compressed.append(found)
        elif found.path.suffix in {PLAIN, ".json"}:
            plain.add(found.path.name)
            yield found
    yield from (found for found in compressed if found.path.stem not in plain)


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
            origin = self._origin()
            inherited = origin.read() if origin is not None else ()
            yield from (entry for entry in inherited if not isinstance(entry.fact, SessionDescribed))
        yield from self._turns.filter(self._lines.read())
        paths = map(self._rollout_of, self._thread.subagents)
        yield from self._subagents.read(path for path in paths if path is not None)

    def _rollout_of(self, thread_id: str) -> Path | None:
        if not _THREAD_ID.fullmatch(thread_id):
            return None
        home = self._path.parents[1 if self._path.parent.name == ARCHIVE else 4]
        names = [f"rollout-*-{thread_id}{suffix}" for suffix in (PLAIN, PLAIN + COMPRESSED)]
        patterns = (f"{place}/{name}" for name in names for place in (f"{SESSIONS}/*/*/*", ARCHIVE))
        return next((path for pattern in patterns for path in home.glob(pattern)), None)

    def _origin(self) -> "RolloutCursor | None":
        first = mapping(next(read_json_objects(self._path), {}).get("payload"))
        path, until = self._rollout_of(text(first.get("forked_from_id"))), first.get("forked_from_ordinal_exclusive")
        if path is None or not isinstance(until, int) or not self._forks_left:
            return None
        return RolloutCursor(path, until=until, forks_left=self._forks_left - 1)


STORE = SessionStore(root=root, find=find, open=open_session)
