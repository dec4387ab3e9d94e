"""Text that grows without limit and is kept in bounded memory: its beginning and its end."""

_COMPACT_AT = 2
"""The end is cut when it has grown to this multiple of its limit, so that appending takes constant time on average."""


class BoundedText:
    """The first `head` and the last `tail` characters of a growing text, with the sizes of what lies between."""

    __slots__ = ("_head", "_head_limit", "_head_room", "_tail", "_tail_limit", "_tail_size", "characters", "newlines")

    def __init__(self, text: str = "", *, head: int = 20_000, tail: int = 20_000) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head: list[str] = []
        self._head_room = head
        self._tail: list[str] = []
        self._tail_size = 0
        self.characters = 0
        """Length of the whole text."""
        self.newlines = 0
        """Number of line breaks in the whole text."""
        if text:
            self.append(text)

    def append(self, text: str) -> None:
        """Add text to the end."""
        self.characters += len(text)
        self.newlines += text.count("\n")
        if self._head_room:
            self._head.append(text[: self._head_room])
            text, self._head_room = text[self._head_room :], max(self._head_room - len(text), 0)
        if text and self._tail_limit:
            self._tail.append(text)
            self._tail_size += len(text)
            if self._tail_size > _COMPACT_AT * self._tail_limit:
                self._cut_tail()

    @property
    def head(self) -> str:
        """The beginning; the whole text if nothing is omitted and it fits."""
        if len(self._head) > 1:
            self._head = ["".join(self._head)]
        return self._head[0] if self._head else ""

    @property
    def tail(self) -> str:
        """The end, which follows the beginning directly if nothing is omitted."""
        if len(self._tail) > 1 or self._tail_size > self._tail_limit:
            self._cut_tail()
        return self._tail[0] if self._tail else ""

    @property
    def omitted(self) -> int:
        """Number of characters between beginning and end that are not kept."""
        return self.characters - len(self.head) - len(self.tail)

    @property
    def omitted_newlines(self) -> int:
        """Number of line breaks that are not kept."""
        return self.newlines - self.head.count("\n") - self.tail.count("\n")

    def _cut_tail(self) -> None:
        kept = "".join(self._tail)[-self._tail_limit :] if self._tail_limit else ""
        self._tail, self._tail_size = [kept], len(kept)

    def __len__(self) -> int:
        return self.characters

    def __bool__(self) -> bool:
        return self.characters > 0

    def __str__(self) -> str:
        if not self.omitted:
            return self.head + self.tail
        return f"{self.head}\n... {self.omitted:,} characters omitted ...\n{self.tail}"

    def __repr__(self) -> str:
        return f"BoundedText({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, BoundedText | str) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable
