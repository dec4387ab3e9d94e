"""The conformance suite finds the faults of wrong adapters, and none in the correct one."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.unit.testing import toy_adapter as toy
from tests.unit.testing.toy_adapter import EMITS, ToyCodec, save_recordings

from agent_mux_testing.conformance import Recorded, checks
from agent_mux_testing.conformance.checks import UPDATE, check_claimed_events, check_golden
from agent_mux_testing.conformance.mutations import check_is_tolerant, check_sniffs
from agent_mux_testing.fixtures import find_fixtures

SEEDS = range(40)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write recordings of the toy agent, with goldens of its correct adapter."""
    root = save_recordings(tmp_path_factory.mktemp("fixtures"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(UPDATE, "1")
        assert [problem for recorded in recordings(root) for problem in check_golden(recorded)] == []
    return root


def recordings(root: Path, codec: type[ToyCodec] = ToyCodec, emits: frozenset[str] = EMITS) -> list[Recorded]:
    return [Recorded(toy.toy_adapter(codec, emits=emits), folder) for folder in find_fixtures(root)]


def cuts(recorded: Recorded) -> Iterator[str]:
    return checks.check_chunks_do_not_matter(recorded, [bytes([byte]) for byte in recorded.fixture.stdout])


def tolerance(recorded: Recorded) -> Iterator[str]:
    return chain.from_iterable(check_is_tolerant(recorded, seed) for seed in SEEDS)


CHECKS = {
    "understood": checks.check_is_understood,
    "ledger": checks.check_ledger_adds_up,
    "conforms": checks.check_conforms,
    "golden": check_golden,
    "beginnings": checks.check_prefixes_conform,
    "torn": checks.check_torn_lines_conform,
    "chunks": cuts,
    "tolerant": tolerance,
    "journal": checks.check_journal_derives_same_events,
    "buffered": checks.check_buffered_content_is_same,
    "apart": checks.check_subagent_events_are_separate,
}


def test_nothing_is_wrong_with_the_true_adapter(root: Path) -> None:
    for recorded in recordings(root):
        for check in CHECKS.values():
            assert list(check(recorded)) == []
    assert list(check_claimed_events(toy.toy_adapter(), recordings(root))) == []


@pytest.mark.parametrize(
    ("codec", "found_by", "problem_part"),
    [
        (toy.Drops, "understood", "unknown kinds: {'heartbeat': 1}"),
        (toy.ReturnsNothing, "ledger", "no facts for line 5"),
        (toy.Miscounts, "ledger", "counted as not mapped"),
        (toy.IgnoresForNoReason, "understood", "without a reason: ['heartbeat']"),
        (toy.Acts, "understood", "effects while observing another client"),
        (toy.Duplicates, "golden", "event 4 was"),
        (toy.MixesUp, "golden", "event 10 was"),
        (toy.Raises, "tolerant", "the codec raised"),
        (toy.Remembers, "journal", "live"),
        (toy.Remembers, "chunks", "whole"),
        (toy.Remembers, "buffered", "differ in"),
        (toy.LeavesInside, "torn", "its half is an unknown"),
    ],
)
def test_what_is_wrong_is_found(root: Path, codec: type[ToyCodec], found_by: str, problem_part: str) -> None:
    problems = [problem for recorded in recordings(root, codec) for problem in CHECKS[found_by](recorded)]
    assert any(problem_part in problem for problem in problems), problems


@pytest.mark.parametrize(("codec", "found_by"), [(toy.RaisesAtTheEnd, "beginnings"), (toy.Raises, "torn")])
def test_an_adapter_that_raises_fails_the_check(root: Path, codec: type[ToyCodec], found_by: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        [list(CHECKS[found_by](recorded)) for recorded in recordings(root, codec)]


@pytest.mark.parametrize(
    ("sniff", "error"),
    [
        (lambda native: "session" in native, "TypeError"),
        (lambda native: isinstance(native, dict) and native.get("session") in {"S1", "S2"}, "unhashable"),
        (lambda native: isinstance(native, dict) and native.get("text", "").startswith("Let"), "AttributeError"),
    ],
)
def test_sniff_that_raises_is_found(root: Path, sniff: Callable[[Any], bool], error: str) -> None:
    adapter = toy.toy_adapter()
    assert list(check_sniffs(adapter, recordings(root))) == []
    broken = replace(adapter, protocols={"lines": replace(adapter.protocols["lines"], sniff=sniff)})
    assert any(error in problem for problem in check_sniffs(broken, recordings(root)))


def test_claims_are_checked_both_ways(root: Path) -> None:
    too_much, too_little = EMITS | {"file_read"}, EMITS - {"tool_result"}
    (problem,) = check_claimed_events(toy.toy_adapter(emits=too_much), recordings(root))
    assert problem == "claimed in `emits`, but in no recording: ['file_read']"
    (problem,) = check_claimed_events(toy.toy_adapter(emits=too_little), recordings(root))
    claim = ", ".join(f'"{name}"' for name in sorted(EMITS))
    assert problem == f"recorded, but not claimed in `emits`: ['tool_result']; write emits=frozenset({{{claim}}})"


def test_a_golden_is_written_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = recordings(save_recordings(tmp_path))[1]
    assert "events.jsonl is missing" in next(check_golden(recorded))
    monkeypatch.setenv(UPDATE, "1")
    assert list(check_golden(recorded)) == []
    monkeypatch.delenv(UPDATE)
    assert list(check_golden(recorded)) == []
    golden = recorded.folder / "events.jsonl"
    golden.write_text(golden.read_text() + "{}\n")
    (problem,) = check_golden(recorded)
    count = len(recorded.played.events)
    assert problem == f"there were {count + 1} events, there are {count}"


SUITE = """
from pathlib import Path
from typing import Any
from agent_mux_testing.conformance import AdapterConformance
from tests.unit.testing import toy_adapter as toy

class TestToy(AdapterConformance):
    adapter = toy.toy_adapter(toy.{codec})
    fixtures = Path({root!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "code"), [("ToyCodec", 0), ("Duplicates", 1)])
def test_an_author_runs_it_with_one_import(root: Path, tmp_path: Path, codec: str, code: int) -> None:
    (tmp_path / "test_toy.py").write_text(SUITE.format(codec=codec, root=str(root)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path)]
    here = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout
    assert ("test_matches_golden[toy/1.0/good]" in done.stdout) is (code == 1)


@pytest.mark.slow
def test_without_recordings_the_suite_fails(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(SUITE.format(codec="ToyCodec", root=str(tmp_path / "nothing")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    here = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no recordings of toy" in done.stdout
