"""Signals that stop the program: interrupt the turn, close or cancel the program, then terminate it; and Ctrl-Z."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio

from agent_mux.cli.suspension import suspending_signals

CANCEL_WINDOW = 1.0
"""Seconds after a SIGINT in which another SIGINT cancels the program."""
_RECEIVED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


class Stoppable(Protocol):
    """A program that can be stopped in three degrees, and suspended."""

    def interrupt(self) -> bool:
        """Stop the running turn. Return False if no turn runs."""
        ...

    def close(self) -> None:
        """Accept no more prompts and exit after the pending ones."""
        ...

    def cancel(self) -> None:
        """Stop the running turn and exit."""
        ...

    async def suspend(self) -> None:
        """Stop the process until it is continued."""
        ...


class SignalHandler:
    """Stops a program on signals.

    SIGINT interrupts the turn, or closes the program if no turn runs; a second one within `CANCEL_WINDOW` cancels it.
    SIGTERM, SIGQUIT and SIGHUP (the terminal was closed) cancel the program. Any signal after that has its default
    effect, except SIGHUP, which is ignored until the process ends: when a terminal is closed, the kernel sends it, and
    the shell once more, while commands are being ended; systemd sends it after SIGTERM. SIGTSTP (Ctrl-Z) suspends the
    program.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is a monotonic clock in seconds."""
        self._now = now
        self._last_interrupt = float("-inf")
        self._is_cancelled = False

    async def run(self, target: Stoppable) -> None:
        """Receive and handle signals until cancelled."""
        with anyio.open_signal_receiver(*_RECEIVED, *suspending_signals()) as received, self._hang_ups(target):
            async for number in received:
                if number == signal.SIGTSTP:
                    await target.suspend()
                else:
                    self.handle(number, target)

    @contextmanager
    def _hang_ups(self, target: Stoppable) -> Iterator[None]:
        """Handle SIGHUP, unless the parent process ignores it, as `nohup` does.

        The handler is our own: an event loop restores the default effect at the end of a receiver, and a SIGHUP in that
        moment would leave commands running.
        """
        before = signal.getsignal(signal.SIGHUP)
        if before is signal.SIG_IGN:
            yield
            return
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGHUP, lambda number, _: loop.call_soon_threadsafe(self.handle, number, target))
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN if self._is_cancelled else before)

    def handle(self, number: int, target: Stoppable) -> None:
        """Handle one signal. `target` is the program to stop."""
        if self._is_cancelled:
            if number != signal.SIGHUP:
                terminate_by(number)
            return
        if number == signal.SIGINT and self._now() - self._last_interrupt > CANCEL_WINDOW:
            self._last_interrupt = self._now()
            if not target.interrupt():
                target.close()
            return
        self._is_cancelled = True
        target.cancel()


def terminate_by(number: int) -> None:
    """Restore the default handler of a signal and send the signal to this process."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
