"""`amux completion`: what a shell has to run so that it completes the words of `amux`."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from agent_mux.cli.decorators import with_common_flags

VARIABLE = "_AMUX_COMPLETE"
"""Set by these scripts when they ask for the words that are possible."""


class Shell(StrEnum):
    """Those that are known."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@with_common_flags
def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="The shell that it is for.", show_default=False)],
) -> int:
    """Print the completion script of a shell: commands, options, names of agents and profiles."""
    from typer._completion_shared import get_completion_script  # `--show-completion` knows one shell

    from agent_mux.cli.json_output import print_json

    script = get_completion_script(prog_name="amux", complete_var=VARIABLE, shell=shell.value)
    if context.obj.json:
        print_json({"shell": shell.value, "script": script})
    else:
        sys.stdout.write(f"{script}\n")
    return 0
