"""The agents that may have one conversation: the first one, and those to which it, or they, can hand off."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Protocol

from agent_loop.behavior import Behavior, resolve_behavior
from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError, MessageError
from agent_loop.hooks.registry import Hooks, Middleware
from agent_loop.loop.chain import ActingAgent, behavior_after_handoff
from agent_loop.messages import Message
from agent_loop.messages.validation import validate
from agent_loop.providers import Provider
from agent_loop.providers.registry import provider_named, to_provider

HistoryFilter = Callable[[Sequence[Message]], Sequence[Message]]
"""Returns what the target of a handoff sees of the history before it; each call must keep its result."""
FIRST_DESCRIPTION = "The agent with which the conversation began."


class HandoffTarget(Protocol):
    """What a handoff needs to know about its target. `Preset` has it."""

    @property
    def name(self) -> str | None:
        """The name of the agent."""
        ...

    @property
    def description(self) -> str | None:
        """What the agent is for."""
        ...

    @property
    def model(self) -> str | None:
        """The model as provider:model; None: that of the first agent."""
        ...

    @property
    def fallbacks(self) -> Sequence[str] | None:
        """Models that replace the model once its calls fail."""
        ...

    @property
    def system_prompt(self) -> str | None:
        """Instructions; None: those of the first agent."""
        ...

    @property
    def behavior(self) -> Behavior | None:
        """Options that override those of the run."""
        ...

    @property
    def handoffs(self) -> Sequence[str]:
        """The names of the agents to which it can hand off."""
        ...

    def parts(self) -> Sequence[Middleware]:
        """Return its tools, hooks and restrictions as middleware, which is used for one loop."""
        ...

    def own_skills(self) -> Sequence[str | PathLike[str]] | None:
        """Return the directories of its skills, empty for an agent without skills; None: those of the first agent."""
        ...


@dataclass(frozen=True, slots=True)
class Handoff(Checked):
    """An agent to which the conversation can be handed off."""

    target: HandoffTarget
    """The agent, as a preset."""
    name: str = ""
    """The name by which the model refers to it; by default that of the target."""
    description: str = ""
    """What it is for, for the model; by default that of the target."""
    provider: Provider | str | None = None
    """The model instead of that of the target."""
    history_filter: HistoryFilter | None = None
    """What the target sees of the history before the handoff; None: all of it."""
    find: Callable[[str], "Handoff"] | None = None
    """Returns the agents that the target names in `handoffs`, where the run does not know them already. Raises
    `ConfigurationError` for an unknown name.
    """
    provider_of: Callable[[str], Provider] = provider_named
    """Returns the provider of a model of the target by its name."""

    @property
    def label(self) -> str:
        """The name of the agent."""
        return self.name or self.target.name or ""

    def models(self) -> tuple[Provider, tuple[Provider, ...]] | None:
        """Return the model and its fallbacks; None for those of the first agent. Raises `ConfigurationError`."""
        if self.provider is None and self.target.model is None:
            return None
        own = self.target.model or ""
        model = self.provider_of(own) if self.provider is None else to_provider(self.provider)
        return model, tuple(map(self.provider_of, self.target.fallbacks or ()))


HandoffLike = Handoff | HandoffTarget


class Roster:
    """The agents of a conversation by name, and to which of them each can hand off."""

    def __init__(self, first: str, handoffs: Sequence[HandoffLike]) -> None:
        """Collect the agents that can be reached from the first one.

        Raises `ConfigurationError` for an agent without a name, two agents with one name, and names that do not exist.
        """
        direct = [each if isinstance(each, Handoff) else Handoff(each) for each in handoffs]
        self.first = first
        self._handoffs: dict[str, Handoff] = {}
        self._models: dict[str, tuple[Provider, tuple[Provider, ...]] | None] = {}
        for each in direct:
            self._add(each)
        self._listed: dict[str, tuple[str, ...]] = {first: tuple(each.label for each in direct)}
        waiting = list(direct)
        while waiting:
            one = waiting.pop()
            self._listed[one.label] = tuple(dict.fromkeys(one.target.handoffs))
            waiting += self._found_by(one)

    def _add(self, handoff: Handoff) -> None:
        name = handoff.label
        if not name:
            raise ConfigurationError("the target of a handoff needs a name; set `name` of the preset or the Handoff")
        if name == self.first or name in self._handoffs:
            raise ConfigurationError(f"two agents of the handoffs are named {name!r}; rename one of them")
        self._handoffs[name] = handoff

    def _found_by(self, handoff: Handoff) -> Iterator[Handoff]:
        """Add and yield the agents that only this one names."""
        for name in handoff.target.handoffs:
            if name == handoff.label:
                raise ConfigurationError(f"the agent {name!r} names itself in `handoffs`; name other agents only")
            if name == self.first or name in self._handoffs:
                continue
            if handoff.find is None:
                known = ", ".join(sorted((self.first, *self._handoffs)))
                raise ConfigurationError(
                    f"the agent {handoff.label!r} hands off to {name!r}, which this agent does not know; known: {known}"
                )
            try:
                found = handoff.find(name)
            except ConfigurationError as error:
                raise ConfigurationError(f"handoffs of the agent {handoff.label!r}: {error}") from error
            self._add(found)
            yield found

    def __contains__(self, name: object) -> bool:
        return name == self.first or name in self._handoffs

    def targets_of(self, name: str) -> Mapping[str, str]:
        """Return the agents to which this one can hand off, and what they are for."""
        return {each: self._description(each) for each in self._listed[name]}

    def _description(self, name: str) -> str:
        found = self._handoffs.get(name)
        if found is None:
            return FIRST_DESCRIPTION
        return found.description or found.target.description or ""

    def prepare(self, name: str) -> None:
        """Create the model of an agent, once. Raises `ConfigurationError` if it cannot be used."""
        found = self._handoffs.get(name)
        if found is not None and name not in self._models:
            self._models[name] = found.models()

    def providers(self) -> Iterator[Provider]:
        """Yield the models that were created."""
        for each in self._models.values():
            if each is not None:
                yield from (each[0], *each[1])

    def acting(self, name: str, first: ActingAgent, before: Sequence[Message]) -> ActingAgent:
        """Return the settings of an agent that has the conversation; what it does not set is that of the `first` one.

        `before` is the history before it got the conversation. Raises `ConfigurationError`.
        """
        found = self._handoffs.get(name)
        if found is None:
            return first
        self.prepare(name)
        target, models = found.target, self._models[name]
        provider, fallbacks = (first.provider, first.fallbacks) if models is None else models
        return ActingAgent(
            name=name,
            provider=provider,
            fallbacks=fallbacks,
            system_prompt=first.system_prompt if target.system_prompt is None else target.system_prompt,
            behavior=resolve_behavior(None, behavior_after_handoff(target.behavior, first.behavior)),
            hooks=Hooks(middleware=target.parts()),
            skills=target.own_skills(),
            inherited=None if found.history_filter is None else _filtered(name, found.history_filter, before),
        )


def _filtered(name: str, history_filter: HistoryFilter, before: Sequence[Message]) -> tuple[Message, ...]:
    kept = tuple(history_filter(tuple(before)))
    try:
        validate(kept)
    except MessageError as error:
        raise ConfigurationError(
            f"the history filter of the handoff to {name!r} returned an invalid history: {error}"
        ) from error
    return kept
