"""Middleware that selects the tools of an agent by name."""

from collections.abc import Collection

from agent_loop.gates import disallowed_tools, refuse_others
from agent_loop.hooks.contexts import BeforeAgent, ToolGate
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.run import TRANSFER_TOOL, USE_SKILL
from agent_loop.tools.builtin.plan import PRESENT_PLAN

KEPT = frozenset({PRESENT_PLAN, "tool_search", USE_SKILL, "skills_read", TRANSFER_TOOL})
"""Tools that are always offered if they exist, unless they are excluded: modes, skills and handoffs add them. The tool
that runs scripts of skills must be named."""


class ToolSelection:
    """Offers only some tools to the model, and blocks calls of all others.

    It must be the last middleware: tools that are registered after it are offered, although their calls are blocked.
    """

    name = "tool-selection"

    def __init__(self, names: Collection[str] | None = None, excluded: Collection[str] = ()) -> None:
        """`names`: the tools that are offered, None for all; `excluded`: those that are not."""
        self._names = None if names is None else frozenset(names) | KEPT
        self._excluded = frozenset(excluded)
        self._offered: frozenset[str] = frozenset()
        """The tools of the latest run that are offered, which the refusal of any other names."""

    def install(self, hooks: Hooks) -> None:
        """Register the selection and its gates."""
        hooks.on("agent:before", self._select)
        self.install_gates(hooks)

    def install_gates(self, hooks: Hooks) -> None:
        """Register the gates only, for a program whose other gates must come after them."""
        if self._excluded:
            disallowed_tools(self._excluded).install(hooks)
        if self._names is not None:
            hooks.on("tool:gate", self._gate)

    def _select(self, context: BeforeAgent) -> None:
        present = {tool.name for tool in context.tools}
        missing = sorted((self._names or frozenset()) - present - self._excluded - KEPT)
        if missing:
            context.notes.append(f"tools that the agent names do not exist: {', '.join(missing)}")
        context.tools = [tool for tool in context.tools if self._is_offered(tool.name)]
        self._offered = frozenset(tool.name for tool in context.tools)

    def _gate(self, context: ToolGate) -> None:
        if self._names is not None:
            refuse_others(context, self._names, named=self._offered)

    def _is_offered(self, name: str) -> bool:
        return name not in self._excluded and (self._names is None or name in self._names)
