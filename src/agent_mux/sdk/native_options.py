"""The options that reach the agent as they are: `extra_args` on its command line, `native_options` in its settings.

What agent-mux sets itself may not be set a second time, because the agent would silently use one of the two values. The
error names both. See docs/spec/run-api.md, section 2.9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.adapter import Adapter, SpawnArgs

_SHORT_FLAG = 2  # characters: a dash and a letter, to which the value may be attached (`-mMODEL`)


def add_extra_args(adapter: Adapter, spawn: SpawnArgs, extra_args: Sequence[str]) -> SpawnArgs:
    """Return the spawn with further arguments on the agent's command line.

    Raises `ValidationError` for a flag that agent-mux sets itself, or that belongs to another option.
    """
    if not extra_args:
        return spawn
    ours = {name: argument for argument in reversed(spawn.argv[1:]) for name in _flag_names(argument)}
    conflicts = [
        FieldError(f"extra_args[{index}]", argument, f"a flag that agent-mux does not set; {instead}")
        for index, argument in enumerate(extra_args)
        if (instead := _instead_of(adapter, argument, ours))
    ]
    if conflicts:
        raise ValidationError(conflicts)
    at = len(spawn.argv) if spawn.extra_args_at is None else spawn.extra_args_at
    return replace(spawn, argv=(*spawn.argv[:at], *extra_args, *spawn.argv[at:]))


def _instead_of(adapter: Adapter, argument: str, ours: Mapping[str, str]) -> str:
    """Return what an argument conflicts with; empty if there is no conflict."""
    for name in _flag_names(argument):
        if name in adapter.owned_flags:
            return f"{name} of {adapter.agent}: {adapter.owned_flags[name]}"
        if name in ours and name not in adapter.repeatable_flags:
            return f"{name} of {adapter.agent}: agent-mux starts this run with {ours[name]!r}"
    return ""


def _flag_names(argument: str) -> tuple[str, ...]:
    """Return the names that an argument may have as a flag: `-m` and `-mx` of `-mx`; none for a value."""
    name = argument.partition("=")[0]
    if not name.startswith("-") or not name.strip("-"):
        return ()
    is_cluster = not name.startswith("--") and len(name) > _SHORT_FLAG
    return (name, name[:_SHORT_FLAG]) if is_cluster else (name,)


def nested_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return native options as nested objects: `{"a.b": 1}` becomes `{"a": {"b": 1}}`. Keys inside values stay whole.

    Raises `ValidationError` if one key has a value and levels below it.
    """
    result: dict[str, Any] = {}
    for key, value in options.items():
        *levels, last = key.split(".")
        place = result
        for level in levels:
            place = place.setdefault(level, {})
            if not isinstance(place, dict):
                break
        if not isinstance(place, dict) or last in place or "" in (*levels, last):
            allowed = "keys of which none is empty, given twice, or both a value and a level above one"
            raise ValidationError([FieldError(f"native_options.{key}", value, allowed)])
        place[last] = dict(value) if isinstance(value, Mapping) else value
    return result


def merge_native_options(agent: str, ours: Mapping[str, Any], native: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that agent-mux makes for a run, with the native options of the run.

    Args:
        agent: The agent's name, for errors.
        ours: The settings that agent-mux makes, nested as the agent has them.
        native: `RunOptions.native_options`; keys may be dotted.

    Raises:
        ValidationError: A native option is set by agent-mux, too. The error names both.
    """
    conflicts: list[FieldError] = []
    merged = _merge(agent, ours, nested_options(native), "", conflicts)
    if conflicts:
        raise ValidationError(conflicts)
    return merged


def _merge(
    agent: str, ours: Mapping[str, Any], native: Mapping[str, Any], under: str, conflicts: list[FieldError]
) -> dict[str, Any]:
    result = dict(ours)
    for key, value in native.items():
        path, set_by_us = f"{under}{key}", ours.get(key)
        if key not in ours:
            result[key] = value
        elif isinstance(value, Mapping) and isinstance(set_by_us, Mapping):
            result[key] = _merge(agent, set_by_us, value, f"{path}.", conflicts)
        else:
            allowed = f"a setting that agent-mux does not make; for this run it sets {path} of {agent} to {set_by_us!r}"
            conflicts.append(FieldError(f"native_options.{path}", value, allowed))
    return result
