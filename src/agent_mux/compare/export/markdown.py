"""A report as Markdown that fits into a comment of a pull request.

Texts of agents are code spans and fenced code, in which Markdown, HTML, mentions and links have no meaning.
"""

import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from agent_mux._util.sanitize import one_line, reveal, sanitize
from agent_mux.api.comparisons import ComparisonReport, TrialSummary
from agent_mux.compare.differences import read_patch
from agent_mux.compare.export import cells
from agent_mux.compare.export.sentences import difference_lines, selection_text
from agent_mux.compare.records import Comparison

MAX_SIZE = 60_000
"""Characters of the whole text; GitHub accepts 65,536 in a comment."""
MAX_PATCH = 12_000
"""Characters of a patch; a longer one is named, not shown."""
_WIDTH = 300
_LONGEST_PROMPT = 2000
_GATES = {"passed": "✅ passed", "failed": "❌ failed", "not_measured": "⚠️ not measured"}
_TONES = {"good": "✅", "bad": "❌", "warning": "⚠️", "plain": "…"}
_HEAD = ("candidate", "result", "passed", "95 %", "changes", "time", "tool calls", "denied", "tokens in", "out", "cost")


def markdown_of(report: ComparisonReport, comparison: Comparison, folder: Path | None = None) -> str:
    """Return the report as Markdown of at most `MAX_SIZE` characters.

    Args:
        report: The report.
        comparison: The records from which it was made.
        folder: The folder of the comparison; without it, patches are named and not shown.
    """
    text = "\n".join(_overview(report))
    if len(text) > MAX_SIZE:  # many candidates or notes
        cut = text[: MAX_SIZE - 200].rpartition("\n")[0]
        return f"{cut}\n\nThe report is cut here; `amux compare show {report.id}` shows the whole.\n"
    omitted: list[str] = []
    trials = {trial.id: trial for trial in comparison.trials}
    for summary in report.trials:
        patch = None if folder is None else read_patch(folder, trials[summary.id], 4 * MAX_PATCH)
        details = "\n".join(_trial(summary, patch))
        if len(text) + len(details) < MAX_SIZE - 500:
            text += details
        else:
            omitted.append(summary.id)
    if omitted:
        text += f"\nDetails of {len(omitted)} trials are omitted here; `amux compare show {report.id}` shows them.\n"
    return text


def code(text: str, width: int = _WIDTH) -> str:
    """Return text as a code span, also within a table."""
    flat = one_line(reveal(text), width) or " "
    runs = {len(run) for run in re.findall("`+", flat)}
    fence = "`" * next(size for size in range(1, len(flat) + 2) if size not in runs)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> str:
    """Return text as a fenced block, whatever it contains."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{sanitize(text).rstrip()}\n{fence}"


def _overview(report: ComparisonReport) -> Iterator[str]:
    yield f"### Comparison {code(report.id)}: {_GATES[report.gate.status]}"
    yield f"\n{code(report.gate.reason)}\n"
    yield f"{code(selection_text(report.selection), 400)}\n"
    if report.judge:
        yield f"{code(report.judge, 400)}\n"
    yield from _row(_HEAD)
    yield from _row(["---", "---", *("---:" for _ in _HEAD[2:])])
    for each in report.candidates:
        failed = f" ({each.tool_errors.value} failed)" if each.tool_errors.value else ""
        yield from _row([
            code(each.name), f"{_TONES[cells.candidate_tone(each)]} {cells.outcome_text(each)}", cells.rate_text(each),
            cells.interval_text(each), cells.candidate_changes(cells.trials_of(report, each)),
            cells.time_text(each.median_duration_ms), cells.sum_text(each.tool_calls) + failed,
            cells.sum_text(each.denials), cells.sum_text(each.input_tokens), cells.sum_text(each.output_tokens),
            cells.cost_text(each.cost),
        ])  # fmt: skip
    yield (
        f"\n{report.planned} trials: {report.judged} judged, {report.excluded} excluded from the score, "
        f"{report.pending} pending."
    )
    if report.differences is not None and (lines := list(difference_lines(report.differences))):
        yield "\n#### Differences\n"
        yield from (f"- {code(line.removeprefix('- '), 1000)}" for line in lines)
    if report.notes:
        yield "\n#### Notes\n"
        for note in report.notes:
            yield f"- {code(note.text, 500)}" + (f"; {note.next_step}" if note.next_step else "")
    yield "\n<details><summary>Task</summary>\n"
    yield fenced(_cut(report.prompt, _LONGEST_PROMPT))
    yield "\n</details>\n"


def _trial(trial: TrialSummary, patch: str | None) -> Iterator[str]:
    # `<summary>` is HTML, in which Markdown has no meaning, and mentions have none in <code>.
    name = escape(one_line(reveal(trial.id), _WIDTH))
    yield f"<details><summary><code>{name}</code>: {cells.verdict_text(trial)}</summary>\n"
    size, cost = cells.changes_text(trial.changes), cells.trial_cost_text(trial)
    yield f"Checks {cells.checks_text(trial)}, {cells.time_text(trial.duration_ms)}, {size}, {cost}\n"
    for check in trial.checks:
        detail = f": {code(check.detail)}" if check.detail else ""
        yield f"- {code(check.name)} {check.status}{' (flaky)' if check.is_flaky else ''}{detail}"
    yield from _patch(trial, patch)
    yield "\n</details>\n"


def _patch(trial: TrialSummary, patch: str | None) -> Iterator[str]:
    if trial.patch is None or trial.changes is None or not trial.changes.files:
        return
    if patch is None or len(patch) > MAX_PATCH:
        yield f"\nThe patch is {code(trial.patch)} in the folder of the comparison."
        return
    yield "\n" + fenced(patch, "diff")


def _row(row: Iterable[str]) -> Iterator[str]:
    yield f"| {' | '.join(row)} |"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n... ({len(text) - limit:,} more characters)"
