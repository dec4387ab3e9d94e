"""What a case of the torture suite is, and what came of one."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_mux.assembler import ExitReason
from agent_mux.run.handle import RunHandle

SETTLE_BOUND = 4.0
"""Seconds from the agent's last word, or from our order to end, until the run is over: the grace periods of the mux and
something for a busy machine."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where and how hard."""

    size: int
    terminal: bool
    backend: str
    """`asyncio` or `trio`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one case. It is right when `findings` is empty."""

    verdict: str
    findings: tuple[str, ...] = ()
    """What is not as it must be, one sentence each."""
    settle: float | None = None
    """Seconds from the last word, or from the order to end, until everything was over; the worst of several."""
    peak_mib: float | None = None
    """Memory of this process over what it was before, where the case is about that."""


class Case(Protocol):
    """One way to misbehave."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    @property
    def meaning(self) -> str:
        """What the agent does, and what must be true then: one line."""
        ...

    @property
    def bound(self) -> float:
        """Seconds within which it is over, whatever happens."""
        ...

    @property
    def sizes(self) -> tuple[int, int]:
        """How hard: in short and in full."""
        ...

    @property
    def at_terminal(self) -> bool:
        """It is played at a terminal, too."""
        ...

    async def play(self, circumstances: Circumstances) -> Outcome:
        """Play it. The caller bounds the time."""
        ...


def one_line(_: int) -> int:
    """The agent says one line, whatever the size."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """A case that is one run."""

    name: str
    meaning: str
    verdict: ExitReason
    behaviour: str = ""
    """Of the agent; as the case is called, unless said otherwise."""
    bound: float = 20.0
    sizes: tuple[int, int] = (1, 1)
    at_terminal: bool = True
    said: Callable[[int], int] = one_line
    """How many numbered lines there are to be, for a size; all of them must have come."""
    characters: Callable[[int], int] | None = None
    """Of all lines together."""
    settle: float = SETTLE_BOUND
    meanwhile: Callable[[RunHandle], Awaitable[None]] | None = None
    """What the consumer does to the run."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the run."""
    peak_mib: float | None = None
    """What memory may grow by in the full size."""
    reads_slowly: bool = False
    clock_jumps: bool = False
    events: tuple[str, ...] = ()
    """Types that must occur."""

    async def play(self, circumstances: Circumstances) -> Outcome:
        """Play it and look at everything."""
        from agent_mux.testing.torture.conduct import conduct  # noqa: PLC0415  # it reads this module

        return await conduct(self, circumstances)
