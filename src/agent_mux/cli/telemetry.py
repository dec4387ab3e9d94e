"""Logs and traces of the command line.

Logs go to standard error, with `--debug` or as `$AMUX_LOG` sets.
"""

import logging
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from agent_mux.cli.errors import usage_error

if TYPE_CHECKING:
    from agent_mux.client import AgentMux

LOG_VARIABLE = "AMUX_LOG"
"""`text` or `json` selects the format and enables logs without `--debug`; `off` disables them even with it."""


def logs_for(*, debug: bool) -> AbstractContextManager[None]:
    """Return a context that writes logs if they are enabled."""
    match os.environ.get(LOG_VARIABLE) or ("text" if debug else "off"):
        case "text" | "json" as style:
            from agent_mux._util.log_output import log_to  # runs usually show no logs

            return log_to(sys.stderr, style)
        case "off":
            return nullcontext()
        case other:
            raise usage_error(f"{LOG_VARIABLE} is {other!r}; allowed: text, json, off")


def logs_for_server(level: int | None, *, debug: bool) -> AbstractContextManager[None]:
    """Return a context that writes the logs of a server from `level` on, with warnings of the libraries it uses."""
    style = os.environ.get(LOG_VARIABLE) or "text"
    if style == "off":
        return nullcontext()
    if style not in {"text", "json"}:
        raise usage_error(f"{LOG_VARIABLE} is {style!r}; allowed: text, json, off")
    from agent_mux._util.log_output import log_to

    wanted = logging.DEBUG if debug else logging.WARNING if level is None else level
    return log_to(sys.stderr, "json" if style == "json" else "text", level=wanted, others=("asyncio", "sqlalchemy"))


def instrument_if_traced(mux: "AgentMux") -> None:
    """Trace runs if the process was started with OpenTelemetry (`opentelemetry-instrument amux ...`)."""
    if "opentelemetry.sdk" in sys.modules:
        from agent_mux.telemetry.otel import instrument

        instrument(mux)
