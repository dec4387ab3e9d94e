"""A queue that serves owners in turn: round robin over owners, first come first served within an owner.

What waits is of a kind (an agent), and a kind may have no room just now. What waits for such a kind is passed over: its
owner may be served with something later instead. The first of each kind that is passed over keeps the turn that it had,
so that whoever fills the other kinds again and again cannot make it wait for ever.

A turn is a number: when an owner was served last, or came. The smallest is next.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(slots=True, eq=False)
class _Entry(Generic[Item]):
    item: Item
    owner: str
    kind: str
    number: int
    """In the order of coming."""
    kept: int | None = None
    """The turn that it had when it was passed over."""


_Head = tuple[int, int, _Entry[Item]]
"""Turn, number, and the first of a line."""


class FairQueue(Generic[Item]):
    """Items that wait, each of an owner and a kind."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, deque[_Entry[Item]]]] = {}
        """By owner and kind. No line is empty."""
        self._heads: dict[str, list[_Head[Item]]] = {}
        """By kind: a heap of the first ones of its lines. Turns only grow: one that is too small is put right later."""
        self._turns: dict[str, int] = {}
        self._entries: dict[Item, _Entry[Item]] = {}
        self._clock = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: Item) -> bool:
        return item in self._entries

    def add(self, item: Item, owner: str, kind: str) -> None:
        """Behind all of its owner; an owner that had nothing here joins behind all owners."""
        entry = self._entries[item] = _Entry(item, owner, kind, self._tick())
        if owner not in self._turns:
            self._turns[owner] = entry.number
        line = self._lines.setdefault(owner, {}).setdefault(kind, deque())
        line.append(entry)
        if len(line) == 1:
            self._push(entry)

    def remove(self, item: Item) -> None:
        """It waits no more. Raises `KeyError` when it does not wait."""
        entry = self._entries.pop(item)
        line = self._lines[entry.owner][entry.kind]
        if line[0] is entry:
            heads = [head for head in self._heads[entry.kind] if head[2] is not entry]
            heapq.heapify(heads)
            self._heads[entry.kind] = heads
        line.remove(entry)
        self._follow(entry, line)

    def pop(self, has_room: Callable[[str], bool]) -> Item | None:
        """Serve the next one whose kind has room; None: there is none."""
        heads = [self._first(kind) for kind in self._heads if has_room(kind)]
        if not heads:
            return None
        entry = min(heads)[2]
        heapq.heappop(self._heads[entry.kind])
        self._serve(entry)
        return entry.item

    def copy(self) -> "FairQueue[Item]":
        """The same, to find out what would be."""
        twin: FairQueue[Item] = FairQueue()
        twin._clock = self._clock
        twin._turns = dict(self._turns)
        for entry in self._entries.values():
            own = _Entry(entry.item, entry.owner, entry.kind, entry.number, entry.kept)
            twin._entries[entry.item] = own
            line = twin._lines.setdefault(entry.owner, {}).setdefault(entry.kind, deque())
            line.append(own)
            if len(line) == 1:
                twin._push(own)
        return twin

    def _serve(self, entry: _Entry[Item]) -> None:
        del self._entries[entry.item]
        lines = self._lines[entry.owner]
        line = lines[entry.kind]
        line.popleft()
        if entry.kept is None:
            self._keep_turns(entry, lines)
        self._turns[entry.owner] = self._tick()
        self._follow(entry, line)

    def _keep_turns(self, served: _Entry[Item], lines: dict[str, deque[_Entry[Item]]]) -> None:
        """Those that came before what is served in their stead: their kinds have no room."""
        for line in lines.values():
            if line and line[0].number < served.number and line[0].kept is None:
                line[0].kept = self._turns[served.owner]

    def _follow(self, gone: _Entry[Item], line: deque[_Entry[Item]]) -> None:
        """Whoever is the first of the line now."""
        if line:
            if line[0].number > gone.number:
                self._push(line[0])
            return
        lines = self._lines[gone.owner]
        del lines[gone.kind]
        if not lines:
            del self._lines[gone.owner], self._turns[gone.owner]
        if not self._heads[gone.kind]:
            del self._heads[gone.kind]

    def _first(self, kind: str) -> _Head[Item]:
        heads = self._heads[kind]
        while heads[0][0] != (present := self._turn_of(heads[0][2])):
            _, number, entry = heads[0]
            heapq.heapreplace(heads, (present, number, entry))
        return heads[0]

    def _push(self, entry: _Entry[Item]) -> None:
        heapq.heappush(self._heads.setdefault(entry.kind, []), (self._turn_of(entry), entry.number, entry))

    def _turn_of(self, entry: _Entry[Item]) -> int:
        return self._turns[entry.owner] if entry.kept is None else entry.kept

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
