"""A run that this process has started: its handle, and what is to be remembered of it."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Raw, json

from agent_mux.events import BaseEvent
from agent_mux.plain_json import to_json, to_json_bytes
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.run.state import TERMINAL, RunState
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView, pending_view, present

Remember = Callable[[str, Mapping[str, Any]], None]


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class LiveRun:
    """One run, from its start until nobody needs its handle any more."""

    def __init__(self, row: RunRow, handle: RunHandle, remember: Remember) -> None:
        """`remember`: is told what changed in the row."""
        self.row = row
        self.handle = handle
        self._remember = remember
        self._types: Counter[str] = Counter()
        self._result: RunResult | None = None
        handle.on("*", self._count)
        handle.on_state(self._moved)

    def _count(self, event: BaseEvent) -> None:
        self._types[event.type] += 1

    def _moved(self, state: RunState) -> None:
        if state not in TERMINAL:  # the end is told with its result
            self._change(
                {
                    "state": state,
                    **({"started_at": self.handle.header.started_at} if self.row.started_at is None else {}),
                }
            )

    def _change(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if name != "result":  # it may be long, and the handle has it
                setattr(self.row, name, value)
        self._remember(self.row.run_id, values)

    def ended(self, result: RunResult, journal_bytes: int | None) -> None:
        """It is over: what it came to."""
        self._result = result
        self._change(
            {
                **ended_values(result),
                "state": self.handle.state,
                "ended_at": self.handle.header.started_at + result.duration_ms,
                "event_count": self.handle.event_count,
                "event_types": to_json(self._types),
                "journal_bytes": journal_bytes,
            }
        )

    def view(self, *, whole: bool) -> RunView:
        """As it is now. `whole`: with the request and the result."""
        handle = self.handle
        view = view_of(self.row, whole=whole)
        view.state, view.event_count = handle.state, handle.event_count
        view.model, view.session_id = present(handle.model), present(handle.session_id)
        view.journal = present(handle.journal)
        if whole and self._result is not None:
            view.result = Raw(to_json_bytes(self._result.to_dict()))
        if not self.row.is_over:
            view.is_busy = handle.is_busy
            view.pending = [pending_view(one) for one in handle.interaction.pending]
            view.queue_position = present(handle.queue_position)
        return view


def ended_values(result: RunResult) -> dict[str, Any]:
    """The columns of a run that a result fills."""
    cost = result.cost
    return {
        "exit_reason": result.exit_reason,
        "model": result.model,
        "session_id": result.session_id,
        "turn_count": result.turn_count,
        "duration_ms": result.duration_ms,
        "cost_usd": None if cost is None or cost.source == "unknown" else cost.total_usd,
        "error_code": None if result.error is None else result.error.code,
        "result": to_json(result.to_dict()),
        "journal": result.journal,
    }


def view_of(row: RunRow, *, whole: bool) -> RunView:
    """A run as it is remembered. `whole`: with the request and the result."""
    return RunView(
        run_id=row.run_id,
        agent=row.agent,
        model=present(row.model),
        session_id=present(row.session_id),
        state=row.state,
        exit_reason=present(row.exit_reason),
        created_at=row.created_at,
        started_at=present(row.started_at),
        ended_at=present(row.ended_at),
        duration_ms=present(row.duration_ms),
        cwd=row.cwd,
        owner=row.owner or UNSET,
        project_id=present(row.project_id),
        tags=list(row.tags) or UNSET,
        event_count=present(row.event_count),
        turn_count=present(row.turn_count),
        cost_usd=present(row.cost_usd),
        error_code=present(row.error_code),
        journal=present(row.journal),
        event_types=json.decode(row.event_types) if whole and row.event_types else UNSET,
        request=Raw(row.request.encode()) if whole else UNSET,
        result=Raw(row.result.encode()) if whole and row.result is not None else UNSET,
    )
