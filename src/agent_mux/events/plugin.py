"""Plugins events. Source: agent-events spec, section 14."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent


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
