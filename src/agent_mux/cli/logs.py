"""Logs of the library on standard error: with `--debug`, or as `AMUX_LOG` says."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

from agent_mux.cli.inputs import bad_input
from agent_mux.telemetry.logs import logs_on

VARIABLE = "AMUX_LOG"
"""`text` or `json`: logs without `--debug`, or in that form. `off`: none, also with it."""


def logs_for(*, debug: bool) -> AbstractContextManager[None]:
    """Writes logs while it is entered, if somebody asked for them."""
    match os.environ.get(VARIABLE) or ("text" if debug else "off"):
        case "text" | "json" as style:
            return logs_on(sys.stderr, style)
        case "off":
            return nullcontext()
        case other:
            raise bad_input(f"{VARIABLE} is {other!r}; it can be text, json or off")
