"""`amux doctor --torture`: the table of results."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux_testing import torture
from agent_mux_testing.torture import CASES, Row

DOCS = Path(__file__).parents[3] / "docs/how-to/test-supervision.md"


def row(case: str, *findings: str) -> Row:
    return Row(
        case=case, meaning="it does", ok=not findings, verdict="completed", seconds=1.25, settle=0.5, peak_mib=None,
        findings=findings,
    )  # fmt: skip


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What was asked for. `noise` is right, anything else is not."""
    asked: dict[str, object] = {}

    async def run_torture(names: Iterable[str], *, full: bool, on_row: Callable[[Row], object] | None) -> list[Row]:
        asked.update(names=list(names), full=full)
        rows = [row(name) if name == "noise" else row(name, "process 7 (\x1b[2Jx) was left") for name in names]
        for one in rows if on_row is not None else ():
            on_row(one)
        return rows

    monkeypatch.setattr(torture, "run_torture", run_torture)
    return asked


def test_each_case_has_a_row_and_success_is_exit_code_0(amux: Amux, played: dict[str, object]) -> None:
    done = amux("doctor", "--torture", "noise")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "    case                        verdict      seconds  settle    MiB",
        "ok  noise                       completed       1.25    0.50       ",
        "all 1 cases passed on asyncio",
    ]
    assert played == {"names": ["noise"], "full": True}


def test_findings_are_printed_and_the_exit_code_is_1(amux: Amux, played: dict[str, object]) -> None:
    done = amux("doctor", "--torture", "holder", "noise", "--quick", "--backend", "trio")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[1].startswith("  ! holder ")
    assert lines[2].startswith("      process 7 (")
    assert "\x1b" not in done.out
    assert lines[-1] == "1 of 2 cases failed: holder"
    assert played["full"] is False


def test_as_json(amux: Amux, played: dict[str, object]) -> None:
    done = amux("doctor", "--torture", "holder", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert said["ok"] is True
    assert said["data"][0]["findings"] == ["process 7 (\x1b[2Jx) was left"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nonsense"], "unknown case: nonsense; known cases: line-2-mib"), (["--backend", "curio"], "asyncio or trio")],
)
def test_an_unknown_case_is_a_usage_error(amux: Amux, arguments: list[str], words: str) -> None:
    done = amux("doctor", "--torture", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_the_documentation_lists_every_case() -> None:
    page = DOCS.read_text()
    for case in CASES.values():
        assert f"| `{case.name}` | {case.meaning} |" in page
