"""Entry point of the console script `amux-agent`. What is heavy comes in when it is needed."""

import sys
from collections.abc import Sequence

from agent_mux.version import __version__

_VERSION = (["--version"], ["-V"], ["version"])
USAGE = 2
FAILED = 1
BROKEN_PIPE = 141
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code. `argv` is without the program's name."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _carry_out(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return abandon_output()
    except SystemExit as leaving:  # the help
        return leaving.code if isinstance(leaving.code, int) else USAGE
    except Exception as error:  # noqa: BLE001  # the edge: one sentence, never a traceback
        return _report(error)


def _carry_out(arguments: list[str]) -> int:
    if arguments in _VERSION:
        sys.stdout.write(f"amux-agent {__version__}\n")
        sys.stdout.flush()
        return 0
    if arguments[:1] == ["sessions"]:
        from agent_loop.cli.sessions_command import show_sessions

        return show_sessions(arguments[1:])
    from agent_loop.cli.arguments import read_arguments

    read = read_arguments(arguments)
    from agent_loop.cli.program import run_program

    return run_program(read)


def _report(error: Exception) -> int:
    from agent_loop.cli.faults import is_usage, sentence_of

    try:
        sys.stderr.write(f"amux-agent: {sentence_of(error)}\n")
        sys.stderr.flush()
    except OSError:
        abandon_output()
    return USAGE if is_usage(error) else FAILED


def abandon_output() -> int:
    """Nobody reads: what is still buffered goes nowhere."""
    from agent_mux.cli import errors

    errors.discard_output()
    return BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
