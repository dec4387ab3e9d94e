"""A queue that serves owners in turn: round robin over owners, first come first served within an owner.

A waiting item has a kind (an agent), and a kind may be unavailable at the moment. Items of such a kind are skipped, and
their owner may be served with a later item. The first item of each kind that is skipped keeps the turn that its owner
had, so that a steady supply of other items cannot delay it for ever.

A turn is a number: when an owner was last served, or when it joined. The smallest turn is next.
"""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class _Entry(msgspec.Struct, Generic[Item], eq=False):
    item: Item
    owner: str
    kind: str
    number: int
    """Position in the order of arrival."""
    kept_turn: int | None = None
    """The owner's turn at the time when this entry was skipped; None if it was not skipped."""


_Head = tuple[int, int, _Entry[Item]]
"""Turn, number, and the first entry of a line."""


class FairQueue(Generic[Item]):
    """Waiting items, each of an owner and a kind."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, deque[_Entry[Item]]]] = {}
        """Non-empty queues by owner and kind."""
        self._heads: dict[str, list[_Head[Item]]] = {}
        """By kind: a heap of the first entries of its lines. Turns only grow; outdated ones are corrected when read."""
        self._turns: dict[str, int] = {}
        self._entries: dict[Item, _Entry[Item]] = {}
        self._clock = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: Item) -> bool:
        return item in self._entries

    def add(self, item: Item, owner: str, kind: str) -> None:
        """Add an item behind all items of its owner; a new owner joins behind all owners."""
        entry = self._entries[item] = _Entry(item, owner, kind, self._tick())
        if owner not in self._turns:
            self._turns[owner] = entry.number
        line = self._lines.setdefault(owner, {}).setdefault(kind, deque())
        line.append(entry)
        if len(line) == 1:
            self._push(entry)

    def remove(self, item: Item) -> None:
        """Remove a waiting item. Raises `KeyError` if it does not wait."""
        entry = self._entries.pop(item)
        line = self._lines[entry.owner][entry.kind]
        if line[0] is entry:
            heads = [head for head in self._heads[entry.kind] if head[2] is not entry]
            heapq.heapify(heads)
            self._heads[entry.kind] = heads
        line.remove(entry)
        self._promote_next(entry, line)

    def pop(self, is_available: Callable[[str], bool]) -> Item | None:
        """Remove and return the next item whose kind is available; None if there is none."""
        heads = [self._first(kind) for kind in self._heads if is_available(kind)]
        if not heads:
            return None
        entry = min(heads)[2]
        heapq.heappop(self._heads[entry.kind])
        self._serve(entry)
        return entry.item

    def copy(self) -> "FairQueue[Item]":
        """Return a copy for a simulation."""
        duplicate: FairQueue[Item] = FairQueue()
        duplicate._clock = self._clock
        duplicate._turns = dict(self._turns)
        for entry in self._entries.values():
            copied = _Entry(entry.item, entry.owner, entry.kind, entry.number, entry.kept_turn)
            duplicate._entries[entry.item] = copied
            line = duplicate._lines.setdefault(entry.owner, {}).setdefault(entry.kind, deque())
            line.append(copied)
            if len(line) == 1:
                duplicate._push(copied)
        return duplicate

    def _serve(self, entry: _Entry[Item]) -> None:
        del self._entries[entry.item]
        lines = self._lines[entry.owner]
        line = lines[entry.kind]
        line.popleft()
        if entry.kept_turn is None:
            self._keep_turns(entry, lines)
        self._turns[entry.owner] = self._tick()
        self._promote_next(entry, line)

    def _keep_turns(self, served: _Entry[Item], lines: dict[str, deque[_Entry[Item]]]) -> None:
        """Keep the turn for the entries that arrived before the served one and were skipped."""
        for line in lines.values():
            if line and line[0].number < served.number and line[0].kept_turn is None:
                line[0].kept_turn = self._turns[served.owner]

    def _promote_next(self, removed: _Entry[Item], line: deque[_Entry[Item]]) -> None:
        """Push the new first entry of the line; drop the line if it is empty."""
        if line:
            if line[0].number > removed.number:
                self._push(line[0])
            return
        lines = self._lines[removed.owner]
        del lines[removed.kind]
        if not lines:
            del self._lines[removed.owner], self._turns[removed.owner]
        if not self._heads[removed.kind]:
            del self._heads[removed.kind]

    def _first(self, kind: str) -> _Head[Item]:
        heads = self._heads[kind]
        while heads[0][0] != (current := self._turn_of(heads[0][2])):
            _, number, entry = heads[0]
            heapq.heapreplace(heads, (current, number, entry))
        return heads[0]

    def _push(self, entry: _Entry[Item]) -> None:
        heapq.heappush(self._heads.setdefault(entry.kind, []), (self._turn_of(entry), entry.number, entry))

    def _turn_of(self, entry: _Entry[Item]) -> int:
        return self._turns[entry.owner] if entry.kept_turn is None else entry.kept_turn

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
