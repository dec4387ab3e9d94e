"""Next steps in errors of a service: the commands that they name must look there, not on this machine."""

import re
from functools import partial

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.errors import report_error

_COMMAND = re.compile(r"`amux ([^`]+)`")
_ANY_URL = "--server URL"
_ELSEWHERE = " (on the machine of the service)"
_LOCAL_GROUPS = ("Run agents", "Agents on this machine", "Models and costs")
"""Groups of commands whose answer depends on the machine."""


def report_error_of(error: BaseException, invocation: Invocation) -> int:
    """Print the error of a command, which may be that of a service, and return its exit code."""
    if invocation.service is None:
        return report_error(error, invocation)
    return report_error(error, invocation, partial(at_service, url=invocation.service.url))


def at_service(text: str, url: str) -> str:
    """Return a text in which each `amux ...` asks the service at `url`, or states that it has to run on its machine."""
    from agent_mux.cli.command_catalog import COMMAND_GROUPS, load_catalog

    catalog = load_catalog()
    local = {name for group in _LOCAL_GROUPS for name in COMMAND_GROUPS[group]}

    def addressed(match: re.Match[str]) -> str:
        line = match[1].replace(_ANY_URL, f"--server {url}")
        words = line.split()
        named = next((end for end in range(len(words), 0, -1) if " ".join(words[:end]) in catalog), 0)
        if not named or "--server" in words or "--help" in words:
            return f"`amux {line}`"
        options = catalog[" ".join(words[:named])]["options"]
        if any("--server" in option["names"] for option in options):
            return f"`amux {line} --server {url}`"
        return f"`amux {line}`{_ELSEWHERE if words[0] in local else ''}"

    return _COMMAND.sub(addressed, text)
