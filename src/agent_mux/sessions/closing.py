"""How a turn ended, held back until it is known that it did: agents try again, and remind themselves of things."""

from collections.abc import Iterable, Iterator

from agent_mux import facts
from agent_mux.sessions.store import Entry, Prompted, Told

_CLOSING = facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit
_NEXT = Prompted | facts.TurnBegin


class HeldClosing:
    """Passes on what a reader tells, each turn's end behind everything else of it."""

    def __init__(self) -> None:
        self._held: Entry | None = None

    def passed_on(self, at: int | None, told: Iterable[Told]) -> Iterator[Entry]:
        """These, without the end of the turn, and behind that of the turn before where another one begins."""
        for fact in told:
            if isinstance(fact, _CLOSING):
                self._held = Entry(at, fact)
                continue
            if isinstance(fact, _NEXT):
                yield from self.release()
            yield Entry(at, fact)

    def forget(self) -> None:
        """The turn goes on."""
        self._held = None

    def release(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        held, self._held = self._held, None
        if held is not None:
            yield held
