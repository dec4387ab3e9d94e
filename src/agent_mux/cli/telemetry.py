"""Logs of the library on standard error: with `--debug`, or as `AMUX_LOG` says."""

import logging
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from agent_mux.cli.errors import usage_error
from agent_mux.telemetry.logs import logs_on

if TYPE_CHECKING:
    from agent_mux.client import AgentMux

LOG_VARIABLE = "AMUX_LOG"
"""`text` or `json`: logs without `--debug`, or in that form. `off`: none, also with it."""


def logs_for(*, debug: bool) -> AbstractContextManager[None]:
    """Writes logs while it is entered, if somebody asked for them."""
    match os.environ.get(LOG_VARIABLE) or ("text" if debug else "off"):
        case "text" | "json" as style:
            return logs_on(sys.stderr, style)
        case "off":
            return nullcontext()
        case other:
            raise usage_error(f"{LOG_VARIABLE} is {other!r}; it can be text, json or off")


def logs_for_server(level: int | None, *, debug: bool) -> AbstractContextManager[None]:
    """Writes what a server has to say from a level on, and what the libraries below it complain about."""
    style = os.environ.get(LOG_VARIABLE) or "text"
    if style == "off":
        return nullcontext()
    if style not in {"text", "json"}:
        raise usage_error(f"{LOG_VARIABLE} is {style!r}; it can be text, json or off")
    wanted = logging.DEBUG if debug else logging.WARNING if level is None else level
    return logs_on(sys.stderr, "json" if style == "json" else "text", level=wanted, others=("asyncio", "sqlalchemy"))


def instrument_if_traced(mux: "AgentMux") -> None:
    """Whoever starts the command with OpenTelemetry set up (`opentelemetry-instrument amux ...`) gets its traces."""
    if "opentelemetry.sdk" in sys.modules:
        from agent_mux.telemetry.otel import instrument

        instrument(mux)
