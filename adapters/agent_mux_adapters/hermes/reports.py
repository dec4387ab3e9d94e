"""What runs in the background: its end begins a turn of its own, which a run has to wait for."""


class Reports:
    """The reports that are still to come."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._due = 0

    def __bool__(self) -> bool:
        return bool(self._running or self._due)

    def later(self, started: str) -> None:
        """Something was started, and its end will begin a turn."""
        self._running.add(started)

    def no_more(self, started: str) -> None:
        """Its end was seen otherwise."""
        self._running.discard(started)

    def now(self, said: str) -> None:
        """The turn that tells of it is about to begin."""
        over = {started for started in self._running if started in said}
        self._running -= over
        self._due += len(over)

    def begun(self) -> None:
        """A turn began that nobody asked for."""
        if self._due:
            self._due -= 1
        elif self._running:
            self._running.pop()
