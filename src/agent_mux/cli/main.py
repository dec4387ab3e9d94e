"""Entry point of the console script `amux`.

`amux --version` imports nothing else: it costs little more than starting Python. Agents wait for
`amux hooks AGENT handle TYPE` before each of their tool calls: it does not import the rest of the command line.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_mux._util.version import __version__

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation

_VERSION = (["--version"], ["-V"], ["version"])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. `argv` does not include the program's name."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments in _VERSION and sys.stdout is not None:
        try:
            sys.stdout.write(f"amux {__version__}\n")
            sys.stdout.flush()
        except OSError as error:
            from agent_mux.cli.errors import report_error

            return report_error(error)
        return 0
    match arguments:
        case ["hooks", agent, "handle", hook_type] if not any(word.startswith("-") for word in (agent, hook_type)):
            from agent_mux.cli.hook_handler import answer_hook

            return answer_hook(agent, hook_type)
    return _execute(arguments)


def _execute(arguments: Sequence[str]) -> int:
    """Run a command and report its errors. Only exceptions that end the interpreter escape."""
    from agent_mux.cli.app import COMPLETION_VARIABLE
    from agent_mux.cli.command_output import Invocation
    from agent_mux.cli.errors import report_error

    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    invocation = Invocation(json="--json" in own, debug="--debug" in own, no_color="--no-color" in own)
    _prepare_streams()
    try:
        code = _invoke(list(arguments), invocation)
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # any error becomes a message for the user
        return report_error(error, invocation)
    except KeyboardInterrupt as error:
        return report_error(error, invocation)
    except SystemExit:
        if COMPLETION_VARIABLE in os.environ:
            raise
        return report_error(BrokenPipeError(), invocation)  # rich exits when standard output is closed
    return code


def _invoke(arguments: list[str], invocation: "Invocation") -> int:
    import typer

    from agent_mux.cli.app import COMPLETION_VARIABLE, command

    amux = command()
    if COMPLETION_VARIABLE in os.environ:
        amux.main(arguments, prog_name="amux")
    try:
        with amux.make_context("amux", arguments, obj=invocation) as context:
            code: int | None = amux.invoke(context)
    except typer.Exit as leaving:  # raised by `--help`
        code = leaving.exit_code
    return code or 0


def _prepare_streams() -> None:
    """Open closed standard streams on the null device; replace characters that a terminal cannot encode with `?`."""
    from pathlib import Path

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open until exit
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
