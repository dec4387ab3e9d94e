"""The functions that carry out the tools for comparisons."""

import anyio

from agent_mux.api.comparisons import TrialSummary
from agent_mux.compare.engine import ComparisonRun
from agent_mux.compare.export.text import text_of
from agent_mux.compare.records import Trial
from agent_mux.compare.report import report_of
from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.delegated_runs import DelegatedRuns
from agent_mux.mcp_server.entries import truncate
from agent_mux.mcp_server.requests import CompareAgents, WatchComparison
from agent_mux.mcp_server.responses import ComparisonProgress, ErrorInfo, TrialInfo
from agent_mux.mcp_server.tool_handlers import PROGRESS_INTERVAL, Progress
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle

MAX_TABLE = 8000  # characters
MAX_NOTE = 500  # characters
TABLE_WIDTH = 100  # columns
POLL_INTERVAL = 0.25  # seconds between two looks at what runs wait for


async def compare_agents(runs: DelegatedRuns, request: CompareAgents, progress: Progress) -> ComparisonProgress:
    """Start a comparison, and wait for its end at most for the requested time."""
    run = await runs.compare(request)
    await _wait(run, request.wait_ms / 1000, progress)
    return await _progress_of(run)


async def watch_comparison(runs: DelegatedRuns, request: WatchComparison, progress: Progress) -> ComparisonProgress:
    """Wait until a comparison is over or one of its runs waits for an answer, at most for the requested time."""
    run = runs.comparisons.get(request.comparison_id)
    if request.stop:
        run.stop()
    await _wait(run, request.wait_ms / 1000, progress)
    return await _progress_of(run)


async def _wait(run: ComparisonRun, limit: float, progress: Progress) -> None:
    start = anyio.current_time()
    reported = start
    while not run.is_over and not any(map(_pending, run.runs.values())):
        now = anyio.current_time()
        if now - start >= limit:
            return
        if now - reported >= PROGRESS_INTERVAL:
            reported = now
            over = sum(trial.outcome is not None for trial in run.comparison.trials)
            await progress(now - start, limit, f"{over} of {len(run.comparison.trials)} trials are over")
        with anyio.move_on_after(min(POLL_INTERVAL, limit)):
            await run.wait()


def _pending(handle: RunHandle) -> int:
    return 0 if handle.state in TERMINAL_STATES else len(handle.interaction.pending)


async def _progress_of(run: ComparisonRun) -> ComparisonProgress:
    comparison, error = run.comparison, None
    if comparison.status != "active":
        try:
            await run.result()
        except AgentMuxError as raised:
            error = ErrorInfo(code=raised.code, message=truncate(raised.message, MAX_NOTE))
    report = report_of(comparison)
    return ComparisonProgress(
        comparison_id=run.id,
        status=comparison.status,
        table=truncate(text_of(report, width=TABLE_WIDTH, color=False), MAX_TABLE),
        trials=[
            _trial_info(run, trial, summary) for trial, summary in zip(comparison.trials, report.trials, strict=True)
        ],
        selected=report.selection.winner,
        note=truncate(report.selection.note, MAX_NOTE),
        error=error,
    )


def _trial_info(run: ComparisonRun, trial: Trial, summary: TrialSummary) -> TrialInfo:
    handle = run.runs.get(trial.id)
    return TrialInfo(
        trial=trial.id,
        run_id=None if trial.last is None else trial.last.run_id,
        state=summary.state,
        verdict=summary.verdict,
        cause=summary.cause,
        checks=f"{summary.checks_passed}/{summary.checks_total}" if summary.checks_total else None,
        patch=None if trial.patch is None else str(run.folder / trial.patch.path),
        pending=0 if handle is None else _pending(handle),
    )
