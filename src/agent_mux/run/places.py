"""Places for runs that may work at a time. Who came first is served first, whatever the event loop does."""

from collections import deque

import anyio


class Places:
    """A number of places, and those who wait for one."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[Ticket] = deque()

    def enter(self) -> "Ticket":
        """Take a place, or the next number in the queue. To be left in any case."""
        ticket = Ticket(self)
        self._waiting.append(ticket)
        self._admit()
        return ticket

    def leave(self, ticket: "Ticket") -> None:
        """Give the place back, or the number. Twice is once."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        elif ticket.is_held:
            ticket.is_held = False
            self._free += 1
            self._admit()

    def _admit(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft().admit()


class Ticket:
    """One run's place, or its number in the queue."""

    def __init__(self, places: Places) -> None:
        self.is_held = False
        """It is a place."""
        self._places = places
        self._admitted = anyio.Event()

    def admit(self) -> None:
        """A place is free."""
        self.is_held = True
        self._admitted.set()

    async def wait(self) -> None:
        """Until there is a place."""
        await self._admitted.wait()

    def leave(self) -> None:
        """The run needs no place any more."""
        self._places.leave(self)
