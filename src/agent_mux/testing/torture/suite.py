"""Plays cases one after another, and makes the table of them."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import anyio

from agent_mux.errors import AgentMuxError
from agent_mux.testing.torture.case import Case, Circumstances, Outcome
from agent_mux.testing.torture.cases import CASES

AT_TERMINAL = "@terminal"
"""Behind the name of a case: the agent runs at a terminal instead of on pipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    case: str
    meaning: str
    ok: bool
    verdict: str
    seconds: float
    settle: float | None
    """Seconds from the agent's last word, or from the order to end, until everything was over."""
    peak_mib: float | None
    """What memory grew by, where the case is about that."""
    findings: tuple[str, ...]
    """What is not as it must be."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def case_names() -> list[str]:
    """All that can be played here: each case on pipes, and at a terminal where that makes a difference."""
    return [
        name
        for case in CASES.values()
        for name in (case.name, *([case.name + AT_TERMINAL] if case.at_terminal else []))
    ]


def wanted_cases(names: Iterable[str] | None) -> list[str]:
    """These, or all. Raises VALIDATION_ERROR for a name that is none."""
    known = case_names()
    wanted = list(names) if names is not None else known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise AgentMuxError("VALIDATION_ERROR", f"no such case: {', '.join(unknown)}; there are: {', '.join(known)}")
    return wanted


async def run_torture(
    names: Iterable[str] | None = None, *, full: bool = True, on_row: Callable[[Row], object] | None = None
) -> list[Row]:
    """Play cases on the event loop that runs, asyncio or trio.

    Args:
        names: Which; all of `case_names()` by default.
        full: In full size; otherwise those that take long are played smaller.
        on_row: Told each row as soon as it is there.

    Raises:
        AgentMuxError: VALIDATION_ERROR for a name that is none.
    """
    rows = []
    for name in wanted_cases(names):
        row = await _row(name, full=full)
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return rows


async def _row(name: str, *, full: bool) -> Row:
    plain, terminal = name.removesuffix(AT_TERMINAL), name.endswith(AT_TERMINAL)
    case = CASES[plain]
    where = Circumstances(case.sizes[full], terminal, _backend())
    begun = time.monotonic()
    outcome = await _bounded(case, where)
    return Row(
        case=name,
        meaning=case.meaning,
        ok=not outcome.findings,
        verdict=outcome.verdict,
        seconds=round(time.monotonic() - begun, 2),
        settle=None if outcome.settle is None else round(outcome.settle, 3),
        peak_mib=None if outcome.peak_mib is None else round(outcome.peak_mib, 1),
        findings=outcome.findings,
    )


def _backend() -> str:
    try:
        return "trio" if asyncio.current_task() is None else "asyncio"
    except RuntimeError:
        return "trio"


async def _bounded(case: Case, where: Circumstances) -> Outcome:
    try:
        with anyio.fail_after(case.bound):
            return await case.play(where)
    except TimeoutError:
        return Outcome(verdict="-", findings=(f"it was not over within {case.bound:g} s",))
