"""What every event has: one run, one agent, time that never goes back. Section 2."""

import re

from agent_mux.contract.breach import Report
from agent_mux.events.base import BaseEvent

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Envelope:
    """The run and the agent that the first event named, and the latest time."""

    def __init__(self) -> None:
        self._first: BaseEvent | None = None
        self._now = 0

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event of any kind."""
        if self._first is None:
            self._first = event
            if not ULID.fullmatch(str(event.run_id)):
                report("2.1", f"runId {event.run_id!r} is no ULID")
        if event.run_id != self._first.run_id:
            report("2.1", f"runId {event.run_id!r} in run {self._first.run_id!r}")
        if event.agent != self._first.agent:
            report("2.1", f"agent {event.agent!r} in a run of {self._first.agent!r}")
        if event.timestamp < self._now:
            report("2.1", f"timestamp {event.timestamp} after {self._now}")
        self._now = max(self._now, event.timestamp)
