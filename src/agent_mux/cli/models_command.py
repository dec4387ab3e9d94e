"""`amux models`: which models the agents offer, how large they are, and what they cost."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.elsewhere import can_ask_a_service
from agent_mux.cli.home_options import AgentName, Cwd, DryRun, Scope, ScopeName, homes_for, scope_of, show_change
from agent_mux.cli.json_output import Invocation
from agent_mux.cli.options import ConfigDir, agent_names
from agent_mux.cli.progress import progress

if TYPE_CHECKING:
    from agent_mux.cli.server import Service
    from agent_mux.models.registry import Models

_COLUMNS = ("agent", "model", "provider", "context", "output", "$ in", "$ out", "$ cached", "can")
models = typer.Typer(help="The models that agents offer, and their prices.", no_args_is_help=True)

AnyAgent = Annotated[
    str | None,
    typer.Argument(
        metavar="[AGENT]", help="Whose; default: of all agents.", show_default=False, autocompletion=agent_names
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Its name, or one that means it.", show_default=False)]


@models.command("list")
@with_common_flags
@can_ask_a_service
def list_models(context: typer.Context, agent: AnyAgent = None, config_dir: ConfigDir = None) -> int:
    """Show the models of an agent, or of all agents. Prices are US dollars for a million tokens."""
    from agent_mux.cli.model_views import row
    from agent_mux.cli.tables import print_rows
    from agent_mux.shapes.models import models_json

    library = _library(config_dir, context.obj.service)
    if context.obj.json:
        print_rows(models_json(library, agent), (), context.obj)
        return 0
    found = library.catalog() if agent is None else {_name(library, agent): library.list(agent)}
    rows = [row(model, name) for name, offered in found.items() for model in offered]
    columns = _COLUMNS if agent is None else _COLUMNS[1:]
    print_rows(rows, columns, context.obj, empty="no models are known; the agent takes what its command takes")
    if agent is not None and rows and context.obj.service is None:
        _say_since_when(library, agent)
    return 0


@models.command("get")
@with_common_flags
@can_ask_a_service
def get_model(context: typer.Context, agent: AgentName, model: Model, config_dir: ConfigDir = None) -> int:
    """Show all that is known of a model. One that is not known is an error that names those that are near."""
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.model_views import lines
    from agent_mux.cli.terminal import one_line
    from agent_mux.shapes.models import judged_model_json

    library = _library(config_dir, context.obj.service)
    if context.obj.json:
        sys.stdout.write(envelope(judged_model_json(library, agent, model)) + "\n")
        return 0
    found, verdict = library.get(agent, model), library.validate(agent, model)
    sys.stdout.writelines(lines(found))
    if verdict.status == "deprecated":
        sys.stderr.write(f"warning: {one_line(verdict.sentence(agent), 500)}\n")
    return 0


@models.command("refresh")
@with_common_flags
def refresh(context: typer.Context, agent: AnyAgent = None, config_dir: ConfigDir = None) -> int:
    """Ask an agent which models it offers, and keep what it says; without one, all agents that can be asked.

    An agent lists what it has keys for. What cannot be asked stays as it was.
    """
    library = _library(config_dir)
    if agent is not None:
        with progress(f"{agent} lists its models"):
            offered = library.refresh(agent)
        _print_outcomes([{"agent": _name(library, agent), "models": len(offered)}], context.obj)
        return 0
    return _refresh_all(library, context.obj)


@models.command("current")
@with_common_flags
def current(context: typer.Context, agent: AgentName, cwd: Cwd = None, config_dir: ConfigDir = None) -> int:
    """Show the model that a run would use which names none, and who says so."""
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.terminal import one_line

    library = _library(config_dir)
    name, chosen = _name(library, agent), library.current(agent, project=homes_for(cwd).place().project)
    if context.obj.json:
        answer = {"agent": name, "model": chosen.model, "source": chosen.source}
        said = {} if chosen.path is None else {"path": chosen.path}
        sys.stdout.write(envelope({**answer, **said}) + "\n")
    elif chosen.model is None:
        sys.stderr.write(f"no model is set for {name}: it chooses for itself, and tells when it starts\n")
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
    """Let an agent use a model from now on: in its own configuration, for every run of it that names none.

    The name is written as it is given; one that is not known is only warned of.
    """
    from agent_mux.cli.terminal import one_line
    from agent_mux.config.client import AgentConfigs

    library = _library(config_dir)
    name = _name(library, agent)
    change = AgentConfigs(homes_for(cwd)).set_model(name, model, scope=scope_of(scope), dry_run=dry_run)
    doubt = library.validate(name, model).sentence(name, is_passed_on=True) if library.list(name) else ""
    if doubt:
        sys.stderr.write(f"warning: {one_line(doubt, 500)}\n")
    show_change(change, context.obj, dry_run=dry_run)
    return 0


def _library(config_dir: Path | None, service: "Service | None" = None) -> "Models":
    if service is not None:
        return cast("Models", service.client().models)  # the same, for those who read
    from agent_mux.models.registry import Models

    return Models(directory=config_dir)


def _name(library: "Models", agent: str) -> str:
    """The registered name of an agent that may have been given by an alias."""
    return library.adapters.get(agent).agent


def _say_since_when(library: "Models", agent: str) -> None:
    at = library.last_updated(agent)
    if at is None:
        return
    listed = library.is_listed_by_agent(agent)
    whose = "as the agent listed them on" if listed else "as known on"
    hint = "" if listed or not library.can_refresh(agent) else f"; `amux models refresh {agent}` asks the agent itself"
    sys.stderr.write(f"{whose} {at:%Y-%m-%d}{hint}\n")


def _refresh_all(library: "Models", invocation: Invocation) -> int:
    from agent_mux.cli import exit_codes
    from agent_mux.errors import AgentMuxError

    outcomes: list[dict[str, Any]] = []
    for adapter in library.adapters:
        if adapter.model_listing is None:
            continue
        try:
            with progress(f"{adapter.agent} lists its models"):
                offered = library.refresh(adapter.agent)
            outcomes.append({"agent": adapter.agent, "models": len(offered)})
        except AgentMuxError as error:  # the others can be asked all the same
            outcomes.append({"agent": adapter.agent, "code": error.code, "problem": error.message})
    _print_outcomes(outcomes, invocation)
    return exit_codes.OK if any("models" in outcome for outcome in outcomes) else exit_codes.GENERAL


def _print_outcomes(outcomes: list[dict[str, Any]], invocation: Invocation) -> None:
    from agent_mux.cli.tables import print_rows

    print_rows(outcomes, ("agent", "models", "problem"), invocation, empty="no agent can be asked for its models")
