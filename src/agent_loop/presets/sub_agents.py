"""Presets as sub-agents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_loop.hooks.registry import Middleware
from agent_loop.presets.preset import Preset
from agent_loop.providers import Provider
from agent_loop.providers.registry import provider_named
from agent_loop.subagents.runner import LoopRunner
from agent_loop.subagents.task import SubAgentReport, SubAgentTask

if TYPE_CHECKING:
    from agent_loop.handoffs import HandoffLike

ProviderOf = Callable[[str], Provider]
"""Returns the provider of a model by its name. Raises `ConfigurationError` if it cannot be used."""


def named_provider(name: str) -> Provider:
    """Return the provider of a model, with the environment of this process. Raises `ConfigurationError`."""
    return provider_named(name)


@dataclass(frozen=True, slots=True)
class PresetRunner:
    """Runs a sub-agent as a preset describes it. What the preset does not set is inherited from the parent's run.

    The parent's gates decide about its calls. Its MCP servers, aliases and input filters are not used: a sub-agent has
    the MCP tools of its parent.
    """

    preset: Preset
    middleware: Callable[[], Sequence[Middleware]] = tuple
    """Returns the middleware of one sub-agent besides that of the preset."""
    provider_of: ProviderOf = named_provider
    handoffs_of: "Callable[[Preset], Sequence[HandoffLike]]" = lambda _: ()
    """Returns the agents to which the sub-agent can hand off, which continue its task. Raises `ConfigurationError`."""

    async def __call__(self, task: SubAgentTask) -> SubAgentReport:
        """Run the task to its end. Raises `ConfigurationError` for a model that cannot be used, and `SessionError`."""
        preset = self.preset
        model = None if preset.model is None else self.provider_of(preset.model)
        runner = LoopRunner(
            provider=model,
            fallbacks=() if model is None else tuple(map(self.provider_of, preset.fallbacks or ())),
            system_prompt=self._system_prompt(task),
            behavior=preset.behavior,
            middleware=self._all_middleware,
            skills=preset.own_skills(),
            handoffs=self.handoffs_of(preset),
        )
        return await runner(task)

    def _system_prompt(self, task: SubAgentTask) -> str | None:
        own = self.preset.system_prompt
        if own is None or self.preset.prompt_mode == "replace":
            return own
        return f"{task.parent.system}\n\n{own}".strip()

    def _all_middleware(self) -> Sequence[Middleware]:
        shared = self.preset.allowed_middleware(self.middleware())
        return [*shared, *self.preset.parts()]
