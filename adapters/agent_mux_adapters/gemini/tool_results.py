"""The result of a command, parsed from the text that Gemini CLI shows.

With `--debug` the CLI shows the text that the model gets:

    Output: <stdout and stderr together, or (empty)>
    Exit Code: <only if it is not 0>
    Signal: <only if one ended it>
    Background PIDs: <only if there are some>
    Process Group PGID: <number>

Without it, the CLI shows the bare output, and mentions a failure only if there is no output at all. The format is that
of the shell tool of 0.61.0.
"""

import re

import msgspec

EMPTY = "(empty)"
KILLED = -1
_HEAD = "Output: "
_LAST = "Process Group PGID"
_BEFORE_LAST = ("Background PIDs", "Signal", "Exit Code")
"""Optional fields, from the last to the first."""
_CUT_SHORT = re.compile(
    r"Command (?:cancelled by user\.|was cancelled by user before it could complete\.|was automatically cancelled )"
)
_ONLY_FAILURE = re.compile(r"Command (?:exited with code: (\d{1,9})|terminated by signal: \w+|failed: .*)", re.DOTALL)


class ShellReport(msgspec.Struct, frozen=True):
    """The result of a command that ended."""

    output: str
    exit_code: int | None = None
    """The exit code; None when it is not reported, -1 when a signal or the CLI ended the command."""
    failure: str | None = None
    """The failure in words when there is no exit code."""

    @property
    def error(self) -> str | None:
        """The error message for the event; None when the command succeeded or no failure is reported."""
        if self.failure is None and not self.exit_code:
            return None
        return self.failure or self.output or f"exit code {self.exit_code}"


def read_report(shown: str) -> ShellReport:
    """Parse the shown result, with or without `--debug`."""
    if _CUT_SHORT.match(shown):
        return ShellReport("", KILLED, shown)
    fields, rest = _fields_at_the_end(shown)
    if not shown.startswith(_HEAD) or _LAST not in fields:
        return _bare(shown)
    output = rest.removeprefix(_HEAD)
    output = "" if output == EMPTY else output
    signal = fields.get("Signal")
    if signal is not None:
        return ShellReport(output, KILLED, output or f"ended by signal {signal}")
    code = fields.get("Exit Code", "0")
    return ShellReport(output, int(code)) if re.fullmatch(r"-?\d{1,9}", code) else ShellReport(output, KILLED)


def _bare(shown: str) -> ShellReport:
    only = _ONLY_FAILURE.fullmatch(shown)
    if only is None:
        return ShellReport(shown)
    return ShellReport("", int(only[1]) if only[1] else KILLED, None if only[1] else shown)


def _fields_at_the_end(shown: str) -> tuple[dict[str, str], str]:
    """Split the fields after the output from the text before them."""
    fields: dict[str, str] = {}
    for name in (_LAST, *_BEFORE_LAST):
        rest, newline, line = shown.rpartition("\n")
        if newline and line.startswith(f"{name}: "):
            fields[name] = line.removeprefix(f"{name}: ")
            shown = rest
    return fields, shown
