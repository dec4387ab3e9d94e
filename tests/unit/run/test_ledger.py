"""Every native line is mapped, ignored for a reason, or unknown."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.run.scripted_run import DONE, feed, line, normalizer, printed

from agent_mux.journal.records import Kind, Record
from agent_mux.run.ledger import Ledger

LINES = st.sampled_from([line(text="a"), line(nothing=1), line(odd=1), b"noise\n", b"\n", b"  \n"])


@given(printed_lines=st.lists(LINES, max_size=20))
def test_the_counts_add_up_for_any_output(printed_lines: list[bytes]) -> None:
    one = normalizer()
    feed(one, [*printed(*printed_lines), DONE])
    ledger = one.ledger
    assert ledger.lines == sum(1 for data in printed_lines if data.strip())
    assert ledger.mapped + ledger.ignored.total() + ledger.unknown.total() == ledger.lines
    assert ledger.unknown.total() == printed_lines.count(line(odd=1))
    assert ledger.ignored.total() == printed_lines.count(line(nothing=1))


def test_it_counts_standard_output_only() -> None:
    one = normalizer()
    feed(one, [Record(Kind.STDERR, 0, b"complaint\n"), Record(Kind.STDIN, 0, b"{}\n"), DONE])
    assert one.ledger.lines == 0


def test_the_reasons_for_ignored_lines_are_recorded() -> None:
    one = normalizer()
    feed(one, [*printed(line(nothing=1), line(nothing=2), line(odd=3)), DONE])
    assert one.ledger.to_dict() == {
        "lines": 3,
        "mapped": 0,
        "ignored": {"nothing": 2},
        "reasons": {"nothing": "it carries nothing"},
        "unknown": {"odd": 1},
    }
    assert one.ledger != Ledger()
