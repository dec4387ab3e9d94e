"""Diagnostics events. Source: agent-events spec, section 22."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent


class DebugEvent(BaseEvent, frozen=True):
    """A note of the mux about its own work. Source: agent-events spec, section 22."""

    type: ClassVar[Literal["debug"]] = "debug"

    level: Literal["verbose", "info", "warn"]
    """Severity."""
    message: str
    """The note."""


class LogEvent(BaseEvent, frozen=True):
    """A line of the agent that belongs to no protocol. Source: agent-events spec, section 22."""

    type: ClassVar[Literal["log"]] = "log"

    source: Literal["stdout", "stderr"]
    """Which stream."""
    line: str
    """The line."""
