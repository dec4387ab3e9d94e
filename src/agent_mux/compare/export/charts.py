"""Charts of a report as inline SVG. Positions are percentages, so that they fit any width without scaling text."""

from collections.abc import Callable, Mapping

from agent_mux.api.comparisons import CandidateSummary, ComparisonReport
from agent_mux.compare.export import cells
from agent_mux.compare.export.markup import Markup, tag
from agent_mux.compare.export.transcripts import Transcript

MAX_TICKS = 300
"""Tool calls of an attempt that are drawn."""


def charts(report: ComparisonReport) -> Markup:
    """Return the charts: pass rate with interval, cost, time and tokens."""
    return tag(
        "div",
        _rates(report.candidates),
        _bars("Cost", report.candidates, _usd, lambda each: cells.cost_text(each.cost)),
        _bars(
            "Time (median of judged trials)", report.candidates, lambda each: each.median_duration_ms,
            lambda each: cells.time_text(each.median_duration_ms),
        ),
        _bars("Output tokens", report.candidates, lambda each: each.output_tokens.value,
              lambda each: cells.sum_text(each.output_tokens)),
        class_="charts",
    )  # fmt: skip


def timeline(report: ComparisonReport, transcripts: Mapping[str, Transcript]) -> Markup:
    """Return the attempts of all trials on one axis of time, with the tool calls of each trial's last attempt."""
    times = [time for trial in report.trials for each in trial.attempts for time in (each.started_at, each.ended_at)]
    known = [time for time in times if time is not None]
    if not known:
        return Markup("")
    begin, span = min(known), max(max(known) - min(known), 1)
    rows: list[Markup] = []
    for trial in report.trials:
        marks: list[Markup] = []
        for attempt in trial.attempts:
            end = max(known) if attempt.ended_at is None else attempt.ended_at
            is_last = attempt is trial.attempts[-1]
            tone = cells.trial_tone(trial) if is_last else "plain"
            x, width = 100 * (attempt.started_at - begin) / span, 100 * (end - attempt.started_at) / span
            title = tag("title", f"attempt {attempt.number}: {cells.time_text(end - attempt.started_at)}")
            marks.append(_rect(x, max(width, 0.3), 4, 12, tone, title))
            if is_last and trial.id in transcripts:
                marks += _ticks(transcripts[trial.id], attempt.started_at - begin, end - begin, span)
        rows.append(_row(trial.id, _svg(marks, f"Attempts of {trial.id}"), cells.time_text(trial.duration_ms)))
    note = tag("p", f"0 to {cells.time_text(span)}; dots are tool calls", class_="meta")
    return tag("div", tag("h2", "Timeline"), tag("div", *rows, note, class_="panel"))


def _ticks(transcript: Transcript, begin: int, end: int, span: int) -> list[Markup]:
    calls = [entry for entry in transcript.entries if entry.is_tool][:MAX_TICKS]
    return [
        tag("circle", tag("title", entry.title), cx=f"{100 * (begin + entry.offset_ms) / span:.2f}%", cy=10, r=2.5,
            class_="mark")
        for entry in calls
        if begin + entry.offset_ms <= end
    ]  # fmt: skip


def _rates(candidates: list[CandidateSummary]) -> Markup:
    rows = []
    for each in candidates:
        marks = [_rect(0, 100, 9, 2, "track")]
        if each.interval is not None and each.pass_rate is not None:
            low, high = 100 * each.interval.low, 100 * each.interval.high
            tone = cells.candidate_tone(each)
            marks.append(_rect(low, high - low, 7, 6, tone, tag("title", cells.interval_text(each))))
            marks.append(tag("circle", cx=f"{100 * each.pass_rate:.2f}%", cy=10, r=6, class_=tone))
        text = f"{cells.rate_text(each)} ({cells.interval_text(each)})" if each.judged else "not judged"
        rows.append(_row(each.name, _svg(marks, f"{each.name}: {text}"), text))
    return tag("div", tag("h3", "Pass rate with 95 % interval"), *rows, class_="panel")


def _bars(
    title: str,
    candidates: list[CandidateSummary],
    value: Callable[[CandidateSummary], float | None],
    text: Callable[[CandidateSummary], str],
) -> Markup:
    most = max((found for each in candidates if (found := value(each)) is not None), default=0) or 1
    rows = []
    for each in candidates:
        found = value(each)
        marks = [] if found is None else [_rect(0, 100 * found / most, 4, 12, "fill")]
        rows.append(_row(each.name, _svg(marks, f"{each.name}: {text(each)}"), text(each)))
    return tag("div", tag("h3", title), *rows, class_="panel")


def _usd(candidate: CandidateSummary) -> float | None:
    known = [usd for usd in (candidate.cost.native_usd, candidate.cost.computed_usd) if usd is not None]
    return sum(known) if known else None


def _row(name: str, drawing: Markup, text: str) -> Markup:
    return tag("div", tag("span", name, title=name), drawing, tag("span", text), class_="bar")


def _svg(marks: list[Markup], label: str) -> Markup:
    return tag("svg", *marks, height=20, role="img", aria_label=label)


def _rect(x: float, width: float, y: int, height: int, tone: str, *parts: Markup) -> Markup:
    return tag("rect", *parts, x=f"{x:.2f}%", y=y, width=f"{width:.2f}%", height=height, rx=2, class_=tone)
