"""Register the commands of `amux`.

This module and the command modules import nothing heavy at the top: `--help` must be quick.
"""

import sys
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux._util.version import __version__
from agent_mux.cli.agent_commands import adapters, auth, capabilities, detect, detect_host
from agent_mux.cli.audit_command import audit
from agent_mux.cli.command_catalog import all_commands, load_catalog
from agent_mux.cli.compare_commands import compare
from agent_mux.cli.config_commands import config
from agent_mux.cli.cost_command import cost
from agent_mux.cli.decorators import given_server_option, with_common_flags
from agent_mux.cli.demo_command import demo
from agent_mux.cli.doctor_command import doctor
from agent_mux.cli.event_commands import parse, schema, validate
from agent_mux.cli.extension_commands import commands_for, plugin
from agent_mux.cli.help_page import help_width, is_styled, render_help
from agent_mux.cli.hook_commands import hooks
from agent_mux.cli.install_commands import install, uninstall, update
from agent_mux.cli.mcp_commands import mcp
from agent_mux.cli.model_commands import models
from agent_mux.cli.options import ConfigDir, Debug, NoColor, ProjectDir, Server, ServerTokenFile
from agent_mux.cli.protocol_commands import acp, mcp_server
from agent_mux.cli.quota_command import quota
from agent_mux.cli.recording_commands import record, replay
from agent_mux.cli.run_commands import run
from agent_mux.cli.runs_commands import runs
from agent_mux.cli.serve_command import serve
from agent_mux.cli.session_commands import sessions
from agent_mux.cli.settings_commands import init, profiles
from agent_mux.cli.token_commands import token
from agent_mux.cli.worktree_commands import worktree

if TYPE_CHECKING:
    from collections.abc import Mapping


class CompletionShell(StrEnum):
    """The shells that have a completion script."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


def _completion_script(shell: CompletionShell) -> str:
    from agent_mux.cli.completion_scripts import SCRIPTS

    return SCRIPTS[shell.value].rstrip()


@with_common_flags
def completion(
    context: typer.Context,
    shell: Annotated[CompletionShell, typer.Argument(help="Shell to generate the script for.", show_default=False)],
) -> int:
    """Print the completion script for a shell.

    It completes commands, options, and values: agents, models, profiles, sessions and their names, runs, comparisons,
    fixed choices and paths.
    """
    from agent_mux.cli.command_output import print_json

    script = _completion_script(shell)
    if context.obj.json:
        print_json({"shell": shell.value, "script": script})
    else:
        sys.stdout.write(f"{script}\n")
    return 0


_REMOTE_COMMANDS = frozenset(
    {
        None,
        "run",
        "help",
        "runs",
        "sessions",
        "cost",
        "quota",
        "models",
        "profiles",
        "adapters",
        "detect",
        "capabilities",
        "compare",
    }
)
"""The commands and groups that accept `--server`; within a group, each command decides for itself."""

app = typer.Typer(
    name="amux",
    add_completion=False,  # `completion` prints our own scripts
    help="Drive any coding-agent CLI through one typed event stream.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    # click would remove the styles of help in a pipe, also with FORCE_COLOR; `is_styled` decides about them.
    context_settings={"help_option_names": ["-h", "--help"], "color": True},
)
for function in (
    run, init, parse, validate, replay, record, demo, doctor, schema, install, update, uninstall, detect,
    detect_host, capabilities, quota, completion, acp, mcp_server, serve, audit,
):  # fmt: skip
    app.command()(function)
app.add_typer(adapters, name="adapters")
app.add_typer(runs, name="runs")
app.add_typer(sessions, name="sessions")
app.add_typer(cost, name="cost")
app.add_typer(hooks, name="hooks")
app.add_typer(models, name="models")
app.add_typer(profiles, name="profiles")
app.add_typer(config, name="config")
app.add_typer(mcp, name="mcp")
app.add_typer(auth, name="auth")
app.add_typer(commands_for("skills", "skill"), name="skills")
app.add_typer(commands_for("subagents", "sub-agent"), name="subagents")
app.add_typer(plugin, name="plugins")
app.add_typer(token, name="tokens")
app.add_typer(worktree, name="worktrees")
app.add_typer(compare, name="compare")


def _print_completions(shell: CompletionShell | None) -> None:
    if shell is not None:
        typer.echo(_completion_script(shell))
        raise typer.Exit


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"amux {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Agent for `run`.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model for `run`.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)] = False,
    debug: Debug = False,
    no_color: NoColor = False,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
    server: Server = None,
    server_token_file: ServerTokenFile = None,
    completions: Annotated[  # noqa: ARG001  # handled by its callback
        CompletionShell | None,
        typer.Option(
            "--completions",
            metavar="bash|zsh|fish|powershell",
            help="Print the completion script for a shell and exit.",
            callback=_print_completions,
            is_eager=True,
            show_default=False,
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001  # handled by its callback
        bool, typer.Option("--version", "-V", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Drive any coding-agent CLI through one typed event stream."""
    given = {"agent": agent, "model": model, "json": json, "debug": debug, "no_color": no_color}
    given["config_dir"] = None if config_dir is None else str(config_dir)
    given["project_dir"] = None if project_dir is None else str(project_dir)
    given["server"] = server
    given["server_token_file"] = None if server_token_file is None else str(server_token_file)
    _check_server(given, context.invoked_subcommand)
    values = {name: value for name, value in given.items() if value or (name == "server" and value is not None)}
    context.default_map = _defaults_for_all(context.command, values)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _check_server(given: "Mapping[str, Any]", subcommand: str | None) -> None:
    """Raise a usage error if a service is named for a command that only works locally."""
    option = given_server_option(given)
    if option is not None and subcommand not in _REMOTE_COMMANDS:
        from agent_mux.cli.errors import no_service_error

        raise no_service_error(option, subcommand or "")


def _defaults_for_all(group: Any, values: "Mapping[str, Any]") -> dict[str, Any]:
    """Return click's default map: an option before the command is the default of that option for every command."""
    return {
        name: _defaults_for_all(command, values) if isinstance(command, TyperGroup) else dict(values)
        for name, command in group.commands.items()
    }


@app.command("version")
@with_common_flags
def version_command(context: typer.Context) -> int:
    """Show the version."""
    from agent_mux.cli.command_output import print_json

    if context.obj.json:
        print_json({"version": __version__})
    else:
        typer.echo(f"amux {__version__}")
    return 0


@app.command("help")
def help_command(
    context: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", show_default=False)] = None,
) -> None:
    """Show the help of a command."""
    amux = context.find_root().command
    with amux.make_context("amux", [*(topic or ()), "--help"], obj=context.obj) as asked:
        amux.invoke(asked)


@cache
def command() -> Any:
    """Build the whole command line once. Its type is click's, which newer versions of typer vendor privately."""
    root = typer.main.get_command(app)
    for words, one in all_commands(root):
        one.format_help = partial(_write_help, words)
    return root


def _write_help(words: tuple[str, ...], context: Any, formatter: Any) -> None:
    """Write the help page of a command to click's formatter, in place of typer's own."""
    styled = is_styled(sys.stdout) and not context.obj.no_color
    formatter.write(render_help(load_catalog()[" ".join(words)], words, help_width(), styled=styled))
