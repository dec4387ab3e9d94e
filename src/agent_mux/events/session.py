"""The events of sessions, turns, steps, plugins, skills and agent documents.

See docs/spec/events.md, sections 5, 6, 14 and 15.
"""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, CostRecord, Index


class SessionStartEvent(BaseEvent, frozen=True):
    """The first domain event of a run; emitted exactly once. See docs/spec/events.md, section 5.1."""

    type: ClassVar[Literal["session_start"]] = "session_start"

    session_id: str
    """The agent's own session id, or `transient-<runId>` if the agent has not reported one."""
    resumed: bool
    """Whether the run continues a stored session."""
    forked_from: str | None = None
    """Id of the session from which this one was forked."""


class SessionResumeEvent(BaseEvent, frozen=True):
    """The run continues a stored session; follows a `session_start` with `resumed`.

    See docs/spec/events.md, section 5.2.
    """

    type: ClassVar[Literal["session_resume"]] = "session_resume"

    session_id: str
    """Id of the resumed session."""
    prior_turn_count: Index
    """Number of turns in the session before this run; 0 when unknown."""


class SessionForkEvent(BaseEvent, frozen=True):
    """The session was created as a fork of another session. See docs/spec/events.md, section 5.3."""

    type: ClassVar[Literal["session_fork"]] = "session_fork"

    session_id: str
    """Id of the new session."""
    forked_from: str
    """Id of the source session."""


class SessionCheckpointEvent(BaseEvent, frozen=True):
    """The agent saved a state to which a later run can return. See docs/spec/events.md, section 5.4."""

    type: ClassVar[Literal["session_checkpoint"]] = "session_checkpoint"

    session_id: str
    """Id of the session."""
    checkpoint_id: str
    """The agent's own id of the checkpoint."""


class SessionEndEvent(BaseEvent, frozen=True):
    """The last domain event of a run. See docs/spec/events.md, section 5.5."""

    type: ClassVar[Literal["session_end"]] = "session_end"

    session_id: str
    """Id of the session, as in `session_start`."""
    turn_count: Index
    """Number of turns in this session, those of earlier runs included where known."""
    cost: CostRecord | None = None
    """Cost of all turns of this run; earlier runs are not included."""


class TurnStartEvent(BaseEvent, frozen=True):
    """The agent starts to work on a prompt. See docs/spec/events.md, section 6.1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    turn_index: Index
    """Position of the turn within the run."""


class TurnEndEvent(BaseEvent, frozen=True):
    """The agent finished its work on a prompt. See docs/spec/events.md, section 6.2."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    turn_index: Index
    """Index of the turn, as in `turn_start`."""
    cost: CostRecord | None = None
    """Cost of this turn only."""


class StepStartEvent(BaseEvent, frozen=True):
    """A step starts: one model call and the tool calls that it requests. See docs/spec/events.md, section 6.3."""

    type: ClassVar[Literal["step_start"]] = "step_start"

    turn_index: Index
    """Index of the turn."""
    step_index: Index
    """Position of the step within the turn."""
    step_type: str
    """Kind of the step's first content: `thinking`, `generation` or `tool_use`; adapters may use other values."""


class StepEndEvent(BaseEvent, frozen=True):
    """A step ends. See docs/spec/events.md, section 6.4."""

    type: ClassVar[Literal["step_end"]] = "step_end"

    turn_index: Index
    """Index of the turn."""
    step_index: Index
    """Index of the step, as in `step_start`."""


class PluginLoadedEvent(BaseEvent, frozen=True):
    """The agent loaded a plugin while the session started. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_loaded"]] = "plugin_loaded"

    plugin_id: str
    """Id under which the agent registers the plugin."""
    plugin_name: str
    """Display name of the plugin."""
    version: str
    """Version of the plugin."""


class PluginInvokedEvent(BaseEvent, frozen=True):
    """The agent used a plugin. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_invoked"]] = "plugin_invoked"

    plugin_id: str
    """Id under which the agent registers the plugin."""
    plugin_name: str
    """Display name of the plugin."""


class PluginErrorEvent(BaseEvent, frozen=True):
    """A plugin failed; the run continues. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_error"]] = "plugin_error"

    plugin_id: str
    """Id under which the agent registers the plugin."""
    plugin_name: str
    """Display name of the plugin."""
    error: str
    """Error message of the plugin."""


class SkillLoadedEvent(BaseEvent, frozen=True):
    """A skill became available while the session started. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["skill_loaded"]] = "skill_loaded"

    skill_name: str
    """Name of the skill."""
    source: str
    """Origin of the skill: a path, a package, or `built-in`."""


class SkillInvokedEvent(BaseEvent, frozen=True):
    """The agent used a skill. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["skill_invoked"]] = "skill_invoked"

    skill_name: str
    """Name of the skill."""


class AgentdocReadEvent(BaseEvent, frozen=True):
    """The agent read a document such as AGENTS.md. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["agentdoc_read"]] = "agentdoc_read"

    path: str
    """Path of the document."""
