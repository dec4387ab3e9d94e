"""Which sessions, and where to look for them."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent_mux.sessions.summary import SessionSummary

When = datetime | int
"""Milliseconds since the epoch, or a time with its zone (without one: local time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Conditions that all have to be met. None: whatever it is."""

    agent: str | None = None
    """Whose they are: a name or an alias."""
    since: When | None = None
    """Changed at this time or later."""
    until: When | None = None
    """Changed before this time."""
    model: str | None = None
    """One of its models is this one."""
    tags: tuple[str, ...] = ()
    """It has all of these."""
    cwd: str | None = None
    """It was held in this directory, or below."""
    directory: Path | None = None
    """Look into this copy of the agent's own directory, and nowhere else."""

    def matches(self, summary: SessionSummary) -> bool:
        """This is one of them, as far as the session itself says."""
        return (
            self.has_time(summary.updated_at)
            and (self.model is None or self.model in summary.models)
            and set(self.tags) <= set(summary.tags)
            and (self.cwd is None or _is_below(summary.cwd, self.cwd))
        )

    def has_time(self, at: int) -> bool:
        """A time, in milliseconds since the epoch, that is wanted."""
        return (self.since is None or at >= _milliseconds(self.since)) and (
            self.until is None or at < _milliseconds(self.until)
        )


ALL = SessionFilter()


def _milliseconds(when: When) -> int:
    return when if isinstance(when, int) else round(when.timestamp() * 1000)


def _is_below(cwd: str | None, directory: str) -> bool:
    return cwd is not None and (cwd == directory or cwd.startswith(directory.rstrip("/") + "/"))
