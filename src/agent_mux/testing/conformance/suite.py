"""The suite as a test class for pytest."""

from collections.abc import Iterable
from functools import cache
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from agent_mux.adapter import Adapter
from agent_mux.testing.conformance import checks
from agent_mux.testing.conformance.claims import check_claimed_events
from agent_mux.testing.conformance.goldens import check_golden
from agent_mux.testing.conformance.recorded import Recorded
from agent_mux.testing.conformance.tolerance import check_is_tolerant
from agent_mux.testing.fixtures import find_fixtures

BYTE_BY_BYTE = 1 << 17  # bytes of output; longer recordings are cut at random only
SEEDS = range(4)
"""Of what is done to a recording at random: cut, and damaged. `agent_mux.testing.fuzz` tries more."""
MANY_CUTS = 40


class AdapterConformance:
    """Inherit from it, name the adapter and where its recordings are, and pytest does the rest.

    class TestMyAgent(AdapterConformance):
        adapter = ADAPTER
        fixtures = Path(__file__).parent / "fixtures"  # with <agent>/<version>/<scenario>/ in it
    """

    adapter: ClassVar[Adapter]
    fixtures: ClassVar[Path]

    @classmethod
    @cache
    def recordings(cls) -> tuple[Recorded, ...]:
        """The recordings to check: all there are of the agent."""
        return tuple(Recorded(cls.adapter, folder) for folder in find_fixtures(cls.fixtures, cls.adapter.agent))

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each check and recording."""
        if "recorded" in metafunc.fixturenames:
            metafunc.parametrize("recorded", self.recordings(), ids=repr)

    def test_there_are_recordings(self) -> None:
        """Without any, nothing would be checked."""
        _expect_none([] if self.recordings() else [f"no recordings of {self.adapter.agent} in {self.fixtures}"])

    def test_emits_what_it_claims(self) -> None:
        """`AgentCapabilities.emits`, both ways."""
        _expect_none(check_claimed_events(self.adapter, self.recordings()))

    def test_is_understood(self, recorded: Recorded) -> None:
        """See `check_is_understood`."""
        _expect_none(checks.check_is_understood(recorded))

    def test_ledger_adds_up(self, recorded: Recorded) -> None:
        """See `check_ledger_adds_up`."""
        _expect_none(checks.check_ledger_adds_up(recorded))

    def test_is_lawful(self, recorded: Recorded) -> None:
        """See `check_is_lawful`."""
        _expect_none(checks.check_is_lawful(recorded))

    def test_matches_golden(self, recorded: Recorded) -> None:
        """See `check_golden`."""
        _expect_none(check_golden(recorded))

    def test_beginnings_are_lawful(self, recorded: Recorded) -> None:
        """See `check_beginnings_are_lawful`."""
        _expect_none(checks.check_beginnings_are_lawful(recorded))

    def test_torn_lines_are_lawful(self, recorded: Recorded) -> None:
        """See `check_torn_lines_are_lawful`."""
        _expect_none(checks.check_torn_lines_are_lawful(recorded))

    def test_chunks_do_not_matter(self, recorded: Recorded) -> None:
        """See `check_chunks_do_not_matter`: byte by byte, and cut at random."""
        output = recorded.output
        ways = [_cut(output, Random(seed)) for seed in SEEDS]  # noqa: S311  # a test, not a secret
        if len(output) <= BYTE_BY_BYTE:
            ways.append([output[index : index + 1] for index in range(len(output))])
        _expect_none(checks.check_chunks_do_not_matter(recorded, *ways))

    def test_is_tolerant(self, recorded: Recorded) -> None:
        """See `check_is_tolerant`."""
        _expect_none(chain.from_iterable(check_is_tolerant(recorded, seed) for seed in SEEDS))

    def test_journal_gives_the_same(self, recorded: Recorded) -> None:
        """See `check_journal_gives_the_same`."""
        _expect_none(checks.check_journal_gives_the_same(recorded))

    def test_buffered_says_the_same(self, recorded: Recorded) -> None:
        """See `check_buffered_says_the_same`."""
        _expect_none(checks.check_buffered_says_the_same(recorded))

    def test_insides_of_subagents_are_apart(self, recorded: Recorded) -> None:
        """See `check_insides_of_subagents_are_apart`."""
        _expect_none(checks.check_insides_of_subagents_are_apart(recorded))


def _cut(output: bytes, random: Random) -> list[bytes]:
    cuts = sorted(random.randint(0, len(output)) for _ in range(random.randint(0, MANY_CUTS)))
    return [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]


def _expect_none(problems: Iterable[str]) -> None:
    found = list(islice(problems, 10))
    if found:
        pytest.fail("\n".join(found), pytrace=False)
