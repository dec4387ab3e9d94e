"""The result of a command, parsed from the text that Gemini CLI shows.

With `--debug` the CLI shows the text that the model gets:

    Output: <stdout and stderr together, or (empty)>
    Exit Code: <only if it is not 0>
    Signal: <only if one ended it>
    Background PIDs: <only if there are some>
    Process Group PGID: <number>

Older releases (0.15 and 0.22, not 0.30) write all fields, with a value that stands for none, and more before them:

    Command: <the command, which may have several lines>
    Directory: <where it ran, or (root)>
    Output: <as above>
    Error: <why it did not start, or (none)>
    Exit Code: <number or (none)>
    Signal: <number, 0 or (none)>
    Background PIDs: <numbers or (none)>
    Process Group PGID: <number>

Without `--debug`, the CLI shows the bare output, and mentions a failure only if there is no output at all.
"""

import re

import msgspec

EMPTY = "(empty)"
KILLED = -1
NONE = "(none)"
_HEAD = re.compile(r"(?P<older>Command: .*?\nDirectory: [^\n]*\n)?Output: ", re.DOTALL)
_ERROR = "\nError: "
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
    head = _HEAD.match(shown)
    if head is None or _LAST not in fields:
        return _bare(shown)
    output = rest[head.end() :]
    failure = NONE
    if head["older"] and _ERROR in output:
        output, _, failure = output.rpartition(_ERROR)
    output = "" if output == EMPTY else output
    if failure != NONE:
        return ShellReport(output, KILLED, failure)
    signal = fields.get("Signal", NONE)
    if signal not in {NONE, "0"}:
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
