"""The facts of a comparison as they are recorded: appended to the ledger, and delivered to readers in this process."""

from collections.abc import AsyncIterator
from functools import partial

import anyio
from anyio import to_thread

from agent_mux.compare.ledger import AnyFact, ComparisonFolder


class FactFeed:
    """The ledger of a comparison that runs in this process, and its readers."""

    def __init__(self, folder: ComparisonFolder) -> None:
        self._folder = folder
        self._is_over = False
        self.facts: list[AnyFact] = []
        """All facts, those of earlier processes included."""
        self.changed = anyio.Event()
        """Set at the next change; a new event replaces it then."""

    async def open(self) -> None:
        """Open the ledger and read what it has. Raises CONFIG_ERROR."""
        await to_thread.run_sync(self._folder.open_ledger)
        self.facts = await to_thread.run_sync(self._folder.facts)

    async def append(self, fact: AnyFact) -> None:
        """Record a fact; it is on the disk when readers receive it. Raises CONFIG_ERROR."""
        await to_thread.run_sync(self._folder.append, fact)
        self._publish(fact)

    def append_blocking(self, fact: AnyFact) -> None:
        """Record a fact from a thread of the event loop. Raises CONFIG_ERROR."""
        self._folder.append(fact)
        anyio.from_thread.run_sync(partial(self._publish, fact))

    def announce(self) -> None:
        """Wake all waiters."""
        changed, self.changed = self.changed, anyio.Event()
        changed.set()

    def end(self) -> None:
        """End the iteration of readers once they have every fact."""
        self._is_over = True
        self.announce()

    async def read(self, start: int) -> AsyncIterator[AnyFact]:
        """Yield the facts from number `start`, as they are recorded, until the end."""
        position = start
        while True:
            changed, is_over = self.changed, self._is_over
            while position < len(self.facts):
                yield self.facts[position]
                position += 1
            if is_over:
                return
            await changed.wait()

    def _publish(self, fact: AnyFact) -> None:
        self.facts.append(fact)
        self.announce()
