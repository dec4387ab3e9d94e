"""Notifies observers of interactions that need a person."""

from collections import deque

import anyio

from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.runs.live import LiveRun


class InteractionNotifier:
    """The requests of agents that no policy has decided yet."""

    def __init__(self) -> None:
        self._new: deque[tuple[LiveRun, PendingInteraction]] = deque()
        self._added = anyio.Event()

    def watch(self, live: LiveRun) -> None:
        """Notify the observers of a run of its interactions."""
        live.handle.interaction.observe(lambda pending: self._add(live, pending))

    def _add(self, live: LiveRun, pending: PendingInteraction) -> None:
        self._new.append((live, pending))
        self._added.set()

    async def run(self) -> None:
        """Notify observers a moment after each request, unless a policy has decided it by then."""
        while True:
            await self._added.wait()
            self._added = anyio.Event()
            while self._new:
                live, pending = self._new.popleft()
                if any(one.id == pending.id for one in live.handle.interaction.peek()):
                    live.interaction_requested(pending)
