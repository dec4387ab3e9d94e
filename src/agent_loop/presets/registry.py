"""A registry of agents: presets as templates, agents of users made of them, and changes of their hooks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from agent_loop.errors import ConfigurationError
from agent_loop.presets.builtin import BUILT_IN
from agent_loop.presets.preset import Ambient, HandlerMap, Preset, compose_presets
from agent_loop.presets.sub_agents import PresetRunner, ProviderOf, named_provider
from agent_loop.subagents.tool import SubAgentKind

if TYPE_CHECKING:
    from agent_loop.agent import Agent
    from agent_loop.handoffs import Handoff
    from agent_loop.hooks.registry import Middleware
    from agent_loop.providers import Provider

DESCRIBED = frozenset({"skills", "memory", "todos", "plan"})
"""Middleware that other fields of a preset, or the program, add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOverrides:
    """Changes of the hooks and the middleware of a preset, for one agent made of it."""

    remove: Collection[str] = ()
    """Names of hooks whose handlers in the preset are dropped, and of middleware that is left out."""
    hooks: HandlerMap = field(default_factory=dict)
    """Handlers that are added, after those of the preset that remain."""
    middleware: "Sequence[Middleware]" = ()
    """Middleware that is added, or replaces that of the same name."""

    def apply(self, preset: Preset) -> Preset:
        """Return the preset with these changes. Raises `ConfigurationError` for names that the preset does not have."""
        names = {each.name for each in preset.middleware} | DESCRIBED
        unknown = sorted(set(self.remove) - names - set(preset.hooks))
        if unknown:
            there = ", ".join(sorted({*preset.hooks, *names}))
            raise ConfigurationError(f"{preset.label} has no hook or middleware {', '.join(unknown)}; it has {there}")
        kept = replace(
            preset,
            hooks={name: handlers for name, handlers in preset.hooks.items() if name not in self.remove},
            middleware=[each for each in preset.middleware if each.name not in self.remove],
            without=[*preset.without, *(name for name in self.remove if name in DESCRIBED)],
        )
        return compose_presets(kept, Preset(hooks=self.hooks, middleware=self.middleware))


NO_OVERRIDES = HookOverrides()
Completed = Callable[[Preset], Preset]
"""Returns a preset with what the program adds to it."""


def _unchanged(preset: Preset) -> Preset:
    return preset


class AgentRegistry:
    """Presets by name, and the agents that were made of them for users."""

    def __init__(self, presets: Iterable[Preset] = BUILT_IN) -> None:
        """Register presets. Raises `ConfigurationError` for one without a name, and for a name that occurs twice."""
        self._presets: dict[str, Preset] = {}
        self._instances: dict[tuple[str, str], Agent] = {}
        for preset in presets:
            self.add(preset)

    def add(self, preset: Preset, *, replaces: bool = False) -> None:
        """Register a preset. Raises `ConfigurationError` if it has no name, or a registered one without `replaces`."""
        if preset.name is None:
            raise ConfigurationError("a preset needs a name to be registered")
        if preset.name in self._presets and not replaces:
            raise ConfigurationError(f"{preset.label} is registered already; pass replaces=True to replace it")
        self._presets[preset.name] = preset

    def get(self, name: str) -> Preset:
        """Return the preset of this name. Raises `ConfigurationError`, with the names that exist."""
        preset = self._presets.get(name)
        if preset is None:
            raise ConfigurationError(f"no agent is named {name!r}; use one of {', '.join(sorted(self._presets))}")
        return preset

    def __iter__(self) -> Iterator[Preset]:
        return iter(self._presets.values())

    def create(
        self,
        name: str,
        provider: "Provider | str | None" = None,
        *,
        overrides: HookOverrides = NO_OVERRIDES,
        **given: "Unpack[Ambient]",
    ) -> "Agent":
        """Return a new agent of this preset, as `Preset.create`, which can hand off to the agents that it names.

        Raises `ConfigurationError`.
        """
        preset = overrides.apply(self.get(name))
        if preset.handoffs:
            given.setdefault("handoffs", self.handoffs(preset))
        return preset.create(provider, **given)

    def handoffs(
        self, preset: Preset, *, provider_of: ProviderOf = named_provider, completed: Completed = _unchanged
    ) -> "Sequence[Handoff]":
        """Return the agents to which a preset names handoffs, for `Agent(handoffs=)`; those find theirs here as well.

        `provider_of` returns the provider of a model by its name; `completed` returns a preset with what the program
        adds to it. Raises `ConfigurationError` for a name that does not exist.
        """
        if not preset.handoffs:
            return ()
        from agent_loop.handoffs import Handoff  # noqa: PLC0415  # most agents have no handoffs

        def find(name: str) -> Handoff:
            return Handoff(completed(self.get(name)), find=find, provider_of=provider_of)

        try:
            return [find(name) for name in dict.fromkeys(preset.handoffs)]
        except ConfigurationError as error:
            raise ConfigurationError(f"handoffs of {preset.label}: {error}") from error

    def instance(
        self,
        name: str,
        user: str,
        provider: "Provider | str | None" = None,
        *,
        overrides: HookOverrides = NO_OVERRIDES,
        **given: "Unpack[Ambient]",
    ) -> "Agent":
        """Return the agent of this preset that belongs to `user`: the first call creates it, later ones return it.

        The other arguments count for the first call only; `discard` ends that agent's registration.
        """
        found = self._instances.get((name, user))
        if found is None:
            found = self._instances[name, user] = self.create(name, provider, overrides=overrides, **given)
        return found

    def discard(self, name: str, user: str) -> None:
        """Forget the agent of a user, so that the next `instance` creates another one."""
        self._instances.pop((name, user), None)

    def sub_agents(
        self,
        *,
        middleware: "Callable[[], Sequence[Middleware]]" = tuple,
        provider_of: ProviderOf = named_provider,
        completed: Completed = _unchanged,
    ) -> Mapping[str, SubAgentKind]:
        """Return the presets that have a description as kinds for `SubAgentTool(kinds=)`, without the built-in ones.

        `middleware` returns that of one sub-agent besides that of its preset; `provider_of` returns the provider of a
        model by its name; `completed` returns the target of a handoff with what the program adds to it.
        """
        find = partial(self.handoffs, provider_of=provider_of, completed=completed)
        return {
            str(preset.name): SubAgentKind(preset.description, PresetRunner(preset, middleware, provider_of, find))
            for preset in self
            if preset.description and preset not in BUILT_IN
        }
