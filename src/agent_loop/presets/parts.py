"""Middleware that adds what a preset has to an agent that runs with the settings of another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_loop.hooks.contexts import BeforeAgent
from agent_loop.hooks.registry import Handler, Hooks
from agent_loop.tools.toolset import ToolLike, as_tool


@dataclass(frozen=True, slots=True)
class PresetParts:
    """Middleware that adds the tools and the hooks of a preset to a sub-agent, or to the target of a handoff."""

    tools: Sequence[ToolLike]
    handlers: Mapping[str, Handler | Sequence[Handler]]
    name: str = "preset"

    def install(self, hooks: Hooks) -> None:
        """Register the hooks, and the handler that adds the tools."""
        for hook, handlers in Hooks(self.handlers).handlers.items():
            for handler in handlers:
                hooks.on(hook, handler)
        if self.tools:
            hooks.on("agent:before", self._add_tools)

    def _add_tools(self, context: BeforeAgent) -> None:
        own = {tool.name: tool for tool in map(as_tool, self.tools)}
        context.tools = [*(tool for tool in context.tools if tool.name not in own), *own.values()]
