"""Entry point of the console script `amux-agent`. Heavy modules are imported only when they are needed."""

import sys
from collections.abc import Sequence

from agent_mux._util.version import __version__

FAILED = 1
USAGE = 2
NOT_AUTHENTICATED = 5
BROKEN_PIPE = 141
INTERRUPTED = 130
_VERSION_ARGUMENTS = (["--version"], ["-V"], ["version"])
_EXIT_CODES = {"completed": 0, "aborted": INTERRUPTED, "interrupted": INTERRUPTED}
"""The exit codes of exit reasons; all others are `FAILED`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Execute one command line and return its exit code. `argv` is without the program's name."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _execute(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _abandon_output()
    except SystemExit as leaving:  # raised by argparse for --help
        return leaving.code if isinstance(leaving.code, int) else USAGE
    except Exception as error:  # noqa: BLE001  # the outermost level: one sentence instead of a traceback
        return _report(error)


def exit_code_of(exit_reason: str) -> int:
    """Return the exit code for the exit reason of a run."""
    return _EXIT_CODES.get(exit_reason, FAILED)


def _execute(arguments: list[str]) -> int:
    if arguments in _VERSION_ARGUMENTS:
        sys.stdout.write(f"amux-agent {__version__}\n")
        sys.stdout.flush()
        return 0
    if arguments[1:] in (["-h"], ["--help"]) and arguments[0] in {"agents", "sessions"}:
        arguments = ["--help"]
    if arguments[:1] == ["sessions"]:
        from agent_loop.cli.sessions_command import show_sessions

        return show_sessions(arguments[1:])
    if arguments[:1] == ["agents"]:
        from agent_loop.cli.agents_command import show_agents

        return show_agents(arguments[1:])
    if arguments[:1] == ["mcp"]:
        from agent_loop.cli.mcp_command import manage_servers

        return manage_servers(arguments[1:])
    if arguments[:1] == ["tool-host"]:
        from agent_loop.cli.tool_host import serve_tools

        return serve_tools(arguments[1:])
    from agent_loop.cli.arguments import parse_arguments

    parsed = parse_arguments(arguments)
    from agent_loop.cli.program import run_program

    return exit_code_of(run_program(parsed))


def _report(error: Exception) -> int:
    """Print the error as one sentence on standard error and return the exit code."""
    from agent_loop.cli.errors import code_of, is_usage_error, message_of

    try:
        sys.stderr.write(f"amux-agent: {message_of(error)}\n")
        sys.stderr.flush()
    except OSError:
        _abandon_output()
    if code_of(error) == "AUTH_ERROR":
        return NOT_AUTHENTICATED
    return USAGE if is_usage_error(error) else FAILED


def _abandon_output() -> int:
    """Discard buffered output, because its reader is gone, and return the exit code."""
    from agent_mux.cli import errors

    errors.discard_output()
    return BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
