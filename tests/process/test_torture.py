"""The torture suite, case by case, on both event loops. `make test` runs a part of it, `make torture` all of it."""

import os
from typing import Any

import pytest

from agent_mux import AgentMuxError
from agent_mux_testing.torture import AT_TERMINAL, CASES, CaseOutcome, Circumstances, case_names, run_torture

pytestmark = pytest.mark.anyio
FULL = os.environ.get("AMUX_TORTURE") == "full"


LOOPS = ("asyncio", "trio")
QUICK_AT_TERMINAL = {f"{name}{AT_TERMINAL}" for name in ("noise", "holder", "stubborn", "double-fork", "deaf", "burst")}


def _plays() -> list[Any]:
    """Return the parameters. In full: all cases, over pipes and at a terminal, on both loops; else on one."""
    names = [name for name in case_names() if FULL or AT_TERMINAL not in name or name in QUICK_AT_TERMINAL]
    plays = []
    for number, name in enumerate(names):
        loops = LOOPS if FULL else (LOOPS[number % 2],)
        plays += [pytest.param(loop, name, id=f"{loop}-{name}") for loop in loops]
    return plays


@pytest.mark.slow
@pytest.mark.parametrize(("anyio_backend", "name"), _plays())
async def test_no_output_is_lost_and_no_process_remains(name: str) -> None:
    (row,) = await run_torture([name], full=FULL)
    assert row.findings == ()
    assert row.ok


async def test_unknown_case_is_refused_before_any_case_runs() -> None:
    with pytest.raises(AgentMuxError, match="unknown case: nonsense; known cases: line-2-mib, ") as caught:
        await run_torture(["noise", "nonsense"], on_row=lambda _: pytest.fail("a case ran"))
    assert caught.value.code == "VALIDATION_ERROR"


class TooSlow:
    name, meaning, bound, sizes, at_terminal = "slow", "it takes too long", 0.05, (1, 1), False

    async def play(self, circumstances: Circumstances) -> CaseOutcome:
        import anyio

        await anyio.sleep(60)
        raise AssertionError


async def test_every_case_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "slow", TooSlow())
    (row,) = await run_torture(["slow"])
    assert (row.ok, row.verdict, row.findings) == (False, "-", ("it did not end within 0.05 s",))


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ({"verdict": "crashed"}, "the verdict is completed, not crashed"),
        ({"lines": lambda _: 21}, "20 lines came, not 21"),
        ({"characters": lambda _: 1}, "characters came, not 1"),
        ({"events": ("crash",)}, "no event crash"),
        ({"settle": -1.0}, "s, not within -1 s, 3 times in a row"),
    ],
)
async def test_suite_reports_violations(monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], finding: str) -> None:
    from dataclasses import replace

    monkeypatch.setitem(CASES, "noise", replace(CASES["noise"], **changed))
    (row,) = await run_torture(["noise"])
    assert not row.ok
    assert finding in " ".join(row.findings)


class LateOnce:
    name, meaning, bound, sizes, at_terminal = "late", "it is late in its first play", 60.0, (1, 1), False

    def __init__(self) -> None:
        self.plays = 0

    async def play(self, circumstances: Circumstances) -> CaseOutcome:
        self.plays += 1
        return CaseOutcome(verdict="completed", late="it was late" if self.plays == 1 else None)


async def test_case_that_is_late_once_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "late", LateOnce())
    (row,) = await run_torture(["late"])
    assert (row.ok, row.findings, CASES["late"].plays) == (True, (), 2)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_suite_reports_a_surviving_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.process.marker._has_mark", lambda *_: False)
    (row,) = await run_torture(["double-fork"])
    assert [finding for finding in row.findings if finding.endswith("was left")]
