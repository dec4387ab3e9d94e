"""`amux models`: the agents' models, their limits and prices."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.installation_options import (
    AgentName,
    Cwd,
    DryRun,
    Scope,
    ScopeName,
    homes_for,
    scope_value,
    show_change,
)
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.terminal import one_line, progress

if TYPE_CHECKING:
    from agent_mux.cli.command_output import ServiceEndpoint
    from agent_mux.models.registry import Models
    from agent_mux.sdk.models import ModelCapabilities, Price


_MODEL_COLUMNS = ("agent", "model", "provider", "context", "output", "$ in", "$ out", "$ cached", "can")
models = typer.Typer(help="Models of the agents, and their prices.", no_args_is_help=True)

AnyAgent = Annotated[
    str | None,
    typer.Argument(metavar="[AGENT]", help="Agent (default: all).", show_default=False),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model name or alias.", show_default=False)]


@models.command("list")
@with_common_flags
@with_service_flags
def list_models(context: typer.Context, agent: AnyAgent = None, config_dir: ConfigDir = None) -> int:
    """List the models of one agent or of all agents. Prices are US dollars per million tokens."""
    from agent_mux.api.models import models_json
    from agent_mux.cli.command_output import print_rows

    library = _model_registry(config_dir, context.obj.service)
    if context.obj.json:
        print_rows(models_json(library, agent), (), context.obj)
        return 0
    found = library.catalog() if agent is None else {_agent_name(library, agent): library.list(agent)}
    rows = [_model_row(model, name) for name, offered in found.items() for model in offered]
    columns = _MODEL_COLUMNS if agent is None else _MODEL_COLUMNS[1:]
    print_rows(
        rows, columns, context.obj, empty="no models known; the agent accepts the names that its own command accepts"
    )
    if agent is not None and rows and context.obj.service is None:
        _print_age(library, agent)
    return 0


@models.command("show")
@with_common_flags
@with_service_flags
def get_model(context: typer.Context, agent: AgentName, model: Model, config_dir: ConfigDir = None) -> int:
    """Show everything known about a model. For an unknown name, the error lists similar ones."""
    from agent_mux.api.models import matched_model_json
    from agent_mux.cli.command_output import json_envelope
    from agent_mux.cli.terminal import one_line

    library = _model_registry(config_dir, context.obj.service)
    if context.obj.json:
        sys.stdout.write(json_envelope(matched_model_json(library, agent, model)) + "\n")
        return 0
    found, verdict = library.get(agent, model), library.validate(agent, model)
    sys.stdout.writelines(_model_lines(found))
    if verdict.status == "deprecated":
        sys.stderr.write(f"warning: {one_line(verdict.sentence(agent), 500)}\n")
    return 0


@models.command("refresh")
@with_common_flags
def refresh(context: typer.Context, agent: AnyAgent = None, config_dir: ConfigDir = None) -> int:
    """Ask an agent for its models and store the list (default: every agent that supports it).

    Agents list the models that their credentials allow. Lists of other agents are kept.
    """
    library = _model_registry(config_dir)
    if agent is not None:
        with progress(f"reading models of {agent}"):
            offered = library.refresh(agent)
        _print_refreshed([{"agent": _agent_name(library, agent), "models": len(offered)}], context.obj)
        return 0
    return _refresh_all(library, context.obj)


@models.command("current")
@with_common_flags
def current(context: typer.Context, agent: AgentName, cwd: Cwd = None, config_dir: ConfigDir = None) -> int:
    """Show the model of runs that name none, and where it is set."""
    from agent_mux.cli.command_output import json_envelope
    from agent_mux.cli.terminal import one_line

    library = _model_registry(config_dir)
    name, chosen = _agent_name(library, agent), library.current(agent, project=homes_for(cwd).paths().project)
    if context.obj.json:
        answer = {"agent": name, "model": chosen.model, "source": chosen.source}
        source_path = {} if chosen.path is None else {"path": chosen.path}
        sys.stdout.write(json_envelope({**answer, **source_path}) + "\n")
    elif chosen.model is None:
        sys.stderr.write(f"no model is set for {name}: the agent chooses, and reports the model when it starts\n")
    else:
        sys.stdout.write(f"{one_line(chosen.model, 300)}\n")
        sys.stderr.write(f"set by: {chosen.source}{f' ({one_line(chosen.path, 1000)})' if chosen.path else ''}\n")
    return 0


@models.command("set")
@with_common_flags
def set_model(
    context: typer.Context,
    agent: AgentName,
    model: Model,
    scope: Scope = ScopeName.everywhere,
    cwd: Cwd = None,
    dry_run: DryRun = False,
    config_dir: ConfigDir = None,
) -> int:
    """Set an agent's default model in its own configuration.

    The name is written unchanged; an unknown name only causes a warning.
    """
    from agent_mux.agents.config.client import AgentConfigs
    from agent_mux.cli.terminal import one_line

    library = _model_registry(config_dir)
    name = _agent_name(library, agent)
    change = AgentConfigs(homes_for(cwd)).set_model(name, model, scope=scope_value(scope), dry_run=dry_run)
    doubt = library.validate(name, model).sentence(name, is_passed_on=True) if library.list(name) else ""
    if doubt:
        sys.stderr.write(f"warning: {one_line(doubt, 500)}\n")
    show_change(change, context.obj, dry_run=dry_run)
    return 0


def _model_registry(config_dir: Path | None, service: "ServiceEndpoint | None" = None) -> "Models":
    if service is not None:
        return cast("Models", service.client().models)  # the same read interface
    from agent_mux.models.registry import Models

    return Models(directory=config_dir)


def _agent_name(library: "Models", agent: str) -> str:
    """Return the registered name of an agent; `agent` may be an alias."""
    return library.adapters.get(agent).agent


def _print_age(library: "Models", agent: str) -> None:
    at = library.last_updated(agent)
    if at is None:
        return
    listed = library.is_listed_by_agent(agent)
    whose = "as listed by the agent on" if listed else "as known on"
    hint = "" if listed or not library.can_refresh(agent) else f"; `amux models refresh {agent}` updates the list"
    sys.stderr.write(f"{whose} {at:%Y-%m-%d}{hint}\n")


def _refresh_all(library: "Models", invocation: Invocation) -> int:
    from agent_mux.cli import exit_codes
    from agent_mux.errors import AgentMuxError

    outcomes: list[dict[str, Any]] = []
    for adapter in library.adapters:
        if adapter.model_listing is None:
            continue
        try:
            with progress(f"reading models of {adapter.agent}"):
                offered = library.refresh(adapter.agent)
            outcomes.append({"agent": adapter.agent, "models": len(offered)})
        except AgentMuxError as error:  # continue with the other agents
            outcomes.append({"agent": adapter.agent, "code": error.code, "problem": error.message})
    _print_refreshed(outcomes, invocation)
    return exit_codes.OK if any("models" in outcome for outcome in outcomes) else exit_codes.GENERAL


def _print_refreshed(outcomes: list[dict[str, Any]], invocation: Invocation) -> None:
    from agent_mux.cli.command_output import print_rows

    print_rows(outcomes, ("agent", "models", "problem"), invocation, empty="no agent can list its models")


_FEATURES = {
    "deprecated": "deprecated",
    "thinking": "thinking",
    "image_input": "images",
    "pdf_input": "pdf",
    "structured_output": "schema",
}
_LONGEST_VALUE = 300  # characters of a value
_TOKEN_UNITS = ((1_000_000, "M"), (1_000, "k"))


def _model_row(model: "ModelCapabilities", agent: str) -> dict[str, Any]:
    """Return the table row of a model."""
    price = model.price
    return {
        "agent": agent,
        "model": one_line(model.model_id, _LONGEST_VALUE),
        "provider": one_line(model.provider, _LONGEST_VALUE),
        "context": format_tokens(model.context_window),
        "output": format_tokens(model.max_output_tokens),
        "$ in": "" if price is None else f"{price.input:g}",
        "$ out": "" if price is None else f"{price.output:g}",
        "$ cached": "" if price is None or price.cached_input is None else f"{price.cached_input:g}",
        "can": ", ".join(name for field, name in _FEATURES.items() if getattr(model, field)),
    }


def _model_lines(model: "ModelCapabilities") -> Iterator[str]:
    """Format everything known about a model, one property per line."""
    known = dict(_model_facts(model))
    width = max(map(len, known))
    for name, value in known.items():
        yield f"{name:<{width}}  {one_line(value, _LONGEST_VALUE)}\n"


def format_tokens(tokens: int | None) -> str:
    """Format a number of tokens briefly: 200k, 1.05M."""
    if tokens is None:
        return ""
    return next((f"{tokens / unit:.3g}{letter}" for unit, letter in _TOKEN_UNITS if tokens >= unit), str(tokens))


def _model_facts(model: "ModelCapabilities") -> Iterator[tuple[str, str]]:
    facts = {
        "model": model.model_id,
        "name": model.display_name,
        "aliases": ", ".join(model.alias),
        "provider": model.provider,
        "protocol": model.protocol,
        "context window": model.context_window,
        "max output": model.max_output_tokens,
        "max thinking": model.max_thinking_tokens,
        "can": ", ".join(name for field, name in _FEATURES.items() if getattr(model, field)),
        "thinking efforts": ", ".join(model.thinking_efforts),
        "price": None if model.price is None else _format_price(model.price),
        "deprecated since": model.deprecated_since,
        "retires on": model.retires_on,
        "successor": model.successor,
        "as of": model.as_of,
    }
    yield from ((name, str(value)) for name, value in facts.items() if value)


def _format_price(price: "Price") -> str:
    parts = [f"${price.input:g} in", f"${price.output:g} out"]
    parts += [] if price.cached_input is None else [f"${price.cached_input:g} cached"]
    parts += [] if price.cache_creation is None else [f"${price.cache_creation:g} cache write"]
    short = f"{', '.join(parts)} per million tokens"
    if price.beyond is None or price.threshold is None:
        return short
    long = f"${price.beyond.input:g} in, ${price.beyond.output:g} out"
    return f"{short}; above {format_tokens(price.threshold)} input tokens: {long}"
