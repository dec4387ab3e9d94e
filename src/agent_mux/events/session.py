"""Session lifecycle events. Source: agent-events spec, section 5.

Turn and step lifecycle events. Source: agent-events spec, section 6.


Plugins events. Source: agent-events spec, section 14.


Skills and agent documents events. Source: agent-events spec, section 15.
"""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, CostRecord, Index


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


class TurnStartEvent(BaseEvent, frozen=True):
    """The agent takes up a prompt. Source: agent-events spec, section 6.1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    turn_index: Index
    """Position in this run."""


class TurnEndEvent(BaseEvent, frozen=True):
    """The agent hands back. Source: agent-events spec, section 6.2."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    turn_index: Index
    """As in `turn_start`."""
    cost: CostRecord | None = None
    """This turn alone."""


class StepStartEvent(BaseEvent, frozen=True):
    """One model call and the tools it asks for begin. Source: agent-events spec, section 6.3."""

    type: ClassVar[Literal["step_start"]] = "step_start"

    turn_index: Index
    """The turn."""
    step_index: Index
    """Position within the turn."""
    step_type: str
    """What the step did first: `thinking`, `generation`, `tool_use`; agents may add their own."""


class StepEndEvent(BaseEvent, frozen=True):
    """A step ends. Source: agent-events spec, section 6.4."""

    type: ClassVar[Literal["step_end"]] = "step_end"

    turn_index: Index
    """The turn."""
    step_index: Index
    """As in `step_start`."""


class PluginLoadedEvent(BaseEvent, frozen=True):
    """A plugin was loaded while the session started. Source: agent-events spec, section 14.1."""

    type: ClassVar[Literal["plugin_loaded"]] = "plugin_loaded"

    plugin_id: str
    """As registered with the agent."""
    plugin_name: str
    """For people."""
    version: str
    """Its version."""


class PluginInvokedEvent(BaseEvent, frozen=True):
    """A plugin was used. Source: agent-events spec, section 14.1."""

    type: ClassVar[Literal["plugin_invoked"]] = "plugin_invoked"

    plugin_id: str
    """The plugin."""
    plugin_name: str
    """For people."""


class PluginErrorEvent(BaseEvent, frozen=True):
    """A plugin failed; the run goes on. Source: agent-events spec, section 14.1."""

    type: ClassVar[Literal["plugin_error"]] = "plugin_error"

    plugin_id: str
    """The plugin."""
    plugin_name: str
    """For people."""
    error: str
    """What went wrong."""


class SkillLoadedEvent(BaseEvent, frozen=True):
    """A skill became available while the session started. Source: agent-events spec, section 15."""

    type: ClassVar[Literal["skill_loaded"]] = "skill_loaded"

    skill_name: str
    """The skill."""
    source: str
    """A path, a package, or `built-in`."""


class SkillInvokedEvent(BaseEvent, frozen=True):
    """A skill was used. Source: agent-events spec, section 15."""

    type: ClassVar[Literal["skill_invoked"]] = "skill_invoked"

    skill_name: str
    """The skill."""


class AgentdocReadEvent(BaseEvent, frozen=True):
    """An AGENTS.md-like document was read. Source: agent-events spec, section 15."""

    type: ClassVar[Literal["agentdoc_read"]] = "agentdoc_read"

    path: str
    """The document."""
