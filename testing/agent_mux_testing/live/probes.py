"""Options whose values are in the agent's own words: for each agent a value, and the effect that it must have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["MARK", "OptionName", "OptionProbe", "has_field", "mentions", "offers"]

MARK = "The elephants of this project are violet."
"""A text that an agent sends to its model only if an option or a file configures it."""

OptionName = Literal["extra_args", "native_options", "thinking_override"]
"""The options whose values are in the agent's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionProbe:
    """A value of such an option, and how a request to the model shows its effect."""

    value: Any
    """The value of the option."""
    is_seen: Callable[[Mapping[str, Any]], bool]
    """Return whether the body of a request shows the effect. Without the option, none does."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options that the run needs."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in the workspace that the value names: path to content."""


def has_field(path: str, value: Any) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that finds a value in a request; dots separate the levels of the path."""

    def is_seen(body: Mapping[str, Any]) -> bool:
        found: Any = body
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return bool(found == value)

    return is_seen


def mentions(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that finds a text anywhere in a request."""
    return lambda body: text in str(body)


def offers(name: str, *, but_not: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that finds a request that offers the model one tool and not another."""

    def is_seen(body: Mapping[str, Any]) -> bool:
        names = {_name_of(tool) for tool in body.get("tools", ())}
        return name in names and but_not not in names

    return is_seen


def _name_of(tool: Mapping[str, Any]) -> Any:
    return tool.get("function", tool).get("name")
