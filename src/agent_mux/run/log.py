"""Log entries of one run: its milestones, never its content."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_mux._util.logs import _is_heard, _logger
from agent_mux.events import (
    AgentEvent,
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    InputRequiredEvent,
    RetryEvent,
)
from agent_mux.redaction import Redactor
from agent_mux.run.result import RunResult


class RunLog:
    """Tells of one run. Every entry has its `run_id` and `agent`."""

    def __init__(self, run_id: str, agent: str, redactor: Redactor, warn: Callable[[str], None]) -> None:
        """`warn` is told, once, when the logger that was configured raises."""
        self._bound = {"run_id": run_id, "agent": agent}
        self._redactor = redactor
        self._warn = warn
        self._is_first = True
        self.is_heard = _is_heard()

    def tell(self, entry: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """One entry. Fields that are None are left out."""
        if not self.is_heard:
            return
        said = {name: self._clean(value) for name, value in fields.items() if value is not None}
        try:
            _logger().log(level, entry, **self._bound, **said)
        except Exception as error:  # noqa: BLE001  # a logger of the consumer's may raise anything
            self.is_heard = False
            self._warn(f"the log of this run ends here: {error!r}")

    def _clean(self, value: Any) -> Any:
        return self._redactor.mask_text(value) if isinstance(value, str) else value

    def see(self, events: Sequence[AgentEvent]) -> None:
        """Tell what is worth telling of these."""
        if not self.is_heard:
            return
        if self._is_first:
            self._is_first = False
            self.tell("first_event", type=events[0].type)
        for event in events:
            describe = _WORTH_TELLING.get(type(event))
            if describe is not None:
                entry, fields = describe(event)
                self.tell(entry, **fields)

    def ended(self, result: RunResult) -> None:
        """The last entry."""
        self.tell(
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


_WORTH_TELLING: Mapping[type, Callable[[Any], tuple[str, dict[str, Any]]]] = {
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
