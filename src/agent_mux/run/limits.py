"""The limits of a run and where each was set, for the error of a run that one of them ends."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from agent_mux._util.durations import format_duration
from agent_mux._util.sanitize import replace_surrogates
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.options_json import camel
from agent_mux.settings.resolver import FROM_CALL, FROM_CLIENT

if TYPE_CHECKING:
    from agent_mux.run.plan import RunPlan

_PROFILES = "profiles"
_LIMITS: Mapping[str, Callable[[Any], str]] = {
    "timeout": format_duration,
    "inactivity_timeout": format_duration,
    "max_model_calls": str,
    "max_cost_usd": lambda amount: f"${amount:g}",
    "max_tokens_total": str,
}
"""The options that end a run, and how the value of each is shown."""


def with_limits(plan: "RunPlan", sources: Mapping[str, str]) -> "RunPlan":
    """Return a plan whose stream, and that of each fallback, states its limits. `sources`: of the resolved options."""
    stream = structs.replace(plan.header.stream, limits=describe_limits(plan.options, sources))
    fallbacks = tuple(with_limits(fallback, sources) for fallback in plan.fallbacks)
    return replace(plan, header=structs.replace(plan.header, stream=stream), fallbacks=fallbacks)


def describe_limits(options: RunOptions, sources: Mapping[str, str]) -> dict[str, str]:
    """Return each limit of a run with its value and its source: `60ms (timeout in /home/me/.agent-mux/config.json)`."""
    return {
        name: f"{show(getattr(options, name))} ({_origin(name, sources.get(name, FROM_CALL))})"
        for name, show in _LIMITS.items()
        if getattr(options, name)
    }


def _origin(name: str, source: str) -> str:
    if source == FROM_CALL:
        return f"the run option {name}"
    if source == FROM_CLIENT:
        return f"the client's default {name}"
    if source.startswith("-"):
        return source
    path = Path(replace_surrogates(source))
    if not path.is_absolute():
        return f"{camel(name)} in {source}"
    profile = f"the profile {path.stem!r}, " if path.parent.name == _PROFILES else ""
    return f"{camel(name)} in {profile}{path}"
