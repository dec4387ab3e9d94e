"""Runs as the tools show them: bounded, without what a model does not need."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_mux._util.sanitize import one_line, to_json
from agent_mux.events import AgentEvent, event_to_dict
from agent_mux.mcp_server.answers import Entry, ErrorInfo, Outcome, Pending, RunInfo
from agent_mux.mcp_server.delegations import Delegation
from agent_mux.mcp_server.entries import cut, entry_of
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.sdk.interactions import ApprovalDetail, PendingInteraction

LONGEST_QUESTION = 4000  # characters of what is to be decided
LONGEST_FIELD = 500
LONGEST_OPTION = 200
MOST_PENDING = 10
MOST_OPTIONS = 20
READ_WITHIN = 5.0  # seconds for the next event; only a run that lost its journal tells fewer than were counted


def run_info(one: Delegation) -> RunInfo:
    """One line of the list of runs."""
    return RunInfo(
        run_id=one.run.run_id,
        agent=one.run.agent,
        state=one.run.state,
        cwd=one.cwd,
        prompt=one.prompt,
        approval_mode=one.approval_mode,
        model=one.run.model,
        pending=len(one.run.interaction.pending),
        idle=one.is_idle,
        cost_usd=one.cost_usd,
    )


def pending_of(run: RunHandle) -> list[Pending]:
    """What it waits for, in the order it asked."""
    return [_pending(asked) for asked in run.interaction.pending[:MOST_PENDING]]


def _pending(asked: PendingInteraction) -> Pending:
    detail = asked.detail
    if isinstance(detail, ApprovalDetail):
        text, command = asked.description, detail.command
        return Pending(
            interaction_id=asked.id,
            kind="approval",
            text=cut(text, LONGEST_QUESTION),
            tool_name=_short(detail.tool_name),
            risk=detail.risk_level,
            command=None if command is None or command in text else cut(command, LONGEST_QUESTION),
            cut=max(len(text), len(command or "")) > LONGEST_QUESTION,
        )
    text = f"{detail.question}\n{detail.context}" if detail.context else detail.question
    return Pending(
        interaction_id=asked.id,
        kind="question",
        text=cut(text, LONGEST_QUESTION),
        options=[cut(option, LONGEST_OPTION) for option in detail.options[:MOST_OPTIONS]],
        cut=len(text) > LONGEST_QUESTION or len(detail.options) > MOST_OPTIONS,
    )


def _short(text: str | None) -> str | None:
    return None if text is None else one_line(text, LONGEST_FIELD)


def outcome_of(result: RunResult, from_char: int, longest: int) -> Outcome:
    """How it ended, with that part of its text."""
    text = result.text
    end = from_char + longest
    structured = result.structured_output
    return Outcome(
        exit_reason=result.exit_reason,
        text=text[from_char:end],
        text_length=len(text),
        from_char=from_char,
        next_char=end if end < len(text) else None,
        cost_usd=None if result.cost is None or result.cost.source == "unknown" else result.cost.total_usd,
        duration_ms=result.duration_ms,
        turns=result.turn_count,
        session_id=_short(result.session_id),
        error=None if result.error is None else _error(result),
        structured_output=structured if structured is None or len(to_json(structured)) <= longest else None,
    )


def _error(result: RunResult) -> ErrorInfo | None:
    error = result.error
    if error is None:
        return None
    stderr = error.stderr[-2 * LONGEST_FIELD :]
    return ErrorInfo(code=error.code, message=cut(error.message, 4 * LONGEST_FIELD), stderr=stderr or None)


@dataclass(slots=True)
class Page:
    """What is shown of a run in one answer."""

    room: int
    """Characters that are left."""
    next: int
    """The number of the first event that is not on it."""
    entries: list[Entry] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False

    def takes(self, size: int) -> bool:
        """There is room for so many characters; for the first there always is."""
        if size > self.room and (self.entries or self.events):
            return False
        self.room -= size
        return True


async def entries_of(one: Delegation, after: int, longest: int) -> Page:
    """The entries of the events from a number on, in at most so many characters."""
    end = one.count
    page = Page(longest, max(after, end))
    async for number, event in _events(one, after, end):
        entry = entry_of(event, number, longest)
        if entry is None:
            continue
        if not page.takes(len(entry.text)):
            page.next = number
            break
        page.entries.append(entry)
    page.more = page.next < one.told
    return page


async def raw_events_of(one: Delegation, after: int, longest: int) -> Page:
    """The events themselves, without the texts so far of their deltas, in at most so many characters."""
    end = one.count
    page = Page(longest, max(after, end))
    async for number, event in _events(one, after, end):
        plain = event_to_dict(event, accumulated=False)
        text = to_json(plain)
        if not page.takes(len(text)):
            page.next = number
            break
        page.events.append({"n": number, **(plain if len(text) <= longest else _beginning(event, text, longest))})
    page.more = page.next < one.count
    return page


def _beginning(event: AgentEvent, text: str, longest: int) -> dict[str, Any]:
    return {"type": event.type, "cut": cut(text, longest)}


async def _events(one: Delegation, after: int, end: int) -> AsyncIterator[tuple[int, AgentEvent]]:
    """Those from `after` to before `end`, which have happened, with their numbers."""
    reader = one.run.events(after)
    for number in range(after, end):
        event = None
        with anyio.move_on_after(READ_WITHIN):
            event = await anext(reader, None)
        if event is None:
            return
        yield number, event
