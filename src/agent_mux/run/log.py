"""Log entries about the milestones of one run, never its content, and the run's line in the run index.

The line is written after the run has its result, in a thread, so that the run does not wait for it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from agent_mux._util.logs import LOGGER, is_logging_enabled, write_entry
from agent_mux.events import (
    AgentEvent,
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    InputRequiredEvent,
    RetryEvent,
)
from agent_mux.journal.run_index import IndexRecord, append_line, encode_line, new_index_record
from agent_mux.redaction import Redactor
from agent_mux.run.plan import RunPlan
from agent_mux.run.result import RunResult


class RunLog:
    """Log entries of one run; each has its `run_id` and `agent`."""

    def __init__(self, run_id: str, agent: str, redactor: Redactor, warn: Callable[[str], None]) -> None:
        """Bind the entries to a run. `warn` is called once if the configured logger raises."""
        self._bound = {"run_id": run_id, "agent": agent}
        self._redactor = redactor
        self._warn = warn
        self._is_first = True
        self.is_enabled = is_logging_enabled()

    def follow(self, agent: str, redactor: Redactor) -> None:
        """Write the entries of another agent, to which the run fell back."""
        self._bound = {**self._bound, "agent": agent}
        self._redactor = redactor

    def write(self, entry: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """Write one entry, without the fields that are None."""
        if self.is_enabled:
            self._write(level, entry, fields)

    def _write(self, level: int, entry: str, fields: Mapping[str, Any]) -> None:
        cleaned = {name: self._clean(value) for name, value in fields.items() if value is not None}
        try:
            write_entry(level, entry, {**self._bound, **cleaned})
        except Exception as error:  # noqa: BLE001  # a logger of the consumer may raise anything
            self.is_enabled = False
            self._warn(f"the log of this run ends here: {error!r}")

    def warn(self, entry: str, **fields: Any) -> None:
        """Write a warning that needs somebody's attention, also where only warnings are logged."""
        if self.is_enabled or logging.getLogger(LOGGER).isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, entry, fields)

    def _clean(self, value: Any) -> Any:
        return self._redactor.mask_text(value) if isinstance(value, str) else value

    def observe(self, events: Sequence[AgentEvent]) -> None:
        """Write entries for those of these events that are milestones."""
        if not self.is_enabled:
            return
        if self._is_first:
            self._is_first = False
            self.write("first_event", type=events[0].type)
        for event in events:
            describe = _LOGGED_EVENTS.get(type(event))
            if describe is not None:
                entry, fields = describe(event)
                self.write(entry, **fields)

    def write_end(self, result: RunResult) -> None:
        """Write the entry with the end of the run, the last one."""
        self.write(
            "run_ended",
            level=logging.INFO if result.ok else logging.WARNING,
            exit_reason=result.exit_reason,
            exit_code=result.exit_code,
            signal=result.signal,
            error=result.error.code if result.error is not None else None,
            duration_ms=result.duration_ms,
            turns=result.turn_count,
            cost_usd=result.cost.total_usd if result.cost is not None and result.cost.source != "unknown" else None,
        )


_LOGGED_EVENTS: Mapping[type, Callable[[Any], tuple[str, dict[str, Any]]]] = {
    ApprovalRequestEvent: lambda event: (
        "interaction_pending",
        {"kind": "approval", "interaction_id": event.interaction_id, "risk": event.risk_level},
    ),
    InputRequiredEvent: lambda event: (
        "interaction_pending",
        {"kind": "input", "interaction_id": event.interaction_id, "source": event.source},
    ),
    ApprovalGrantedEvent: lambda event: (
        "interaction_answered",
        {"answer": "granted", "interaction_id": event.interaction_id},
    ),
    ApprovalDeniedEvent: lambda event: (
        "interaction_answered",
        {"answer": "denied", "interaction_id": event.interaction_id},
    ),
    RetryEvent: lambda event: (
        "retry",
        {"attempt": event.attempt, "max_attempts": event.max_attempts, "delay_ms": event.delay_ms},
    ),
}


MAX_INDEX_WAIT = 5.0  # seconds; a disk that does not respond must not block the client


async def append_to_index(path: Path, plan: RunPlan, started_at: int, result: RunResult) -> None:
    """Add the run to an index. Never raises: a failure is logged as a warning.

    `started_at` is in milliseconds since the epoch.
    """
    line = plan.redactor.mask(encode_line(_index_record(plan, started_at, result)))
    reason = f"it took more than {MAX_INDEX_WAIT:g} s"
    with anyio.move_on_after(MAX_INDEX_WAIT, shield=True):
        try:
            await to_thread.run_sync(append_line, path, line, abandon_on_cancel=True)
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return
    logging.getLogger(LOGGER).warning("run %s is not in the index %s: %s", plan.run_id, path, reason)


def _index_record(plan: RunPlan, started_at: int, result: RunResult) -> IndexRecord:
    cost = result.cost
    return new_index_record(
        started_at=started_at,
        run_id=result.run_id,
        agent=result.agent,
        model=result.model,
        session_id=result.session_id,
        cost=None if cost is None or cost.source == "unknown" else cost.total_usd,
        tags=plan.header.tags,
        project_id=plan.options.project_id,
    )
