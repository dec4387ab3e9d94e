"""Turns that a user took back: a later line of the rollout removes the last turns, whose lines remain."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent_mux.sdk.session_files import READ_SIZE, open_session_file, read_json_objects
from agent_mux.sdk.sessions import ModelCalled, PromptSent, SessionDescribed, SessionEntry
from agent_mux_adapters.codex.rollouts import ROLLED_BACK, RolloutReader, TurnsRolledBack

_MARK = f'"{ROLLED_BACK}"'.encode()
_OF_THE_SESSION = (ModelCalled, SessionDescribed)
"""Facts that count in any turn."""


class KeptTurns:
    """Leaves out what belongs to turns that were taken back, except their cost."""

    def __init__(self, removed: Collection[int]) -> None:
        """Remove the turns with these zero-based indices."""
        self._removed = removed
        self._turn = -1

    def filter(self, entries: Iterable[SessionEntry]) -> Iterator[SessionEntry]:
        """Yield the entries of the kept turns; entries must arrive in stored order."""
        for entry in entries:
            fact = entry.fact
            if isinstance(fact, PromptSent):
                self._turn += 1
            if isinstance(fact, TurnsRolledBack):
                continue
            if self._turn not in self._removed or isinstance(fact, _OF_THE_SESSION):
                yield entry


def removed_turns(path: Path, until: int | None) -> Collection[int]:
    """Return the zero-based indices of the turns that were taken back; `until` is that of `RolloutReader`."""
    if not _has_mark(path):  # nearly always
        return ()
    reader = RolloutReader(until)
    kept: list[int] = []
    count = 0
    for row in read_json_objects(path):
        for entry in reader.read(row):
            if isinstance(entry.fact, PromptSent):
                kept.append(count)
                count += 1
            elif isinstance(entry.fact, TurnsRolledBack) and entry.fact.count:
                del kept[-entry.fact.count :]
    return set(range(count)).difference(kept)


def _has_mark(path: Path) -> bool:
    rest = b""
    with open_session_file(path) as file:
        while chunk := file.read(READ_SIZE):
            if _MARK in chunk or _MARK in rest + chunk[: len(_MARK)]:
                return True
            rest = chunk[-len(_MARK) :]
    return False
