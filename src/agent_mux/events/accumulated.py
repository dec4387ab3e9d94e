"""Text that grows delta by delta, shared by the events that show it so far.

`text_delta.accumulated` and its like are required on the wire and quadratic when stored. Here each event keeps a
view on one growing buffer, O(1) in time and memory, which becomes a string only when somebody reads it.
"""

from typing import Any

_new = object.__new__


class GrowingText:
    """An append-only text, kept as UTF-8: one byte per ASCII character, whatever the number of deltas."""

    __slots__ = ("_utf8",)

    def __init__(self) -> None:
        self._utf8 = bytearray()

    def append(self, delta: str) -> "Accumulated":
        """Add a delta and return the view that ends with it."""
        utf8 = self._utf8
        utf8 += delta.encode("utf-8", "surrogatepass")
        # Every delta has a view: made without a call of `__init__`, which costs as much as all the rest.
        view = _new(Accumulated)
        view._utf8, view._end = utf8, len(utf8)  # noqa: SLF001  # its own kind
        return view

    def __str__(self) -> str:
        return self._utf8.decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._utf8)


class Accumulated:
    """The first `end` bytes of a growing text, as a string on demand. Immutable; equal to a string with its text."""

    __slots__ = ("_end", "_utf8")

    _utf8: bytearray
    _end: int

    def extends(self, before: "Accumulated", delta: str) -> bool:
        """This is `before` and then `delta`: O(delta) for views on one text, O(text) for others."""
        added = delta.encode("utf-8", "surrogatepass")
        if self._utf8 is not before._utf8:  # noqa: SLF001  # its own kind
            return str(self) == str(before) + delta
        start = self._end - len(added)
        return len(before) == start and self._utf8[start : self._end] == added

    def __str__(self) -> str:
        return self._utf8[: self._end].decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return repr(str(self))

    def __len__(self) -> int:
        """In bytes of UTF-8, as of the growing text."""
        return self._end

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Accumulated | str) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __copy__(self) -> "Accumulated":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Accumulated":
        return self

    @classmethod
    def of(cls, text: str) -> "Accumulated":
        """A view on a complete text."""
        return GrowingText().append(text)
