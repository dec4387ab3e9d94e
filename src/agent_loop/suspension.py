"""What this process started in sessions of its own, so that Ctrl-Z can stop and continue it with the program.

At a terminal, the kernel stops the process group of the program only. A tool registers what it started with
`suspendable` while that runs; the program stops what is `active` before it stops itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Suspendable(Protocol):
    """Something that runs outside of the process group of this program."""

    async def pause(self) -> None:
        """Stop it."""
        ...

    def add_time(self, seconds: float) -> None:
        """Extend its time limits by the time for which it was stopped."""
        ...

    async def resume(self) -> None:
        """Continue it."""
        ...


_ACTIVE: list[Suspendable] = []


@contextmanager
def suspendable(one: Suspendable) -> Iterator[None]:
    """Stop and continue `one` together with the program, for the duration of the block."""
    _ACTIVE.append(one)
    try:
        yield
    finally:
        _ACTIVE.remove(one)


def active() -> list[Suspendable]:
    """Return everything that is registered."""
    return list(_ACTIVE)
