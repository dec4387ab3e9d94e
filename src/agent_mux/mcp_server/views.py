"""Runs as the tools return them: bounded in size, without the details that a model does not need."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_mux._util.sanitize import one_line, to_json
from agent_mux.events import AgentEvent, event_to_dict
from agent_mux.mcp_server.delegated_runs import DelegatedRun
from agent_mux.mcp_server.entries import entry_of, truncate
from agent_mux.mcp_server.responses import ErrorInfo, Pending, RunEntry, RunInfo, RunOutcome
from agent_mux.run.handle import RunHandle
from agent_mux.run.interaction import approval_text
from agent_mux.run.result import RunResult
from agent_mux.sdk.interactions import ApprovalDetail, PendingInteraction

MAX_QUESTION = 4000  # characters of an approval request or a question
MAX_DIFF = 12_000  # characters of a diff
MAX_FIELD = 500  # characters
MAX_OPTION = 200  # characters
MAX_PENDING = 10
MAX_DENIED = 10
MAX_OPTIONS = 20
READ_TIMEOUT = 5.0  # seconds for the next event; a run that lost its journal has fewer events than were counted


def run_info(run: DelegatedRun) -> RunInfo:
    """Return the entry of a run in the list of runs."""
    return RunInfo(
        run_id=run.handle.run_id,
        agent=run.handle.agent,
        state=run.handle.state,
        cwd=run.cwd,
        prompt=run.prompt,
        approval_mode=run.approval_mode,
        model=run.handle.model,
        pending=len(run.handle.interaction.pending),
        idle=run.is_idle,
        cost_usd=run.cost_usd,
    )


def pending_of(handle: RunHandle) -> list[Pending]:
    """Return the pending approvals and questions of a run, oldest first, at most `MAX_PENDING`."""
    return [_pending(interaction) for interaction in handle.interaction.pending[:MAX_PENDING]]


def _pending(interaction: PendingInteraction) -> Pending:
    detail = interaction.detail
    if isinstance(detail, ApprovalDetail):
        text, command, diff = interaction.description, detail.command, detail.diff
        if diff is not None and "\n" in text:
            text = detail.action  # the detail of some agents is the diff
        given = None if command or diff or detail.tool_input is None else to_json(detail.tool_input)
        given = None if given is not None and given in text else given
        return Pending(
            interaction_id=interaction.id,
            kind="approval",
            text=truncate(text, MAX_QUESTION),
            tool_name=_short_line(detail.tool_name),
            risk=detail.risk_level,
            command=None if command is None or command in text else truncate(command, MAX_QUESTION),
            diff=None if diff is None else truncate(diff, MAX_DIFF),
            tool_input=None if given is None else truncate(given, MAX_QUESTION),
            cut=max(len(text), len(command or ""), len(given or "")) > MAX_QUESTION or len(diff or "") > MAX_DIFF,
        )
    text = f"{detail.question}\n{detail.context}" if detail.context else detail.question
    return Pending(
        interaction_id=interaction.id,
        kind="question",
        text=truncate(text, MAX_QUESTION),
        options=[truncate(option, MAX_OPTION) for option in detail.options[:MAX_OPTIONS]],
        cut=len(text) > MAX_QUESTION or len(detail.options) > MAX_OPTIONS,
    )


def _short_line(text: str | None) -> str | None:
    return None if text is None else one_line(text, MAX_FIELD)


def outcome_of(result: RunResult, from_char: int, max_chars: int) -> RunOutcome:
    """Return a result with the part of its text that begins at `from_char`.

    Structured output that is longer than `max_chars` characters of JSON is omitted.
    """
    text = result.text
    end = from_char + max_chars
    structured = result.structured_output
    return RunOutcome(
        exit_reason=result.exit_reason,
        stop_reason=result.stop_reason,
        denied=[one_line(approval_text(one.action, one.detail), MAX_FIELD) for one in result.denials[:MAX_DENIED]],
        tool_errors=result.tool_errors,
        failed_on=list(result.failed_on),
        text=text[from_char:end],
        text_length=len(text),
        from_char=from_char,
        next_char=end if end < len(text) else None,
        cost_usd=None if result.cost is None or result.cost.source == "unknown" else result.cost.total_usd,
        duration_ms=result.duration_ms,
        turns=result.turn_count,
        session_id=_short_line(result.session_id),
        error=None if result.error is None else _error_info(result),
        structured_output=structured if structured is None or len(to_json(structured)) <= max_chars else None,
    )


def _error_info(result: RunResult) -> ErrorInfo | None:
    error = result.error
    if error is None:
        return None
    stderr = error.stderr[-2 * MAX_FIELD :]
    return ErrorInfo(code=error.code, message=truncate(error.message, 4 * MAX_FIELD), stderr=stderr or None)


@dataclass(slots=True)
class RunPage:
    """The entries or events of a run in one response, which has a maximum size."""

    chars_left: int
    """The number of characters that may still be added."""
    next: int
    """The number of the first event that is not on the page."""
    entries: list[RunEntry] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False
    """Whether the run has further entries or events now."""

    def reserve(self, size: int) -> bool:
        """Reserve space for an item of `size` characters. Return whether it fits; the first item always does."""
        if size > self.chars_left and (self.entries or self.events):
            return False
        self.chars_left -= size
        return True


async def read_entries(run: DelegatedRun, after: int, max_chars: int) -> RunPage:
    """Return the entries of the events from number `after` on, with at most `max_chars` characters of text."""
    end = run.event_count
    page = RunPage(max_chars, max(after, end))
    async for number, event in _read_events(run, after, end):
        entry = entry_of(event, number, max_chars)
        if entry is None:
            continue
        if not page.reserve(len(entry.text)):
            page.next = number
            break
        page.entries.append(entry)
    page.more = page.next < run.entries_end
    return page


async def read_raw_events(run: DelegatedRun, after: int, max_chars: int) -> RunPage:
    """Return the events from number `after` on, with at most `max_chars` characters of JSON.

    Delta events have no accumulated text. An event that is too long for a page is truncated.
    """
    end = run.event_count
    page = RunPage(max_chars, max(after, end))
    async for number, event in _read_events(run, after, end):
        fields = event_to_dict(event, accumulated=False)
        text = to_json(fields)
        if not page.reserve(len(text)):
            page.next = number
            break
        page.events.append({"n": number, **(fields if len(text) <= max_chars else _truncated(event, text, max_chars))})
    page.more = page.next < run.event_count
    return page


def _truncated(event: AgentEvent, text: str, max_chars: int) -> dict[str, Any]:
    return {"type": event.type, "cut": truncate(text, max_chars)}


async def _read_events(run: DelegatedRun, after: int, end: int) -> AsyncIterator[tuple[int, AgentEvent]]:
    """Yield the events numbered from `after` to before `end`, which have already been published, with their numbers."""
    reader = run.handle.events(after)
    for number in range(after, end):
        event = None
        with anyio.move_on_after(READ_TIMEOUT):
            event = await anext(reader, None)
        if event is None:
            return
        yield number, event
