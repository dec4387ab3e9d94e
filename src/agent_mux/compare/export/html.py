"""A comparison as one HTML file: without network access or code from elsewhere, usable from `file://`.

A content security policy permits exactly the style and the script of the page, by their hashes, so that text of an
agent that became an element would still load and run nothing. The size is bounded: transcripts and patches are cut, and
the page states how much is missing and where the complete text is.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from agent_mux.api.comparisons import ComparisonReport, TrialSummary
from agent_mux.compare.differences import stored_file
from agent_mux.compare.export import cells
from agent_mux.compare.export.charts import charts, timeline
from agent_mux.compare.export.markup import Markup, join, tag
from agent_mux.compare.export.sentences import difference_lines, selection_text
from agent_mux.compare.export.transcripts import EventReader, Transcript, cut, read_transcript
from agent_mux.compare.records import Comparison, Trial

MAX_PATCH = 200_000
"""Bytes of a patch that are shown."""
MAX_TRIAL_TEXT = 24_000_000
"""Characters of all trials; those after it are listed without transcript and patch."""
MAX_RANKED = 100
"""Trials of the ranking that are listed, and as many that cannot win."""
_LONGEST_PROMPT = 20_000
_MARKS = {"+": "a", "-": "d", "@": "h"}
_HEAD = (
    "candidate", "result", "passed", "95 %", "changes", "time", "cost", "tokens in", "tokens out", "model calls",
    "tool calls", "failed", "denied", "model",
)  # fmt: skip
_TEXT_COLUMNS = ("candidate", "result", "model")


def html_of(report: ComparisonReport, comparison: Comparison, folder: Path, read_events: EventReader) -> str:
    """Return the page of a comparison.

    Args:
        report: The report, with its differences.
        comparison: The records from which it was made.
        folder: The folder of the comparison, with patches and journals.
        read_events: Derives the events of a journal.
    """
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    records = {trial.id: trial for trial in comparison.trials}
    transcripts = {trial.id: _transcripts(trial, folder, read_events) for trial in comparison.trials}
    body = [
        *_header(report), _candidates(report), tag("h2", "Charts"), charts(report),
        timeline(report, {name: found[-1][1] for name, found in transcripts.items() if found}),
        *_selection(report), *_differences(report), *_notes(report), *_trials(report, records, folder, transcripts),
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"{tag('title', f'Comparison {report.id}')}<style>{style}</style></head>"
        f"<body>{join(body)}<script>{script}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _header(report: ComparisonReport) -> Iterator[Markup]:
    tone = {"passed": "good", "failed": "bad"}.get(report.gate.status, "warning")
    words = report.gate.status.replace("_", " ")
    yield tag("h1", "Comparison ", tag("span", words, class_=f"badge {tone}"))
    yield tag("p", report.gate.reason)
    yield tag("pre", _shortened(report.prompt, _LONGEST_PROMPT), class_="prompt")
    base = f" · base {report.base_commit[:12]}" if report.base_commit else ""
    yield tag(
        "p",
        f"{report.planned} trials: {report.judged} judged, {report.excluded} excluded from the score, "
        f"{report.pending} pending · {report.id}{base} · seed {report.seed} · agent-mux {report.version}",
        class_="meta",
    )  # fmt: skip


def _candidates(report: ComparisonReport) -> Markup:
    rows = []
    for each in report.candidates:
        usd = [amount for amount in (each.cost.native_usd, each.cost.computed_usd) if amount is not None]
        sizes = [trial.changes for trial in cells.trials_of(report, each) if trial.changes is not None]
        sums = (
            each.input_tokens, each.output_tokens, each.model_calls, each.tool_calls, each.tool_errors, each.denials,
        )  # fmt: skip
        lines = sum(size.added + size.removed for size in sizes)
        numbers = [
            (cells.rate_text(each), each.pass_rate),
            (cells.interval_text(each), None if each.interval is None else each.interval.low),
            (cells.candidate_changes(cells.trials_of(report, each)), lines),
            (cells.time_text(each.median_duration_ms), each.median_duration_ms),
            (cells.cost_text(each.cost), sum(usd) if usd else None),
            *((cells.sum_text(total), total.value) for total in sums),
        ]
        result = tag("td", tag("span", cells.outcome_text(each), class_=cells.candidate_tone(each)))
        figures = (tag("td", text, class_="n", data_value="" if value is None else value) for text, value in numbers)
        model = tag("td", each.model or cells.NOTHING)
        rows.append(tag("tr", tag("th", each.name, scope="row"), result, *figures, model))
    head = [
        tag("th", tag("button", name, type="button"), scope="col", class_=None if name in _TEXT_COLUMNS else "n")
        for name in _HEAD
    ]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows))
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Candidates")


def _selection(report: ComparisonReport) -> Iterator[Markup]:
    """Yield the selected trial, the ranking with the value of each trial, and why the others cannot win."""
    selection = report.selection
    yield tag("h2", "Selection")
    yield tag("p", selection_text(selection))
    if report.judge:
        yield tag("p", report.judge, class_="dim")
    if selection.ranking:
        ranked = ((name, selection.reasons.get(name, "")) for name in selection.ranking[:MAX_RANKED])
        yield tag("ol", *(tag("li", name, tag("span", f": {reason}", class_="dim")) for name, reason in ranked))
    if selection.excluded:
        yield tag("p", "Not eligible:", class_="dim")
        left_out = list(selection.excluded.items())[:MAX_RANKED]
        yield tag("ul", *(tag("li", name, tag("span", f": {reason}", class_="dim")) for name, reason in left_out))


def _differences(report: ComparisonReport) -> Iterator[Markup]:
    lines = [] if report.differences is None else list(difference_lines(report.differences))
    if lines:
        yield tag("h2", "Differences")
        yield tag("ul", *(tag("li", line.removeprefix("- ")) for line in lines))


def _notes(report: ComparisonReport) -> Iterator[Markup]:
    if report.notes:
        yield tag("h2", "Notes")
        steps = ((note.text, note.next_step) for note in report.notes)
        yield tag(
            "ul", *(tag("li", text, tag("span", f"; {step}" if step else "", class_="dim")) for text, step in steps)
        )


def _trials(
    report: ComparisonReport,
    records: dict[str, Trial],
    folder: Path,
    transcripts: dict[str, list[tuple[str, Transcript]]],
) -> Iterator[Markup]:
    verdicts = dict.fromkeys(trial.verdict or trial.state for trial in report.trials)
    options = [tag("option", "all verdicts", value=""), *(tag("option", verdict) for verdict in verdicts)]
    yield tag("h2", "Trials")
    yield tag(
        "div", Markup('<input id="filter" type="search" placeholder="Filter trials" aria-label="Filter trials">'),
        tag("select", *options, id="verdict", aria_label="Verdict"),
        tag("span", id="shown", class_="meta", role="status"), class_="tools",
    )  # fmt: skip
    size = 0
    for trial in report.trials:
        parts = [*_facts(trial, records[trial.id])]
        details = [*_patch(trial, folder), *_transcript(transcripts[trial.id])]
        if size + sum(map(len, details)) > MAX_TRIAL_TEXT:
            details = [tag("p", f"Omitted, because the page is full; complete in {folder}/trials", class_="dim")]
        size += sum(map(len, details))
        figures = " · ".join([
            f"checks {cells.checks_text(trial)}", cells.changes_text(trial.changes), cells.time_text(trial.duration_ms),
            cells.trial_cost_text(trial),
        ])  # fmt: skip
        tone = cells.trial_tone(trial)
        yield tag(
            "details",
            tag("summary", tag("b", trial.id), tag("span", cells.verdict_text(trial), class_=f"badge {tone}"),
                tag("span", figures, class_="dim")),
            *parts, *details, class_="trial", data_verdict=trial.verdict or trial.state,
        )  # fmt: skip


def _facts(trial: TrialSummary, record: Trial) -> Iterator[Markup]:
    figures = (
        ("exit reason", trial.exit_reason), ("detail", trial.detail), ("model", trial.model),
        ("agent version", trial.agent_version), ("attempts", len(trial.attempts)),
        ("changed protected files", ", ".join(trial.tampered)),
        ("accessed", ", ".join(f"{each.path} ({each.tool}: {each.detail})" for each in trial.accesses)),
        ("isolated", {True: "yes", False: "no", None: ""}[trial.is_isolated]),
        ("workspace", trial.workspace),
    )  # fmt: skip
    yield tag("ul", *(tag("li", f"{name}: {value}") for name, value in figures if value))
    if trial.text:
        yield tag("h3", "Last message")
        yield tag("pre", trial.text)
    if record.checks:
        yield tag("h3", "Checks")
    for check in record.checks:
        tone = "good" if check.status == "pass" else "bad"
        flaky = " (flaky)" if check.is_flaky else ""
        detail = f" {check.detail}" if check.detail else ""
        yield tag("p", tag("span", check.status, class_=f"badge {tone}"), f" {check.name}{flaky}{detail}")
        if check.output:
            yield tag("pre", cut(check.output))


def _patch(trial: TrialSummary, folder: Path) -> Iterator[Markup]:
    if trial.patch is None or trial.changes is None or not trial.changes.files:
        return
    path = stored_file(folder, trial.patch)
    yield tag("h3", "Patch")
    if path is None:
        yield tag("p", f"The file {trial.patch} is missing.", class_="bad")
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        text = file.read(MAX_PATCH).decode("utf-8", "replace")
    yield tag("pre", *_colored(text.splitlines()))
    if size > MAX_PATCH:
        yield tag("p", f"{size - MAX_PATCH:,} of {size:,} bytes are not shown; complete in {path}", class_="dim")


def _colored(lines: Iterable[str]) -> Iterator[Markup]:
    for line in lines:
        kind = "" if line.startswith(("+++ ", "--- ")) else _MARKS.get(line[:1], "")
        yield tag("span", line, class_=kind) if kind else join([line, "\n"])


def _transcripts(trial: Trial, folder: Path, read_events: EventReader) -> list[tuple[str, Transcript]]:
    """Return the transcripts of the attempts with their titles; the last one is that of the last attempt."""
    found = []
    for attempt in trial.attempts:
        path = None if attempt.journal is None else stored_file(folder, attempt.journal)
        if path is not None:
            title = f"Transcript of attempt {attempt.number}: {path}"
            found.append((title, read_transcript(path, read_events)))
    return found


def _transcript(transcripts: list[tuple[str, Transcript]]) -> Iterator[Markup]:
    for title, transcript in transcripts:
        entries: list[Markup] = []
        for number, entry in enumerate(transcript.entries):
            if transcript.omitted and number == transcript.omitted_after:
                entries.append(tag("p", f"{transcript.omitted:,} entries are not shown here", class_="dim"))
            tone = {"failed": "bad", "denied": "bad", "succeeded": "good"}.get(entry.state, "dim")
            state = [" ", tag("span", entry.state, class_=tone)] if entry.state else []
            head = tag(
                "div",
                tag("span", cells.time_text(entry.offset_ms), class_="dim"),
                " ",
                tag("code", entry.title),
                *state,
            )
            entries.append(tag("div", head, *([tag("pre", entry.text)] if entry.text else []), class_="entry"))
        if transcript.problem:
            entries.append(tag("p", f"The journal cannot be read further: {transcript.problem}", class_="bad"))
        yield tag("details", tag("summary", title), *entries)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n... {len(text) - limit:,} more characters"
