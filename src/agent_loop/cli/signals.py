"""SIGINT and SIGTERM. Source: the agent protocol, "End of input, signals, exit codes"."""

import os
import signal
from collections.abc import Callable
from typing import Protocol

import anyio

TWICE = 1.0
"""Seconds within which a second SIGINT means more than the first."""


class Stoppable(Protocol):
    """What can be stopped."""

    def interrupt(self) -> bool:
        """End the turn that runs. False: none does."""
        ...

    def close(self) -> None:
        """Take no more prompts."""
        ...

    def cancel(self) -> None:
        """End everything."""
        ...


class Signals:
    """Turns signals into calls: SIGINT interrupts or closes, twice it cancels; SIGTERM cancels; then they kill."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` gives seconds, from whenever."""
        self._now = now
        self._last = float("-inf")
        self._is_cancelled = False

    async def watch(self, target: Stoppable) -> None:
        """Until cancelled."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            async for number in received:
                self.take(number, target)

    def take(self, number: int, target: Stoppable) -> None:
        """One signal."""
        if self._is_cancelled:
            die_of(number)
        if number == signal.SIGINT and self._now() - self._last > TWICE:
            self._last = self._now()
            if not target.interrupt():
                target.close()
            return
        self._is_cancelled = True
        target.cancel()


def die_of(number: int) -> None:
    """As if nobody had waited for this signal."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
