"""The type literals by name, for iteration and exhaustiveness checks. Source: agent-events spec, section 27."""

from enum import StrEnum

from agent_mux.events.union import ALL_EVENTS

AgentEventType = StrEnum("AgentEventType", {event.type.upper(): event.type for event in ALL_EVENTS})
"""`AgentEventType.TEXT_DELTA == "text_delta"`."""
