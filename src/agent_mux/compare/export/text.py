"""A report as text for a terminal or a log: one row per candidate, then what differs, then the notes.

Texts of agents are sanitized and never read as markup. Without colours, the text has no escape sequences. This module
imports rich: import it where a report is printed.
"""

from collections.abc import Callable, Iterator
from io import StringIO
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_mux._util.sanitize import one_line
from agent_mux.api.comparisons import CandidateSummary, ComparisonReport, TrialSummary
from agent_mux.compare.export import cells
from agent_mux.compare.export.sentences import difference_lines, selection_text

_NAME = 40  # characters of a name
_STYLES = {"good": "green", "bad": "red", "warning": "yellow", "plain": ""}
_GATE_STYLES = {"passed": "green", "failed": "red", "not_measured": "yellow"}
_GATE_WORDS = {"passed": "passed", "failed": "failed", "not_measured": "not measured"}


class _Column(NamedTuple):
    """A column, and from which width of the terminal on it is shown."""

    title: str
    from_width: int
    cell: Callable[[CandidateSummary, list[TrialSummary]], str]
    is_number: bool = True


def _tokens(candidate: CandidateSummary, _: list[TrialSummary]) -> str:
    if candidate.input_tokens.value is None and candidate.output_tokens.value is None:
        return cells.sum_text(candidate.output_tokens)
    unknown = max(candidate.input_tokens.unknown, candidate.output_tokens.unknown)
    both = (candidate.input_tokens.value, candidate.output_tokens.value)
    return "/".join(cells.number_text(value) for value in both) + (f" + {unknown} unknown" if unknown else "")


def _tools(candidate: CandidateSummary, _: list[TrialSummary]) -> str:
    failed = candidate.tool_errors.value
    return cells.sum_text(candidate.tool_calls) + (f" ({failed} failed)" if failed else "")


_COLUMNS = (
    _Column("candidate", 0, lambda candidate, _: one_line(candidate.name, _NAME), is_number=False),
    _Column("result", 0, lambda candidate, _: cells.outcome_text(candidate), is_number=False),
    _Column("model", 140, lambda candidate, _: one_line(candidate.model or cells.NOTHING, _NAME), is_number=False),
    _Column("passed", 100, lambda candidate, _: cells.rate_text(candidate)),
    _Column("95 %", 110, lambda candidate, _: cells.interval_text(candidate)),
    _Column("changes", 72, lambda _, trials: cells.candidate_changes(trials)),
    _Column("time", 0, lambda candidate, _: cells.time_text(candidate.median_duration_ms)),
    _Column("tools", 120, _tools),
    _Column("tokens in/out", 100, _tokens),
    _Column("cost", 0, lambda candidate, _: cells.cost_text(candidate.cost)),
)


def text_of(report: ComparisonReport, *, width: int, color: bool) -> str:
    """Return the report as text of this width, in columns; `color` adds escape sequences."""
    out = StringIO()
    console = Console(
        file=out, width=max(width, 40), force_terminal=color, no_color=not color, highlight=False, markup=False,
        color_system="standard" if color else None, legacy_windows=False, emoji=False,
    )  # fmt: skip
    console.print(_table(report, width))
    for title, lines in sections(report):
        console.print(Text(title, style="bold"))
        grid = Table.grid(padding=(0, 1))
        grid.add_column(overflow="fold")
        for line in lines:
            grid.add_row("-", Text(line.removeprefix("- ")))
        console.print(grid)
        console.print()
    word, style = _GATE_WORDS[report.gate.status], _GATE_STYLES[report.gate.status]
    console.print(Text.assemble("gate ", (word, f"bold {style}"), f": {one_line(report.gate.reason, 300)}"))
    if report.judge:
        console.print(one_line(report.judge, 400))
    console.print(selection_text(report.selection))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def sections(report: ComparisonReport) -> Iterator[tuple[str, list[str]]]:
    """Yield the titles and the lines below the table: what differs, and the notes."""
    if report.differences is not None:
        lines = list(difference_lines(report.differences))
        if lines:
            yield "Differences", lines
    if report.notes:
        yield "Notes", [f"- {note.text}{f'; {note.next_step}' if note.next_step else ''}" for note in report.notes]


def _table(report: ComparisonReport, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    columns = [column for column in _COLUMNS if width >= column.from_width]
    for column in columns:
        table.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
    for candidate in report.candidates:
        trials = cells.trials_of(report, candidate)
        table.add_row(*(
            Text(column.cell(candidate, trials), style=_style(column.title, candidate)) for column in columns
        ))  # fmt: skip
    return table


def _style(title: str, candidate: CandidateSummary) -> str:
    return _STYLES[cells.candidate_tone(candidate)] if title == "result" else "bold" if title == "candidate" else ""
