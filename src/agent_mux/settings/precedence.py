"""Which of several layers says what a field is. Source: run API, section 1 (option precedence).

Per call over profile over client over project over global: field by field. Scalars and lists replace each other, the
mappings below are merged one level deep, and what is not said (None) overrides nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

MERGED = frozenset({"env", "retry_policy"})
"""Fields whose values are mappings that complete each other."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says."""

    source: str
    """Which place, for people: a file, or who said it."""
    said: Mapping[str, Any]
    """Fields of `RunOptions`; those in MERGED as mappings."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The place of single fields, where it is another."""

    def source_of(self, name: str) -> str:
        """Where a field was said."""
        return self.sources.get(name, self.source)


class Merged(NamedTuple):
    """What the layers say together."""

    said: dict[str, Any]
    sources: dict[str, str]
    """For each field, the strongest layer that said it."""


def merge(layers: Sequence[Layer]) -> Merged:
    """One set of fields out of many. `layers`: the strongest first."""
    said: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.said.items():
            if value is None:
                continue
            if name in MERGED:
                said[name] = {**value, **said.get(name, {})}
            else:
                said.setdefault(name, value)
            sources.setdefault(name, layer.source_of(name))
    return Merged(said, sources)


def deep_merged(over: Mapping[str, Any], under: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects of JSON as one: objects in both are merged, of anything else that in `over` counts."""
    made = dict(under)
    for name, value in over.items():
        if value is None:
            continue
        below = made.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        made[name] = deep_merged(value, below) if both else value  # type: ignore[arg-type]  # both are mappings
    return made


def said_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not as they are by default: what whoever made it has said."""
    return {
        spec.name: getattr(value, spec.name)
        for spec in fields(value)
        if getattr(value, spec.name)
        != (spec.default_factory() if spec.default_factory is not MISSING else spec.default)
    }
