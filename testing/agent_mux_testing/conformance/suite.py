"""The conformance suite as a test class for pytest."""

from collections.abc import Iterable
from functools import cache
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from agent_mux.sdk.adapter import Adapter
from agent_mux_testing.conformance import checks
from agent_mux_testing.conformance.mutations import check_is_tolerant, check_sniffs
from agent_mux_testing.conformance.recorded import Recorded
from agent_mux_testing.fixtures import find_fixtures

MAX_SINGLE_BYTES = 1 << 17  # bytes of output; longer recordings are only cut at random
SEEDS = range(4)
"""Seeds of the random cuts and damages of each recording. `agent_mux_testing.fuzz` tries more."""
MAX_CUTS = 40


class AdapterConformance:
    """The base class of an adapter's conformance tests: set the adapter and the folder of its recordings.

    class TestMyAgent(AdapterConformance):
        adapter = ADAPTER
        fixtures = Path(__file__).parent / "fixtures"  # with <agent>/<version>/<scenario>/ in it
    """

    adapter: ClassVar[Adapter]
    fixtures: ClassVar[Path]

    @classmethod
    @cache
    def recordings(cls) -> tuple[Recorded, ...]:
        """Return the recordings to check: by default all of the agent."""
        return tuple(Recorded(cls.adapter, folder) for folder in find_fixtures(cls.fixtures, cls.adapter.agent))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Generate one test for each check and recording."""
        if "recorded" in metafunc.fixturenames:
            metafunc.parametrize("recorded", self.recordings(), ids=repr)

    def test_there_are_recordings(self) -> None:
        """Fail when the agent has no recordings."""
        _expect_none([] if self.recordings() else [f"no recordings of {self.adapter.agent} in {self.fixtures}"])

    def test_emits_what_it_claims(self) -> None:
        """Run `check_claimed_events` over all recordings."""
        _expect_none(checks.check_claimed_events(self.adapter, self.recordings()))

    def test_sniffs_accept_any_value(self) -> None:
        """Run `check_sniffs` over all recordings."""
        _expect_none(check_sniffs(self.adapter, self.recordings()))

    def test_is_understood(self, recorded: Recorded) -> None:
        """Run `check_is_understood` on one recording."""
        _expect_none(checks.check_is_understood(recorded))

    def test_ledger_adds_up(self, recorded: Recorded) -> None:
        """Run `check_ledger_adds_up` on one recording."""
        _expect_none(checks.check_ledger_adds_up(recorded))

    def test_conforms(self, recorded: Recorded) -> None:
        """Run `check_conforms` on one recording."""
        _expect_none(checks.check_conforms(recorded))

    def test_matches_golden(self, recorded: Recorded) -> None:
        """Run `check_golden` on one recording."""
        _expect_none(checks.check_golden(recorded))

    def test_prefixes_conform(self, recorded: Recorded) -> None:
        """Run `check_prefixes_conform` on one recording."""
        _expect_none(checks.check_prefixes_conform(recorded))

    def test_torn_lines_conform(self, recorded: Recorded) -> None:
        """Run `check_torn_lines_conform` on one recording."""
        _expect_none(checks.check_torn_lines_conform(recorded))

    def test_chunks_do_not_matter(self, recorded: Recorded) -> None:
        """Run `check_chunks_do_not_matter` with single bytes and random cuts."""
        output = recorded.output
        ways = [_cut(output, Random(seed)) for seed in SEEDS]  # noqa: S311  # a test, not a secret
        if len(output) <= MAX_SINGLE_BYTES:
            ways.append([output[index : index + 1] for index in range(len(output))])
        _expect_none(checks.check_chunks_do_not_matter(recorded, *ways))

    def test_is_tolerant(self, recorded: Recorded) -> None:
        """Run `check_is_tolerant` on one recording."""
        _expect_none(chain.from_iterable(check_is_tolerant(recorded, seed) for seed in SEEDS))

    def test_journal_derives_same_events(self, recorded: Recorded) -> None:
        """Run `check_journal_derives_same_events` on one recording."""
        _expect_none(checks.check_journal_derives_same_events(recorded))

    def test_buffered_content_is_same(self, recorded: Recorded) -> None:
        """Run `check_buffered_content_is_same` on one recording."""
        _expect_none(checks.check_buffered_content_is_same(recorded))

    def test_subagent_events_are_separate(self, recorded: Recorded) -> None:
        """Run `check_subagent_events_are_separate` on one recording."""
        _expect_none(checks.check_subagent_events_are_separate(recorded))


def _cut(output: bytes, random: Random) -> list[bytes]:
    cuts = sorted(random.randint(0, len(output)) for _ in range(random.randint(0, MAX_CUTS)))
    return [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]


def _expect_none(problems: Iterable[str]) -> None:
    found = list(islice(problems, 10))
    if found:
        pytest.fail("\n".join(found), pytrace=False)
