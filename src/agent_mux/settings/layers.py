"""Which of several layers says what a field is. Source: run API, section 1 (option precedence).

Per call over profile over client over project over global: field by field. Scalars and lists replace each other, the
mappings below are merged one level deep, and what is not said (None) overrides nothing.


Between `RunOptions` and what was said of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import RetryPolicy, RunOptions
from agent_mux.sdk.policy import read_policy

MERGED_FIELDS = frozenset({"env", "retry_policy"})
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


class MergedLayers(NamedTuple):
    """What the layers say together."""

    said: dict[str, Any]
    sources: dict[str, str]
    """For each field, the strongest layer that said it."""


def merge(layers: Sequence[Layer]) -> MergedLayers:
    """One set of fields out of many. `layers`: the strongest first."""
    said: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.said.items():
            if value is None:
                continue
            if name in MERGED_FIELDS:
                said[name] = {**value, **said.get(name, {})}
            else:
                said.setdefault(name, value)
            sources.setdefault(name, layer.source_of(name))
    return MergedLayers(said, sources)


def deep_merge(over: Mapping[str, Any], under: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects of JSON as one: objects in both are merged, of anything else that in `over` counts."""
    made = dict(under)
    for name, value in over.items():
        if value is None:
            continue
        below = made.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        made[name] = deep_merge(value, below) if both else value  # type: ignore[arg-type]  # both are mappings
    return made


def non_default_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not as they are by default: what whoever made it has said."""
    return {
        spec.name: getattr(value, spec.name)
        for spec in fields(value)
        if getattr(value, spec.name)
        != (spec.default_factory() if spec.default_factory is not MISSING else spec.default)
    }


_POLICY = tuple(RetryPolicy.__dataclass_fields__)


def fields_from_options(options: RunOptions) -> dict[str, Any]:
    """What options that are given whole say: the fields that are not as they are by default, nor an empty agent."""
    return _with_parts({name: value for name, value in non_default_fields(options).items() if name != "agent" or value})


def fields_from_keywords(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What fields that are given one by one say: all that are not None. Raises `ValidationError` for an unknown one."""
    known = RunOptions.__dataclass_fields__
    unknown = [FieldError(name, value, "a field of RunOptions") for name, value in fields.items() if name not in known]
    if unknown:
        raise ValidationError(unknown)
    return _with_parts({name: value for name, value in fields.items() if value is not None})


def options_from_fields(said: Mapping[str, Any]) -> RunOptions:
    """The options that say this. Raises CONFIG_ERROR for a policy that cannot be read."""
    made = dict(said)
    if "retry_policy" in made:
        made["retry_policy"] = RetryPolicy(**made["retry_policy"])
    if isinstance(made.get("policy"), Path):  # files name it; it may have changed since they were read
        made["policy"] = read_policy(made["policy"])
    return RunOptions(**{"agent": "", **made})


def _with_parts(said: dict[str, Any]) -> dict[str, Any]:
    """Fields of which parts can be said, as mappings. Raises `ValidationError` for what is none."""
    parts = {name: _parts(name, said[name]) for name in MERGED_FIELDS if name in said}
    return {**said, **parts}


def _parts(name: str, value: Any) -> Mapping[str, Any]:
    if name != "retry_policy":
        if isinstance(value, Mapping):
            return value
        raise ValidationError([FieldError(name, HIDDEN, "a mapping of names to texts")])
    if isinstance(value, RetryPolicy):
        return non_default_fields(value)
    if isinstance(value, Mapping) and set(value) <= set(_POLICY):
        return value
    raise ValidationError([FieldError(name, value, f"a RetryPolicy, or some of {', '.join(_POLICY)}")])
