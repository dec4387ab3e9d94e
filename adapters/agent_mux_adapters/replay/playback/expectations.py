"""The input that a recording expects on stdin, matched with the input of this run."""

from collections.abc import Sequence

from . import lines


class MismatchError(Exception):
    """Raised when this run sends other input than the recording has: there is no output to continue with."""


class Expectations:
    """The recorded input lines that this run has not sent yet.

    A line matches the first open one of its kind, even if it comes early; an answer matches the answer to the same
    request. Only lines that a consumer decides are required. Handshakes and asides may be missing on either side: the
    present codec may do another handshake than the recorded driver.
    """

    def __init__(self, recorded: Sequence[lines.ReplayLine]) -> None:
        self._recorded = recorded
        self._open = dict(enumerate(recorded))
        self._latest = -1
        self.renamed: dict[str, str] = {}
        """Recorded request id -> id in this run, where they differ; recorded responses are sent with the latter."""

    def match(self, data: bytes) -> None:
        """Match a line that this run sent. Raises `MismatchError`."""
        line = lines.parse_sent(data)
        index = next((index for index, expected in self._open.items() if _is_same(expected, line)), None)
        if index is None:
            if line.kind in lines.NEEDED:
                raise MismatchError(f"this run sent: {line}; the recording expects {self._next_needed()}")
            return
        expected = self._open.pop(index)
        self._latest = max(self._latest, index)
        if expected.kind == lines.ANSWER and expected.about != line.about:
            raise MismatchError(f"this run sent: {line}; the recording has: {expected}")
        if expected.kind != lines.ANSWER and expected.key and line.key and expected.key != line.key:
            self.renamed[expected.key] = line.key

    def is_satisfied(self, index: int) -> bool:
        """Return whether the recording can continue after this line."""
        kind = self._recorded[index].kind
        overtaken = kind == lines.HANDSHAKE and self._latest > index
        return kind == lines.ASIDE or index not in self._open or overtaken

    def is_needed(self, index: int) -> bool:
        """Return whether the recording cannot continue without this line."""
        return self._recorded[index].kind in lines.NEEDED

    def describe(self, index: int) -> str:
        """Format the line for an error message."""
        return str(self._recorded[index])

    def _next_needed(self) -> str:
        needed = (str(line) for line in self._open.values() if line.kind in lines.NEEDED)
        return next(needed, "nothing more")


def _is_same(expected: lines.ReplayLine, line: lines.ReplayLine) -> bool:
    if expected.kind != line.kind:
        return False
    return expected.key == line.key if line.kind == lines.ANSWER else expected.about == line.about
