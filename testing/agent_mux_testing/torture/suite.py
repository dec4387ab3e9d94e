"""Playing of cases one after the other, and the table of their outcomes."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import anyio

from agent_mux.errors import AgentMuxError
from agent_mux_testing.torture.case import Case, CaseOutcome, Circumstances
from agent_mux_testing.torture.cases import CASES

LATE_PLAYS = 3
"""A case that ends correctly, but late, fails when it is late in this many plays."""
AT_TERMINAL = "@terminal"
"""Suffix of a case's name: the agent runs at a terminal instead of on pipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table: a case and its outcome."""

    case: str
    meaning: str
    ok: bool
    verdict: str
    seconds: float
    settle: float | None
    """Seconds from the agent's last output, or from the order to end, to the end of the run."""
    peak_mib: float | None
    """Growth of memory in MiB; None where the case does not measure it."""
    findings: tuple[str, ...]
    """What is wrong, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data for JSON."""
        return asdict(self)


def case_names() -> list[str]:
    """Return the names of all cases: each on pipes, and with `@terminal` where a terminal makes a difference."""
    return [
        name
        for case in CASES.values()
        for name in (case.name, *([case.name + AT_TERMINAL] if case.at_terminal else []))
    ]


def wanted_cases(names: Iterable[str] | None) -> list[str]:
    """Return these names, or all by default. Raise VALIDATION_ERROR for an unknown name."""
    known = case_names()
    wanted = list(names) if names is not None else known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise AgentMuxError("VALIDATION_ERROR", f"unknown case: {', '.join(unknown)}; known cases: {', '.join(known)}")
    return wanted


async def run_torture(
    names: Iterable[str] | None = None, *, full: bool = True, on_row: Callable[[Row], object] | None = None
) -> list[Row]:
    """Play cases on the running event loop, asyncio or trio.

    Args:
        names: Names of cases; all of `case_names()` by default.
        full: Whether to play the cases in full size; otherwise long cases are played in a smaller size.
        on_row: Called with each row as soon as its case has ended.

    Raises:
        AgentMuxError: VALIDATION_ERROR for an unknown name.
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
    began = time.monotonic()
    outcome = await _outcome(case, where)
    return Row(
        case=name,
        meaning=case.meaning,
        ok=not outcome.findings,
        verdict=outcome.verdict,
        seconds=round(time.monotonic() - began, 2),
        settle=None if outcome.settle is None else round(outcome.settle, 3),
        peak_mib=None if outcome.peak_mib is None else round(outcome.peak_mib, 1),
        findings=outcome.findings,
    )


def _backend() -> str:
    try:
        return "trio" if asyncio.current_task() is None else "asyncio"
    except RuntimeError:
        return "trio"


async def _outcome(case: Case, where: Circumstances) -> CaseOutcome:
    """Play the case, again while it is only late: a machine that stood still is late once, a defect every time."""
    for _ in range(LATE_PLAYS):
        outcome = await _bounded(case, where)
        if outcome.findings or outcome.late is None:
            return outcome
    return replace(outcome, findings=(f"{outcome.late}, {LATE_PLAYS} times in a row",))


async def _bounded(case: Case, where: Circumstances) -> CaseOutcome:
    try:
        with anyio.fail_after(case.bound):
            return await case.play(where)
    except TimeoutError:
        return CaseOutcome(verdict="-", findings=(f"it did not end within {case.bound:g} s",))
