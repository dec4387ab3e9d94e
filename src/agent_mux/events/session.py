"""Session lifecycle events. Source: agent-events spec, section 5."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, Index
from agent_mux.events.cost import CostRecord


class SessionStartEvent(BaseEvent, frozen=True):
    """Once per run, before any other domain event. Source: agent-events spec, section 5.1."""

    type: ClassVar[Literal["session_start"]] = "session_start"

    session_id: str
    """The agent's own session id; `transient-...` when it never said one."""
    resumed: bool
    """The run continues an existing session."""
    forked_from: str | None = None
    """The session this one was forked from."""


class SessionResumeEvent(BaseEvent, frozen=True):
    """A session goes on; only after a `session_start` with `resumed`. Source: agent-events spec, section 5.2."""

    type: ClassVar[Literal["session_resume"]] = "session_resume"

    session_id: str
    """The resumed session."""
    prior_turn_count: Index
    """Turns in the session before this run's first."""


class SessionForkEvent(BaseEvent, frozen=True):
    """The session was made by forking another. Source: agent-events spec, section 5.3."""

    type: ClassVar[Literal["session_fork"]] = "session_fork"

    session_id: str
    """The new session."""
    forked_from: str
    """The source session."""


class SessionCheckpointEvent(BaseEvent, frozen=True):
    """The agent saved a point that a later run can go back to. Source: agent-events spec, section 5.4."""

    type: ClassVar[Literal["session_checkpoint"]] = "session_checkpoint"

    session_id: str
    """The session."""
    checkpoint_id: str
    """The agent's own id of the checkpoint."""


class SessionEndEvent(BaseEvent, frozen=True):
    """The last domain event of a run. Source: agent-events spec, section 5.5."""

    type: ClassVar[Literal["session_end"]] = "session_end"

    session_id: str
    """The session that ended, as in `session_start`."""
    turn_count: Index
    """Turns completed in this session, earlier runs included where known."""
    cost: CostRecord | None = None
    """All turns of this run together, earlier runs not included."""
