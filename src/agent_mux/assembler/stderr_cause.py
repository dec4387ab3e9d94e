"""The line of an agent's standard error that states why it ended: often neither the first nor the last one.

A program that rejects its arguments prints the reason before or after its help. Node prints its version after the
stack, Python the reason after it. Help entries and stack frames are indented or begin with a dash.
"""

import re

_REJECTED = (
    r"\b(?:unknown|unrecogni[sz]ed|unexpected|invalid|unsupported|ambiguous|no such|nonexistent|not enough|missing)\b"
    r".{0,40}?\b(?:options?|arguments?|flags?|commands?|subcommands?|parameters?|values?)\b"
)
_FAILED = r"\b(?:\w*(?:Error|Exception)|error|fatal|panic(?:ked)?|failed|cannot|could not|not found|denied|refused)\b"
_HELP_ENTRY = r"(?m)^\s*(?:-\w,\s+)?--[\w-]+\s{2,}\S"
MIN_HELP_ENTRIES = 3
HELP_ONLY = "it printed its help and no reason, as for an argument that it does not accept"


def find_cause(stderr: str) -> str:
    """Return the line that states the cause, without surrounding spaces; empty if there is no text.

    A rejected argument comes first, then the last line that reports a failure, then the last line. A help page
    without a reason is reported as such.
    """
    lines = [line for line in stderr.splitlines() if line.strip()]
    statements = [line.strip() for line in lines if not line[0].isspace() and not line.startswith("-")]
    rejected = next((line for line in statements if re.search(_REJECTED, line, re.IGNORECASE)), None)
    failed = next((line for line in reversed(statements) if re.search(_FAILED, line)), None)
    if cause := rejected or failed:
        return cause
    if len(re.findall(_HELP_ENTRY, stderr)) >= MIN_HELP_ENTRIES:
        return HELP_ONLY
    return lines[-1].strip() if lines else ""
