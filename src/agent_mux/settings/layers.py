"""Merging the sources of run options by precedence, and converting between `RunOptions` and its explicitly set fields.

Precedence, field by field: call, profile, client, the project's `config.json`, the global one. Scalars and lists of a
stronger layer replace those of a weaker one; mappings in `MERGED_FIELDS` are merged one level deep; None is unset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import DEPRECATED_FIELDS, RetryPolicy, RunOptions
from agent_mux.sdk.plain_options import typed_options

MERGED_FIELDS = frozenset({"env", "retry_policy", "native_options", "thinking_override"})
"""Fields whose mappings are merged key by key across layers."""


class Layer(msgspec.Struct, frozen=True):
    """The option fields that one source sets."""

    source: str
    """The source as shown to people: a path, or `the call`."""
    fields: Mapping[str, Any]
    """Fields of `RunOptions`; those in `MERGED_FIELDS` as mappings."""
    sources: Mapping[str, str] = {}
    """The source of single fields, where it differs from `source`."""
    key_sources: Mapping[str, str] = {}
    """The source of single keys of fields that are mappings, as `field.key`."""

    def source_of(self, name: str, key: str = "") -> str:
        """Return the source of one field, or of one key of a mapping where that differs."""
        source = self.sources.get(name, self.source)
        return self.key_sources.get(f"{name}.{key}", source) if key else source


class MergedLayers(NamedTuple):
    """The result of merging layers."""

    fields: dict[str, Any]
    sources: dict[str, str]
    """For each field, the source of the strongest layer that sets it."""


def merge(layers: Sequence[Layer]) -> MergedLayers:
    """Merge layers, the strongest first."""
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.fields.items():
            if value is None:
                continue
            if name in MERGED_FIELDS:
                merged[name] = {**value, **merged.get(name, {})}
            else:
                merged.setdefault(name, value)
            sources.setdefault(name, layer.source_of(name))
    return MergedLayers(merged, sources)


def deep_merge(over: Mapping[str, Any], under: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two JSON objects recursively. Where both have a value that is not an object, the one in `over` wins."""
    result = dict(under)
    for name, value in over.items():
        if value is None:
            continue
        below = result.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[name] = deep_merge(value, below) if both else value  # type: ignore[arg-type]  # both are mappings
    return result


def non_default_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass instance that differ from their defaults."""
    return {
        spec.name: getattr(value, spec.name)
        for spec in fields(value)
        if getattr(value, spec.name)
        != (spec.default_factory() if spec.default_factory is not MISSING else spec.default)
    }


def fields_from_options(options: RunOptions) -> dict[str, Any]:
    """Return the fields of a complete `RunOptions` that differ from the default, without an empty agent."""
    changed = non_default_fields(options)
    return _with_mappings({name: value for name, value in changed.items() if name != "agent" or value})


def fields_from_keywords(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that are not None. Raises `ValidationError` for an unknown field."""
    known = RunOptions.__dataclass_fields__
    fields = _replace_deprecated(fields)
    unknown = [_unknown_option(name, value) for name, value in fields.items() if name not in known]
    if unknown:
        raise ValidationError(unknown)
    return _with_mappings({name: value for name, value in fields.items() if value is not None})


def _unknown_option(name: str, value: Any) -> FieldError:
    hint = did_you_mean(name, RunOptions.__dataclass_fields__, "docs/reference/python-api.md lists the options")
    return FieldError(name, value, f"an option of RunOptions; {hint}")


def _replace_deprecated(fields: Mapping[str, Any]) -> dict[str, Any]:
    for old, new in DEPRECATED_FIELDS.items():
        if fields.get(old) is not None and fields.get(new) is not None:
            raise ValidationError([FieldError(old, fields[old], f"only one of {new} and its old name {old}")])
    return {DEPRECATED_FIELDS.get(name, name): value for name, value in fields.items()}


def options_from_fields(fields: Mapping[str, Any]) -> RunOptions:
    """Build `RunOptions` from merged fields. Raises CONFIG_ERROR for a policy file that cannot be read."""
    values = dict(fields)
    if "retry_policy" in values:
        values["retry_policy"] = RetryPolicy(**values["retry_policy"])
    if isinstance(values.get("policy"), Path):  # named by a settings file; it may have changed since that was read
        from agent_mux.sdk.policy import read_policy  # noqa: PLC0415  # needed for few runs

        values["policy"] = read_policy(values["policy"])
    return RunOptions(**{"agent": "", **values})


def _with_mappings(values: dict[str, Any]) -> dict[str, Any]:
    """Build structured values from plain data, and convert the values of `MERGED_FIELDS` to mappings.

    Raises `ValidationError` for values of another type.
    """
    typed = typed_options(values)
    for name in MERGED_FIELDS & values.keys():
        if isinstance(typed[name], RetryPolicy):
            # A mapping keeps the fields that it sets to their defaults: they override those of weaker layers.
            given = values[name] if isinstance(values[name], Mapping) else non_default_fields(values[name])
            typed[name] = {part: getattr(typed[name], part) for part in given}
    return typed
