"""How an agent lists its models itself: data and a pure function, part of the contract with adapters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_mux.models.capabilities import ModelCapabilities

__all__ = ["ModelListing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing:
    """A command of the agent that prints the models it offers, and how that is read."""

    argv: tuple[str, ...]
    """Behind the program."""
    parse: Callable[[str], tuple[ModelCapabilities, ...]]
    """Of what it printed. Pure. Raises `ValueError` where it cannot be understood; none: it offers none as it is."""
    reads: tuple[Literal["stdout", "stderr"], ...] = ("stdout",)
    """Where it prints them; both are read, one after the other, where versions differ."""
    is_complete: bool = True
    """The agent takes no others; False: it takes more than it lists."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the inherited environment."""
