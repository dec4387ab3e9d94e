"""Entry point of the console script `amux`.

`amux --version` imports nothing else: it costs little more than starting Python. Help is printed from a stored catalog
of the commands. Agents wait for
`amux hooks AGENT handle TYPE` before each of their tool calls: it does not import the rest of the command line.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_mux._util.version import __version__
from agent_mux.cli.completion_scripts import SHELL_VARIABLE
from agent_mux.cli.standard_streams import prepare_streams

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation

_VERSION = (["--version"], ["-V"], ["version"])
_VERSION_AS_JSON = ({"--version", "--json"}, {"-V", "--json"})


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
    if set(arguments) in _VERSION_AS_JSON:
        arguments = ["version", "--json"]
    match arguments:
        case ["hooks", agent, "handle", hook_type] if not any(word.startswith("-") for word in (agent, hook_type)):
            from agent_mux.cli.hook_handler import answer_hook

            return answer_hook(agent, hook_type)
    if SHELL_VARIABLE in os.environ:
        return _complete()
    if _asks_for_help(arguments):
        return _print_help(arguments)
    return _execute(arguments)


def _complete() -> int:
    """Print candidates for a shell, which shows no errors."""
    from agent_mux.cli.completion_engine import print_candidates

    try:
        prepare_streams()
        code = print_candidates()
        sys.stdout.flush()
    except OSError:
        return 0
    return code


def _asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether only the help of a command is requested, by words and without other options."""
    match arguments:
        case [] | ["help"]:
            words: Sequence[str] = []
        case ["help", *words] | [*words, "-h" | "--help"]:
            pass
        case _:
            return False
    return not any(word.startswith("-") for word in words)


def _print_help(arguments: Sequence[str]) -> int:
    """Print a help page from the stored catalog: this needs neither typer nor the commands."""
    from agent_mux.cli.command_catalog import load_catalog
    from agent_mux.cli.help_page import print_help

    words = [word for word in arguments[arguments[:1] == ["help"] :] if word not in {"-h", "--help"}]
    catalog = load_catalog()
    if " ".join(words) not in catalog:
        return _execute(arguments)
    try:
        prepare_streams()
        print_help(catalog, words, sys.stdout)
        sys.stdout.flush()
    except OSError as error:
        from agent_mux.cli.errors import report_error

        return report_error(error)
    return 0


def _execute(arguments: Sequence[str]) -> int:
    """Run a command and report its errors. Only exceptions that end the interpreter escape."""
    from agent_mux.cli.command_output import Invocation
    from agent_mux.cli.errors import report_error

    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    invocation = Invocation(json="--json" in own, debug="--debug" in own, no_color="--no-color" in own)
    prepare_streams()
    try:
        code = _run_quickly(arguments, invocation)
        if code is None:
            from agent_mux.cli.aliases import translate

            code = _invoke(translate(arguments, _names_agent), invocation)
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # any error becomes a message for the user
        from agent_mux.cli.service_hints import report_error_of

        return report_error_of(error, invocation)
    except KeyboardInterrupt as error:
        return report_error(error, invocation)
    except SystemExit:
        return report_error(BrokenPipeError(), invocation)  # rich exits when standard output is closed
    return code


def _run_quickly(arguments: Sequence[str], invocation: "Invocation") -> int | None:
    """Run `amux run` without typer. Return None for other commands, and for command lines that typer has to parse."""
    if arguments[:1] != ["run"]:
        return None
    from agent_mux.cli.quick_run import run_quickly

    # The modules that a run imports stay until the end: collecting garbage among them only delays the agent.
    gc.disable()
    try:
        return run_quickly(arguments[1:], invocation)
    finally:
        gc.enable()


def _invoke(arguments: list[str], invocation: "Invocation") -> int:
    import typer

    from agent_mux.cli import exit_codes
    from agent_mux.cli.app import command

    amux = command()
    try:
        with amux.make_context("amux", arguments, obj=invocation) as context:
            code: int | None = amux.invoke(context)
    except typer.Exit as leaving:  # raised by `--help`
        code = leaving.exit_code
    except Exception as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # a group without a command; the class is click's
            raise
        from agent_mux.cli.command_catalog import load_catalog
        from agent_mux.cli.help_page import print_help

        words = error.ctx.command_path.split()[1:]  # type: ignore[attr-defined]
        print_help(load_catalog(), words, sys.stderr, no_color=invocation.no_color)
        return exit_codes.USAGE
    return code or 0


def _names_agent(word: str) -> bool:
    from agent_mux.sdk.registry import AdapterRegistry

    return word in AdapterRegistry()


if __name__ == "__main__":
    sys.exit(main())
