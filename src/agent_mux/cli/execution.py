"""One command line, from its arguments to its exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from agent_mux.cli.app import command
from agent_mux.cli.completion_command import VARIABLE
from agent_mux.cli.errors import report
from agent_mux.cli.json_output import Invocation


def execute(arguments: Sequence[str]) -> int:
    """Carry it out. Nothing escapes but what ends the interpreter."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    invocation = Invocation(json="--json" in own, debug="--debug" in own, no_color="--no-color" in own)
    _prepare_streams()
    try:
        code = _invoke(list(arguments), invocation)
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # the user gets a sentence, whatever it is
        return report(error, invocation)
    except KeyboardInterrupt as error:
        return report(error, invocation)
    except SystemExit:
        if VARIABLE in os.environ:
            raise
        return report(BrokenPipeError(), invocation)  # what rich makes of it
    return code


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    amux = command()
    if VARIABLE in os.environ:
        amux.main(arguments, prog_name="amux")
    try:
        with amux.make_context("amux", arguments, obj=invocation) as context:
            code: int | None = amux.invoke(context)
    except typer.Exit as leaving:  # `--help` does that
        code = leaving.exit_code
    return code or 0


def _prepare_streams() -> None:
    """All three are there, and a terminal that cannot show a character shows a question mark."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # whoever started us closed it
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # until the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
