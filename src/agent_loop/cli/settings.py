"""Settings of a `start` command as model, behavior and limits of an agent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_loop.behavior import DEFAULTS, NO_LIMITS, UNSET, Behavior, ExecutionLimits
from agent_loop.cli.errors import UsageError
from agent_loop.cli.home import (
    MODEL_VARIABLE,
    is_trusted_project,
    project_skills,
    settings_model,
    user_skills,
)
from agent_loop.cli.protocol import StartCommand
from agent_loop.errors import MissingKeyError
from agent_loop.mcp.servers import McpServer
from agent_loop.providers.default_models import default_model, key_variable
from agent_loop.providers.registry import OFFLINE_PROVIDERS, PROVIDER_NAMES
from agent_loop.skills.settings import SkillSettings

Number = TypeVar("Number", int, float)


def model_of(start: StartCommand, environ: Mapping[str, str]) -> str:
    """Return the model of the run: the requested one, else the configured one, else that of the key that is set.

    A model without a provider gets the provider of the default model. Raises `UsageError` if the settings file cannot
    be read, and `MissingKeyError` if no model is named and no key is set.
    """
    if start.model is None:
        return _configured_model(environ) or default_model(environ)
    if ":" in start.model or start.model in PROVIDER_NAMES:
        return start.model
    try:
        vendor, colon, _ = (_configured_model(environ) or default_model(environ)).partition(":")
    except MissingKeyError:
        return start.model
    return f"{vendor}:{start.model}" if colon and vendor not in OFFLINE_PROVIDERS else start.model


def default_model_note(start: StartCommand, environ: Mapping[str, str], model: str) -> list[str]:
    """Return a sentence about a model that nobody named, so that its choice is visible; nothing for a named one."""
    if start.model is not None or _configured_model(environ):
        return []
    return [f"no model is named; using {model}, because {key_variable(model.partition(':')[0], environ)} is set"]


def _configured_model(environ: Mapping[str, str]) -> str | None:
    return environ.get(MODEL_VARIABLE) or settings_model(environ)


TURN_LIMITS = ExecutionLimits(max_turns=200, max_total_tokens=10_000_000, max_duration=7200.0)
"""The limits of one prompt where `start` sets none: bounds for a run that nobody watches, above those of real work."""


def behavior_of(start: StartCommand, preset: Behavior | None = None) -> Behavior:
    """Return the behavior of the agent: settings that `start` does not contain are those of `preset`, or defaults."""
    fields: dict[str, Any] = {
        "thinking": start.thinking_effort,
        "thinking_budget": start.thinking_budget_tokens,
        "temperature": start.temperature,
        "top_p": start.top_p,
        "top_k": start.top_k,
        "max_tokens": start.max_output_tokens,
        "output_schema": start.output_schema,
    }
    return Behavior(**{name: value for name, value in fields.items() if value is not None}).over(
        (preset or Behavior()).over(DEFAULTS)
    )


def limits_of(start: StartCommand, preset: Behavior | None = None) -> ExecutionLimits:
    """Return the limits of the conversation: those of `start`, else of `preset`. The duration limits each turn."""
    own = NO_LIMITS if preset is None or preset.limits is UNSET else preset.limits
    return ExecutionLimits(
        max_turns=_first(start.max_turns, own.max_turns),
        max_total_tokens=_first(start.max_tokens_total, own.max_total_tokens),
        max_duration=_first(start.max_duration, own.max_duration),
        max_cost_usd=_first(start.max_cost_usd, own.max_cost_usd),
    )


def _first(given: Number | None, otherwise: Number | None) -> Number | None:
    return otherwise if given is None else given


def mcp_servers_of(
    start: StartCommand, directory: Path, preset: Sequence[McpServer] = (), stored: Sequence[McpServer] = ()
) -> list[McpServer]:
    """Return the MCP servers of a run. Programs start in `directory`.

    Of equal names, those of `start` take precedence over those of `preset`, and these over `stored` ones.
    """
    named = {server.name: replace(server, cwd=str(directory)) for server in (*stored, *preset)}
    given = [McpServer(cwd=str(directory), **msgspec.structs.asdict(server)) for server in start.mcp_servers]
    return [*(server for name, server in named.items() if all(name != each.name for each in given)), *given]


def skills_of(start: StartCommand, environ: Mapping[str, str], directory: Path) -> SkillSettings:
    """Return the skills of the run. Raises `UsageError` for a directory that does not exist, and broken settings."""
    for path in start.skills:
        if not (directory / path).is_dir():
            raise UsageError(f"{path} is not a directory; name an existing directory of skills")
    project = project_skills(directory)
    is_trusted = bool(project) and (
        start.trust_project or start.trust_project_skills or is_trusted_project(environ, directory)
    )
    return SkillSettings(
        inline=[directory / path for path in reversed(start.skills)],  # of equal names, the last one given counts
        project=project if is_trusted else (),
        user=user_skills(environ),
        trust_project=is_trusted,
        max_active=start.max_active_skills,
        shell_interpolation=start.skill_shell,
    )


def untrusted_skills_note(skills: SkillSettings | None, directory: Path) -> list[str]:
    """Return a sentence about skills of the project that are not used. `skills` is None for an agent without them."""
    unused = () if skills is None or skills.trust_project else project_skills(directory)
    if not unused:
        return []
    names = " and ".join(str(path.relative_to(directory)) for path in unused)
    note = f"the skills in {names} are not used, because the project is not trusted; pass --trust-project "
    return [note + "(trustProject), or name its directory in trustedProjects of settings.json"]


def unsupported_settings(start: StartCommand) -> list[str]:
    """Return a sentence for each setting that the run ignores."""
    notes: list[str] = []
    if start.protocol != 1:
        notes.append(f"protocol {start.protocol} is not supported; using protocol 1")
    if start.session_id is not None and start.fork_session_id is not None:
        notes.append("both sessionId and forkSessionId are given: the session is forked")
    return notes
