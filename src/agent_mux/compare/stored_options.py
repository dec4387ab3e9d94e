"""Which options of runs a plan can store, and giving a resumed comparison those that it cannot.

Objects are stored as plain data. Functions have a meaning only in the process of the caller, and MCP servers with
variables, headers or a URL can contain secrets: a resumed comparison needs them again.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.plain_options import typed_options

HANDLERS = frozenset({"on_approval_request", "on_input_required"})
"""Options that a resumed comparison may always have: they concern the process that runs it, not the candidates."""

_CURRENT = frozenset(spec.name for spec in fields(RunOptions))
"""The options without their deprecated names."""


class _NotStorableError(Exception):
    """A value is a function or a secret."""


def stored_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return options of runs as a plan stores them, and the names of those that it cannot store.

    `env` is in neither: its names are stored apart.
    """
    stored: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in options.items():
        if name != "env" and value is not None:
            try:
                stored[name] = _plain(_typed(name, value))
            except _NotStorableError:
                left_out.append(name)
    return stored, tuple(sorted(left_out))


def _typed(name: str, value: Any) -> Any:
    """Return the object that plain data stands for, because its class states which fields can be secrets."""
    try:
        return typed_options({name: value})[name] if name in _CURRENT else value
    except ValidationError:
        return value  # reported when the run is planned


def _plain(value: Any) -> Any:  # noqa: PLR0911  # one for each kind of value
    match value:
        case None | str() | bool() | int() | float():
            return value
        case msgspec.Struct():
            return msgspec.to_builtins(value)
        case os.PathLike():
            return os.fspath(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case frozenset() | set():
            return sorted(map(_plain, value))
        case list() | tuple():
            return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        given = {spec: getattr(value, spec.name) for spec in fields(value)}
        if any(item for spec, item in given.items() if not spec.repr):
            raise _NotStorableError
        return {spec.name: _plain(item) for spec, item in given.items() if item is not None and spec.repr}
    raise _NotStorableError


def given_again(
    given: Mapping[str, Any], not_stored: Collection[str], of_candidates: Mapping[str, Collection[str]]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the options of all runs, and by candidate, that a plan does not store.

    Args:
        given: The options by name, or by `CANDIDATE:NAME` for one of a single candidate. A name without a candidate is
            for each that had the option.
        not_stored: The options of all runs that the plan does not store.
        of_candidates: The same by candidate.

    Raises:
        ValidationError: An option is missing, or is one that the plan stores.
    """
    keys = {f"{candidate}:{name}": name for candidate, names in of_candidates.items() for name in names}
    values = {**{key: given[name] for key, name in keys.items() if name in given}, **given}
    missing = sorted({*not_stored, *keys} - values.keys())
    if missing:
        allowed = f"{', '.join(missing)}, which the plan does not store: --set NAME=VALUE, or `options` in Python"
        raise ValidationError([FieldError("options", sorted(given), allowed)])
    known = {*not_stored, *keys, *keys.values(), *HANDLERS}
    unknown = sorted(values.keys() - known)
    if unknown:
        allowed = f"one of: {', '.join(sorted(known))}; the plan stores the others, and all trials have the same"
        raise ValidationError([FieldError(f"options.{name}", "(set)", allowed) for name in unknown])
    single = set(keys.values()) - set(not_stored) - HANDLERS
    of_all = {name: value for name, value in values.items() if name not in keys and name not in single}
    own: dict[str, dict[str, Any]] = {}
    for key, name in keys.items():
        own.setdefault(key.rpartition(":")[0], {})[name] = values[key]
    return of_all, own
