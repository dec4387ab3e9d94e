"""The sessions that Codex stores: rollouts, files of JSON lines, one for each thread.

`$CODEX_HOME` (else `~/.codex`) `/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`. Its `item_completed` events
are the items of the app-server, spelled in another way; they are what is told. Recorded with 0.169.0.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agent_mux.place import Place
from agent_mux.sessions.lines import LineCursor, SubagentCalls, files_below, objects_of
from agent_mux.sessions.store import Cursor, Described, Entry, Found, SessionStore
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.codex.rollout import StoredThread

MOST_GENERATIONS = 50
"""Of forks of forks: more are a circle."""
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def root(place: Place) -> Path:
    """Where the directories of the days are."""
    return place.home_of("CODEX_HOME", ".codex") / "sessions"


def find(place: Place) -> Iterator[Found]:
    """All threads."""
    return files_below(root(place), "*/*/*/rollout-*.jsonl")


def open_session(found: Found) -> Cursor:
    """From its first line."""
    return Rollout(found.path)


class Rollout:
    """A thread, behind the part of another one that it was forked from: a fork stores only what came after that."""

    def __init__(self, path: Path, *, until: int | None = None, generations: int = MOST_GENERATIONS) -> None:
        """`until`: the ordinal of the first line that does not count."""
        self._path = path
        self._generations = generations
        self._is_new = True
        self._thread = StoredThread(until)
        self._lines = LineCursor(path, self._thread.read)
        self._inside = SubagentCalls(lambda: StoredThread().read)

    def read(self) -> Iterator[Entry]:
        """See `Cursor.read`."""
        if self._is_new:
            self._is_new = False
            origin = self._origin()
            inherited = origin.read() if origin is not None else ()
            yield from (entry for entry in inherited if not isinstance(entry.fact, Described))
        yield from self._lines.read()
        paths = map(self._rollout_of, self._thread.subagents)
        yield from self._inside.read(path for path in paths if path is not None)

    def _rollout_of(self, thread_id: str) -> Path | None:
        if not _THREAD_ID.fullmatch(thread_id):
            return None
        return next(self._path.parents[3].glob(f"*/*/*/rollout-*-{thread_id}.jsonl"), None)

    def _origin(self) -> "Rollout | None":
        first = mapping(next(objects_of(self._path), {}).get("payload"))
        path, until = self._rollout_of(text(first.get("forked_from_id"))), first.get("forked_from_ordinal_exclusive")
        if path is None or not isinstance(until, int) or not self._generations:
            return None
        return Rollout(path, until=until, generations=self._generations - 1)


STORE = SessionStore(root=root, find=find, open=open_session)
