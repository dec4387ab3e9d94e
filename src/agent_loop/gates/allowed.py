"""Only some of the tools. Source: zidane, "allowed-tools"."""

from collections.abc import Collection
from dataclasses import dataclass

from agent_loop.hooks import Hooks, Middleware
from agent_loop.hooks.contexts import ToolGate


@dataclass(frozen=True, slots=True)
class _AllowedTools:
    names: frozenset[str]
    name: str = "allowed-tools"

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)

    def _gate(self, context: ToolGate) -> None:
        if context.block or context.result is not None or context.name in self.names:
            return
        allowed = ", ".join(sorted(self.names)) or "none"
        context.block, context.reason = True, f"the tool {context.name} is not allowed here; allowed: {allowed}"


def allowed_tools(names: Collection[str]) -> Middleware:
    """Calls of all other tools are refused."""
    return _AllowedTools(frozenset(names))
