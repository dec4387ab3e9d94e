"""Report errors to the user: one line with the cause, one with the next step, and never a traceback for bad input."""

import errno
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux._util.suggestions import closest_names
from agent_mux.cli import exit_codes
from agent_mux.cli.command_output import Invocation
from agent_mux.cli.terminal import Palette, one_line, palette_for
from agent_mux.errors import NO_DIRECTORY, AgentMuxError, AnyCode

LONGEST_MESSAGE = 2000
_LONGEST_NAME = 200  # of a file, so that the reason before it is shown
_HINTS: dict[AnyCode, str] = {
    "AGENT_NOT_FOUND": "`amux adapters list` shows the available agents",
    "AGENT_NOT_INSTALLED": "`amux adapters detect` shows the installed agents",
    "PROFILE_NOT_FOUND": "`amux profiles list` shows the available profiles",
    "UNAUTHENTICATED": "--server-token-file FILE or $AGENT_MUX_SERVER_TOKEN gives the token of a service",
    "INTERNAL": "internal error of agent-mux; --debug prints the traceback",
}

_OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Errors of the system that a stream reports; errors of files have a name."""
_OUTPUT_HINT = "free space where the output goes, or send it to another file or to a terminal"
_OPTIONS_OF_OTHERS = {
    "--approval-mode": "--yolo, --deny or --plan",
    "--permission-mode": "--yolo, --deny or --plan",
    "--dangerously-skip-permissions": "--yolo",
    "--dangerously-bypass-approvals-and-sandbox": "--yolo",
    "--print": "`amux run` without --interactive",
    "--resume": "--session ID or --continue",
}
"""Options of other programs -> those of `amux run` for the same."""

_SERVICE_OPTIONS = ("--server", "--server-token-file")

_AT_A_SERVICE = {
    "sessions fork": "`amux run AGENT PROMPT --fork ID --server URL`",
    "sessions resume": "`amux run AGENT PROMPT --session ID --server URL`",
    "sessions watch": "`amux runs watch RUN --server URL`",
    "sessions diff": "`amux sessions export SESSION --server URL` for both sessions",
    "record": "`amux run --server URL`, whose recording stays on the machine of the service",
}
"""Commands that only work locally -> what does the same, or nearly so, at a service."""


def usage_error(message: str) -> AgentMuxError:
    """Return the VALIDATION_ERROR for unusable command-line input."""
    return AgentMuxError("VALIDATION_ERROR", message)


def no_service_error(option: str, command: str) -> AgentMuxError:
    """Return the error for `--server` or `--server-token-file` with a command that only works locally."""
    instead = _AT_A_SERVICE.get(command)
    at_a_service = f"; at a service, use {instead}" if instead else f"; run it without {option}"
    return usage_error(f"{option}: `amux {command}` works on this machine only{at_a_service}")


class ErrorReport(msgspec.Struct, frozen=True):
    """An error as it is printed, with its hint and exit code."""

    code: AnyCode
    message: str
    recoverable: bool = False
    hint: str = ""
    exit_code: int = exit_codes.GENERAL


def report_error(
    error: BaseException, invocation: Invocation | None = None, address: Callable[[str], str] = str
) -> int:
    """Print an error and return its exit code. `address` rewrites its texts, for a service: see `service_hints`."""
    invocation = invocation or Invocation()
    cause = _unwrap(error)
    if isinstance(cause, BrokenPipeError):
        discard_output()
        return exit_codes.BROKEN_PIPE
    complaint = error_report(cause)
    complaint = replace(complaint, message=address(complaint.message), hint=address(complaint.hint))
    try:
        if invocation.debug and not isinstance(cause, KeyboardInterrupt):
            sys.stderr.write(_redacted("".join(traceback.format_exception(error))))
        print_error(complaint, invocation)
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        discard_output()
        if invocation.json:  # standard output itself is broken
            print_error(complaint, replace(invocation, json=False))
    if invocation.has_gate and complaint.exit_code in {exit_codes.GENERAL, exit_codes.NOT_FOUND}:
        return exit_codes.NOT_MEASURED
    return complaint.exit_code


def print_error(complaint: ErrorReport, invocation: Invocation) -> None:
    """Print an error as JSON on standard output with `--json`, else as text on standard error."""
    if invocation.json:
        from agent_mux.cli.command_output import shown_json

        error = {"code": complaint.code, "message": complaint.message, "recoverable": complaint.recoverable}
        sys.stdout.write(shown_json({"ok": False, "error": error}) + "\n")
        return
    palette = palette_for(sys.stderr, no_color=invocation.no_color)
    sys.stderr.write(format_error(complaint, palette) + "\n")
    if complaint.hint:
        sys.stderr.write(f"{palette.dim('hint:')} {one_line(complaint.hint, LONGEST_MESSAGE)}\n")


def format_error(complaint: ErrorReport, palette: Palette) -> str:
    """Format an error as one line."""
    message = one_line(complaint.message, LONGEST_MESSAGE)
    return f"{palette.bad('error:')} {message} {palette.dim(f'[{complaint.code}]')}"


def _redacted(text: str) -> str:
    from agent_mux.redaction import redact_text

    return redact_text(text)


def error_report(error: BaseException) -> ErrorReport:
    """Return the report for an exception, with secrets redacted."""
    complaint = _unredacted_report(error)
    return replace(complaint, message=_redacted(complaint.message))


def _unredacted_report(error: BaseException) -> ErrorReport:
    match error:
        case AgentMuxError(code=code, message=message, recoverable=recoverable):
            return ErrorReport(code, message, recoverable, _HINTS.get(code, ""), exit_codes.for_error(code))
        case KeyboardInterrupt():
            return ErrorReport("ABORTED", "aborted", False, "", exit_codes.ABORTED)
        case OSError():
            return _system_error_report(error)
    usage = _usage_error_report(error)
    if usage is not None:
        return usage
    return ErrorReport("INTERNAL", f"{type(error).__name__}: {error}", hint=_HINTS["INTERNAL"])


def _system_error_report(error: OSError) -> ErrorReport:
    """Return the report for an error of the system: about a file, the current directory, or a standard stream."""
    match error:
        case OSError(filename=str() | bytes() as name):
            message = f"{error.strerror or type(error).__name__}: {one_line(os.fsdecode(name), _LONGEST_NAME)}"
            return ErrorReport("CONFIG_ERROR", message, exit_code=exit_codes.for_error("CONFIG_ERROR"))
        case FileNotFoundError() if not _has_directory():
            return ErrorReport("VALIDATION_ERROR", NO_DIRECTORY, exit_code=exit_codes.USAGE)
        case OSError() if error.errno in _OUTPUT_ERRORS:
            return ErrorReport("OUTPUT_ERROR", f"the output cannot be written: {error.strerror}", hint=_OUTPUT_HINT)
    return ErrorReport("INTERNAL", str(error.strerror or error))


def _has_directory() -> bool:
    """Return whether the current directory exists."""
    try:
        os.getcwd()  # noqa: PTH109  # the error of Path.cwd() is the same
    except OSError:
        return False
    return True


def _usage_error_report(error: BaseException) -> ErrorReport | None:
    """Return the report for an error of typer, else None.

    The error classes are click's, which newer versions of typer vendor privately.
    """
    format_message: Any = getattr(error, "format_message", None)
    if format_message is None:
        return None
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "amux"
    message = _unknown_option_message(error, context) or format_message().replace(": Value error, ", ": ")
    return ErrorReport("VALIDATION_ERROR", message, hint=f"see `{command} --help`", exit_code=exit_codes.USAGE)


def _unknown_option_message(error: BaseException, context: Any) -> str | None:
    """Return the message for an unknown option, with the closest known one; None for any other error."""
    unknown = getattr(error, "option_name", None)
    if context is None or type(error).__name__ != "NoSuchOption" or not isinstance(unknown, str):
        return None
    if unknown in _SERVICE_OPTIONS:
        return str(no_service_error(unknown, context.command_path.partition(" ")[2]))
    if unknown in _OPTIONS_OF_OTHERS and context.command_path.endswith(" run"):
        return f"no such option: {unknown}; use {_OPTIONS_OF_OTHERS[unknown]}"
    known = [name for parameter in context.command.params for name in (*parameter.opts, *parameter.secondary_opts)]
    close = closest_names(unknown, (name for name in known if name.startswith("--")))
    return f"no such option: {unknown}" + (f"; did you mean {close[0]}?" if close else "")


def _unwrap(error: BaseException) -> BaseException:
    """Return the first error inside the exception groups that task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def discard_output() -> None:
    """Discard buffered output when its reader has closed, so that Python prints no error at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
