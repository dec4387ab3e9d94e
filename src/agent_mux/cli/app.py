"""The commands of `amux`. This module and those of the commands import nothing heavy: `--help` must be quick."""

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux.cli import exit_codes
from agent_mux.cli.acp_command import acp
from agent_mux.cli.adapters_command import adapters, detect
from agent_mux.cli.auth_command import auth
from agent_mux.cli.completion_command import completion
from agent_mux.cli.config_command import config
from agent_mux.cli.cost_command import cost
from agent_mux.cli.definition_commands import commands_for
from agent_mux.cli.demo_command import demo
from agent_mux.cli.detect_commands import capabilities, detect_host
from agent_mux.cli.doctor_command import doctor
from agent_mux.cli.examples import examples_of
from agent_mux.cli.hooks_command import hooks
from agent_mux.cli.init_command import init
from agent_mux.cli.install_commands import install, update
from agent_mux.cli.mcp_command import mcp
from agent_mux.cli.mcp_server_command import mcp_server
from agent_mux.cli.models_command import models
from agent_mux.cli.options import ConfigDir, Debug, NoColor, ProjectDir, Server, ServerTokenFile
from agent_mux.cli.parse_command import parse
from agent_mux.cli.plugin_command import plugin
from agent_mux.cli.profiles_command import profiles
from agent_mux.cli.record_command import record
from agent_mux.cli.replay_command import replay
from agent_mux.cli.run_command import run
from agent_mux.cli.schema_command import schema
from agent_mux.cli.serve_command import serve
from agent_mux.cli.sessions_command import sessions
from agent_mux.cli.token_command import token
from agent_mux.cli.validate_command import validate
from agent_mux.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERVED = frozenset({None, "run", "help", "sessions", "cost", "models", "profiles", "adapters", "detect"})
"""What can be about a service; of the groups, each command says whether it can."""
_EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS.items()) + "."

app = typer.Typer(
    name="amux",
    help="Drive any coding-agent CLI through one typed event stream.",
    epilog=_EXIT_CODES,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (
    run, init, parse, validate, replay, record, demo, doctor, schema, install, update, detect, detect_host,
    capabilities, completion, acp, mcp_server, serve,
):  # fmt: skip
    app.command()(function)
app.add_typer(adapters, name="adapters")
app.add_typer(sessions, name="sessions")
app.add_typer(cost, name="cost")
app.add_typer(hooks, name="hooks")
app.add_typer(models, name="models")
app.add_typer(profiles, name="profiles")
app.add_typer(config, name="config")
app.add_typer(mcp, name="mcp")
app.add_typer(auth, name="auth")
app.add_typer(commands_for("skills", "skill"), name="skill")
app.add_typer(commands_for("subagents", "sub-agent"), name="agent")
app.add_typer(plugin, name="plugin")
app.add_typer(token, name="token")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"amux {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="The agent of `run`.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Its model.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)] = False,
    debug: Debug = False,
    no_color: NoColor = False,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
    server: Server = None,
    server_token_file: ServerTokenFile = None,
    version: Annotated[  # noqa: ARG001  # its callback has done it
        bool, typer.Option("--version", "-V", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Drive any coding-agent CLI through one typed event stream."""
    given = {"agent": agent, "model": model, "json": json, "debug": debug, "no_color": no_color}
    given["config_dir"] = None if config_dir is None else str(config_dir)
    given["project_dir"] = None if project_dir is None else str(project_dir)
    given["server"] = server
    given["server_token_file"] = None if server_token_file is None else str(server_token_file)
    _check_server(given, context.invoked_subcommand)
    said = {name: value for name, value in given.items() if value}
    context.default_map = _defaults_of_all(context.command, said)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _check_server(given: "Mapping[str, Any]", subcommand: str | None) -> None:
    """Raises a usage error for a command that does its work here."""
    told = next((name for name in ("server", "server_token_file") if given[name] is not None), None)
    if told is not None and subcommand not in _SERVED:
        from agent_mux.cli.server import not_for

        raise not_for(told, subcommand or "")


def _defaults_of_all(group: Any, said: "Mapping[str, Any]") -> dict[str, Any]:
    """An option before the command is the default of that option of every command."""
    return {
        name: _defaults_of_all(command, said) if isinstance(command, TyperGroup) else dict(said)
        for name, command in group.commands.items()
    }


@app.command("version")
def version_command() -> None:
    """Show the version."""
    typer.echo(f"amux {__version__}")


@app.command("help")
def help_command(
    context: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", show_default=False)] = None,
) -> None:
    """Show how a command is used."""
    amux = context.find_root().command
    with amux.make_context("amux", [*(topic or ()), "--help"], obj=context.obj) as asked:
        amux.invoke(asked)


@cache
def command() -> Any:
    """The whole command line. Typed by click, of which newer versions of typer have a copy of their own."""
    root = typer.main.get_command(app)
    _show_examples(root)
    return root


def _show_examples(group: Any, *before: str) -> None:
    """Under the help of each command."""
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            _show_examples(one, *before, name)
            continue
        examples = examples_of(" ".join((*before, name)))
        one.epilog = "\n\n".join(("Examples:", *examples)) if examples else None
