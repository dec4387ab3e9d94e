"""The interface of a torture case, and the outcome of playing one."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances under which a case is played."""

    size: int
    """How hard the agent misbehaves; its unit depends on the case."""
    terminal: bool
    """Whether the agent runs at a terminal instead of on pipes."""
    backend: str
    """`asyncio` or `trio`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """The outcome of one case. It has passed when `findings` is empty."""

    verdict: str
    findings: tuple[str, ...] = ()
    """What is wrong, one sentence each."""
    late: str | None = None
    """What ended too late, as a sentence. It becomes a finding if the case is late in each of several plays."""
    settle: float | None = None
    """Seconds from the agent's last output, or from the order to end, to the end of the run; the worst of several."""
    peak_mib: float | None = None
    """Growth of this process's memory in MiB; None where the case does not measure it."""


class Case(Protocol):
    """One way to misbehave, and what must be true afterwards."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    @property
    def meaning(self) -> str:
        """What the agent does, and what must be true afterwards: one line."""
        ...

    @property
    def bound(self) -> float:
        """Seconds within which the case ends, whatever happens."""
        ...

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes for a short and for a full torture."""
        ...

    @property
    def at_terminal(self) -> bool:
        """Whether the case is also played at a terminal."""
        ...

    async def play(self, circumstances: Circumstances) -> CaseOutcome:
        """Play the case. The caller bounds the time."""
        ...
