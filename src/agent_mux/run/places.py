"""Places for runs that may work at a time, and the queue of those that wait for one.

Nobody waits while there is a place that it could take. Owners are served in turn (`FairQueue`), whatever the event loop
does; a run whose agent has no room is passed over until there is some.
"""

from collections import deque

import anyio

from agent_mux.errors import AgentMuxError
from agent_mux.run.fair_queue import FairQueue
from agent_mux.run.limits import Limits, Room

NO_LIMITS = Limits()


class Places:
    """Who works, and who waits."""

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
        self._limits = limits
        self._room = Room(limits)
        self._queue: FairQueue[Ticket] = FairQueue()
        self._working: dict[Ticket, None] = {}
        """In the order in which they were admitted."""
        self._order: dict[Ticket, int] | None = None
        self._changed: anyio.Event | None = None

    @property
    def working(self) -> int:
        """How many have a place."""
        return len(self._working)

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._queue)

    @property
    def changed(self) -> anyio.Event:
        """Set when somebody has come or gone; the next change has another. Take it first, and look then."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def enter(self, agent: str = "", owner: str = "") -> "Ticket":
        """Take a place, or a number in the queue. To be left in any case. Raises LIMIT_EXCEEDED: the queue is full."""
        ticket = Ticket(self, agent)
        self._queue.add(ticket, owner, agent)
        self._admit()
        most = self._limits.waiting
        if not ticket.is_held and most is not None and self.waiting > most:
            self._queue.remove(ticket)
            full = f"{self.working} runs work and {most} wait, and no more may (queue_limit)"
            raise AgentMuxError("LIMIT_EXCEEDED", f"{full}; try again when some have ended")
        self._tell_of_change()
        return ticket

    def leave(self, ticket: "Ticket") -> None:
        """Give the place back, or the number. Twice is once."""
        if ticket in self._queue:
            self._queue.remove(ticket)
        elif ticket.is_held:
            ticket.is_held = False
            del self._working[ticket]
            self._room.give_back(ticket.agent)
            self._admit()
        else:
            return
        self._tell_of_change()

    def position(self, ticket: "Ticket") -> int | None:
        """How many are admitted until it is, itself included; None: it does not wait.

        As things stand, and if all runs take equally long: the order is played through, once for each change.
        """
        if ticket not in self._queue:
            return None
        if self._order is None:
            self._order = self._played_through()
        return self._order[ticket]

    def _admit(self) -> None:
        while (ticket := self._queue.pop(self._room.is_for)) is not None:
            self._room.take(ticket.agent)
            self._working[ticket] = None
            ticket.admit()

    def _played_through(self) -> dict["Ticket", int]:
        queue, room = self._queue.copy(), self._room.copy()
        working = deque(ticket.agent for ticket in self._working)
        order: dict[Ticket, int] = {}
        while queue:
            room.give_back(working.popleft())
            while (ticket := queue.pop(room.is_for)) is not None:
                room.take(ticket.agent)
                working.append(ticket.agent)
                order[ticket] = len(order) + 1
        return order

    def _tell_of_change(self) -> None:
        self._order = None
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


class Ticket:
    """One run's place, or its number in the queue."""

    def __init__(self, places: Places, agent: str) -> None:
        self.agent = agent
        self.is_held = False
        """It is a place."""
        self._places = places
        self._admitted = anyio.Event()

    @property
    def position(self) -> int | None:
        """In the queue, from 1; None: it is a place, or was left."""
        return self._places.position(self)

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
