"""Skills and agent documents events. Source: agent-events spec, section 15."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent


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
