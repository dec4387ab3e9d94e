"""What a recording expects on standard input, and whether this run sends it."""

from collections.abc import Sequence

from . import lines


class MismatchError(Exception):
    """This run does something else than the recording: what would follow was never recorded."""


class Expectations:
    """The recorded lines that were sent, ticked off by the lines that this run sends.

    A line is taken for the first open one of its kind, be it early; answers for the one to the same question. Only
    what a consumer decides has to come. Handshakes and asides may be missing, on either side: the codec of today
    need not shake hands as the driver did that made the recording.
    """

    def __init__(self, recorded: Sequence[lines.ReplayLine]) -> None:
        self._recorded = recorded
        self._open = dict(enumerate(recorded))
        self._latest = -1
        self.renamed: dict[str, str] = {}
        """Recorded id -> id in this run, where they differ: the recorded responses are given to these."""

    def match(self, data: bytes) -> None:
        """This run sent a line. Raises `MismatchError`."""
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
        """The recording can go on past this line."""
        kind = self._recorded[index].kind
        overtaken = kind == lines.HANDSHAKE and self._latest > index
        return kind == lines.ASIDE or index not in self._open or overtaken

    def is_needed(self, index: int) -> bool:
        """Without this line there is nothing to play any more."""
        return self._recorded[index].kind in lines.NEEDED

    def describe(self, index: int) -> str:
        """The line, for a person."""
        return str(self._recorded[index])

    def _next_needed(self) -> str:
        needed = (str(line) for line in self._open.values() if line.kind in lines.NEEDED)
        return next(needed, "nothing more")


def _is_same(expected: lines.ReplayLine, line: lines.ReplayLine) -> bool:
    if expected.kind != line.kind:
        return False
    return expected.key == line.key if line.kind == lines.ANSWER else expected.about == line.about
