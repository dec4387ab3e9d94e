r"""Bytes to lines, whatever the chunking. Only `\n` ends a line: U+2028 and the like occur raw inside JSON strings."""

from collections.abc import Iterable


class LineFramer:
    r"""Collects chunks and hands out complete lines, without their `\n` or `\r\n`. Linear in the bytes it is fed."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        if not self._pieces and chunk.find(b"\n") == len(chunk) - 1 and chunk:  # one whole line, as a live agent prints
            return [chunk[:-2] if chunk.endswith(b"\r\n") else chunk[:-1]]
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces = []
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        if b"\r" in chunk or lines[0].endswith(b"\r"):
            return [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return lines

    def finish(self) -> list[bytes]:
        """The last line, when the stream ended without a newline."""
        if not self._pieces:
            return []
        last = b"".join(self._pieces)
        self._pieces = []
        return [last.removesuffix(b"\r")]


def lines_of(chunks: Iterable[bytes]) -> list[bytes]:
    """All lines of a finished stream."""
    framer = LineFramer()
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.finish()
