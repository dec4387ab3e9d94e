"""Messages for the turn that runs. Hermes puts them behind the result of the next tool, and drops them if none comes.

It says when it has accepted one, but not when one reached the model: one that was accepted before a tool ended has.
"""

from collections import deque


class Steering:
    """The messages of one run that are not known to have reached the model."""

    def __init__(self) -> None:
        self._wanted: list[str] = []
        self._asked: deque[str] = deque()
        self._accepted: list[str] = []

    def wanted(self, said: str) -> None:
        """A consumer wants this to be said."""
        self._wanted.append(said)

    def to_say(self) -> list[str]:
        """What is to be said now; it counts as said."""
        said, self._wanted = self._wanted, []
        self._asked.extend(said)
        return said

    def accepted(self) -> None:
        """Hermes has the oldest one."""
        if self._asked:
            self._accepted.append(self._asked.popleft())

    def refused(self) -> str | None:
        """Hermes does not want the oldest one."""
        return self._asked.popleft() if self._asked else None

    def delivered(self) -> None:
        """A tool ended: what was accepted is behind its result."""
        self._accepted.clear()

    def undelivered(self) -> list[str]:
        """The turn is over: what never reached the model, so that it can be said in the next one."""
        lost = [*self._accepted, *self._asked, *self._wanted]
        self._accepted.clear()
        self._asked.clear()
        self._wanted.clear()
        return lost
