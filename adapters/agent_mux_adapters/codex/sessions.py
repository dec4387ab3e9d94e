"""Sessions that Codex stores: rollouts, one file of JSON lines for each thread.

`$CODEX_HOME` (else `~/.codex`) `/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and `/archived_sessions/`
for threads that the user archived. Codex compresses rollouts that did not change for a week (`.jsonl.zst`).
"""

from collections.abc import Iterable, Iterator, Sequence
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
    ModelCalled,
    SessionDescribed,
    SessionEntry,
    SessionReader,
    SessionStore,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.codex.rollbacks import KeptTurns, removed_turns
from agent_mux_adapters.codex.rollouts import RolloutReader
from agent_mux_adapters.codex.stored_threads import (
    ARCHIVE,
    PLAIN,
    SESSIONS,
    home_of,
    name_of,
    read_names,
    replaced_rollouts,
    rollout_of,
)

MAX_FORKS = 50
"""The longest chain of forks that is followed. A longer one is a cycle."""


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
    names = read_names(home)
    everything = [(found, name_of(found.path)) for found in _find_rollouts(home)]
    newest: dict[str, str] = {}
    for _, (thread, revision) in everything:
        newest[thread] = max(revision, newest.get(thread, ""))
    for one, (thread, revision) in everything:
        if thread and revision != newest[thread]:
            continue
        # The size makes a summary of the time before the thread was named out of date.
        found = one._replace(size=one.size + names[thread].changes) if thread in names else one
        if found.path.suffix == COMPRESSED:
            compressed.append(found)
        elif found.path.suffix in {PLAIN, ".json"}:
            plain.add(found.path.name)
            yield found
    yield from (found for found in compressed if found.path.stem not in plain)


def _find_rollouts(home: Path) -> Iterator[FoundSession]:
    return chain(
        find_session_files(home / SESSIONS, "*/*/*/rollout-*.jsonl*"),
        find_session_files(home / ARCHIVE, "rollout-*.jsonl*"),
        find_session_files(home / SESSIONS, "rollout-*.json"),
    )


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
            replaced = replaced_rollouts(self._path)
            origin = self._reverted(replaced) or self._origin()
            inherited = origin.read() if origin is not None else ()
            yield from (entry for entry in inherited if not isinstance(entry.fact, SessionDescribed))
            if self._until is None:
                yield from _model_calls(replaced)
        for entry in self._turns.filter(self._lines.read()):
            yield entry
            if isinstance(entry.fact, SessionDescribed) and entry.fact.session_id and self._until is None:
                yield from _named(entry.fact.session_id, home_of(self._path))
        paths = (rollout_of(home_of(self._path), thread) for thread in self._thread.subagents)
        yield from self._subagents.read(path for path in paths if path is not None)

    def _reverted(self, replaced: Sequence[Path]) -> "RolloutCursor | None":
        """Return the part of the thread that the user kept, in its earlier rollout."""
        first = next(read_json_objects(self._path), {}).get("ordinal") if replaced else None
        if not isinstance(first, int):
            return None
        until = first if self._until is None else min(first, self._until)
        return self._before(replaced[-1], until)

    def _origin(self) -> "RolloutCursor | None":
        first = mapping(next(read_json_objects(self._path), {}).get("payload"))
        source, until = text(first.get("forked_from_id")), first.get("forked_from_ordinal_exclusive")
        if not source or not isinstance(until, int):
            return None
        path = rollout_of(home_of(self._path), source, before=text(first.get("id")))
        return None if path is None else self._before(path, until)

    def _before(self, path: Path, until: int) -> "RolloutCursor | None":
        return RolloutCursor(path, until=until, forks_left=self._forks_left - 1) if self._forks_left else None


def _model_calls(replaced: Iterable[Path]) -> Iterator[SessionEntry]:
    """Yield all model calls of rollouts that were reverted: what they cost remains part of the cost."""
    for path in replaced:
        reader = RolloutReader()
        for row in read_json_objects(path):
            yield from (entry for entry in reader.read(row) if isinstance(entry.fact, ModelCalled))


def _named(thread: str, home: Path) -> Iterator[SessionEntry]:
    named = read_names(home).get(thread)
    if named is not None and named.title:
        yield SessionEntry(None, SessionDescribed(title=named.title))


STORE = SessionStore(root=root, find=find, open=open_session, has_quota=True)
