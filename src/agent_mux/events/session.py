"""The events of sessions, turns, steps, plugins, skills and agent documents.

See docs/spec/events.md, sections 5, 6, 14 and 15.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent_mux.events.base import BaseEvent, CostRecord, Index, StopReason


class SessionStartEvent(BaseEvent, frozen=True):
    """The first domain event of a run; emitted exactly once. See docs/spec/events.md, section 5.1."""

    type: ClassVar[Literal["session_start"]] = "session_start"

    session_id: Annotated[
        str, Meta(description=("The agent's own session id, or `transient-<runId>` if the agent has not reported one."))
    ]
    resumed: Annotated[bool, Meta(description="Whether the run continues a stored session.")]
    forked_from: Annotated[str | None, Meta(description="Id of the session from which this one was forked.")] = None
    agent_version: Annotated[
        str | None, Meta(description="Version of the agent's program; absent while it is unknown.")
    ] = None


class SessionResumeEvent(BaseEvent, frozen=True):
    """The run continues a stored session; follows a `session_start` with `resumed`.

    See docs/spec/events.md, section 5.2.
    """

    type: ClassVar[Literal["session_resume"]] = "session_resume"

    session_id: Annotated[str, Meta(description="Id of the resumed session.")]
    prior_turn_count: Annotated[
        Index, Meta(description="Number of turns in the session before this run; 0 when unknown.")
    ]


class SessionForkEvent(BaseEvent, frozen=True):
    """The session was created as a fork of another session. See docs/spec/events.md, section 5.3."""

    type: ClassVar[Literal["session_fork"]] = "session_fork"

    session_id: Annotated[str, Meta(description="Id of the new session.")]
    forked_from: Annotated[str, Meta(description="Id of the source session.")]


class SessionCheckpointEvent(BaseEvent, frozen=True):
    """The agent saved a state to which a later run can return. See docs/spec/events.md, section 5.4."""

    type: ClassVar[Literal["session_checkpoint"]] = "session_checkpoint"

    session_id: Annotated[str, Meta(description="Id of the session.")]
    checkpoint_id: Annotated[str, Meta(description="The agent's own id of the checkpoint.")]


class SessionEndEvent(BaseEvent, frozen=True):
    """The last domain event of a run. See docs/spec/events.md, section 5.5."""

    type: ClassVar[Literal["session_end"]] = "session_end"

    session_id: Annotated[str, Meta(description="Id of the session, as in `session_start`.")]
    turn_count: Annotated[
        Index, Meta(description="Number of turns in this session, those of earlier runs included where known.")
    ]
    cost: Annotated[
        CostRecord | None, Meta(description="Cost of all turns of this run; earlier runs are not included.")
    ] = None


class TurnStartEvent(BaseEvent, frozen=True):
    """The agent starts to work on a prompt. See docs/spec/events.md, section 6.1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    turn_index: Annotated[Index, Meta(description="Position of the turn within the run.")]


class TurnEndEvent(BaseEvent, frozen=True):
    """The agent finished its work on a prompt. See docs/spec/events.md, section 6.2."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    turn_index: Annotated[Index, Meta(description="Index of the turn, as in `turn_start`.")]
    cost: Annotated[CostRecord | None, Meta(description="Cost of this turn only.")] = None
    stop_reason: Annotated[
        StopReason | None, Meta(description="Why the last answer of the model ended; absent when unknown.")
    ] = None


class StepStartEvent(BaseEvent, frozen=True):
    """A step starts: one model call and the tool calls that it requests. See docs/spec/events.md, section 6.3."""

    type: ClassVar[Literal["step_start"]] = "step_start"

    turn_index: Annotated[Index, Meta(description="Index of the turn.")]
    step_index: Annotated[Index, Meta(description="Position of the step within the turn.")]
    step_type: Annotated[
        str,
        Meta(
            description=(
                "Kind of the step's first content: `thinking`, `generation` or `tool_use`; adapters may use other"
                " values."
            )
        ),
    ]


class StepEndEvent(BaseEvent, frozen=True):
    """A step ends. See docs/spec/events.md, section 6.4."""

    type: ClassVar[Literal["step_end"]] = "step_end"

    turn_index: Annotated[Index, Meta(description="Index of the turn.")]
    step_index: Annotated[Index, Meta(description="Index of the step, as in `step_start`.")]


class PluginLoadedEvent(BaseEvent, frozen=True):
    """The agent loaded a plugin while the session started. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_loaded"]] = "plugin_loaded"

    plugin_id: Annotated[str, Meta(description="Id under which the agent registers the plugin.")]
    plugin_name: Annotated[str, Meta(description="Display name of the plugin.")]
    version: Annotated[str, Meta(description="Version of the plugin.")]


class PluginInvokedEvent(BaseEvent, frozen=True):
    """The agent used a plugin. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_invoked"]] = "plugin_invoked"

    plugin_id: Annotated[str, Meta(description="Id under which the agent registers the plugin.")]
    plugin_name: Annotated[str, Meta(description="Display name of the plugin.")]


class PluginErrorEvent(BaseEvent, frozen=True):
    """A plugin failed; the run continues. See docs/spec/events.md, section 14.1."""

    type: ClassVar[Literal["plugin_error"]] = "plugin_error"

    plugin_id: Annotated[str, Meta(description="Id under which the agent registers the plugin.")]
    plugin_name: Annotated[str, Meta(description="Display name of the plugin.")]
    error: Annotated[str, Meta(description="Error message of the plugin.")]


class SkillLoadedEvent(BaseEvent, frozen=True):
    """A skill became available while the session started. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["skill_loaded"]] = "skill_loaded"

    skill_name: Annotated[str, Meta(description="Name of the skill.")]
    source: Annotated[str, Meta(description="Origin of the skill: a path, a package, or `built-in`.")]


class SkillInvokedEvent(BaseEvent, frozen=True):
    """The agent used a skill. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["skill_invoked"]] = "skill_invoked"

    skill_name: Annotated[str, Meta(description="Name of the skill.")]


class AgentdocReadEvent(BaseEvent, frozen=True):
    """The agent read a document such as AGENTS.md. See docs/spec/events.md, section 15."""

    type: ClassVar[Literal["agentdoc_read"]] = "agentdoc_read"

    path: Annotated[str, Meta(description="Path of the document.")]
