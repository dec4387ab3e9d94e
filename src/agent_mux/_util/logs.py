"""Logging of run milestones, never of prompts or answers.

Nothing is logged by default. An application receives the entries through structlog once it has configured structlog,
otherwise through the standard logger `agent_mux` once it has set a level. structlog is not a dependency: an application
that configures it has installed it.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from agent_mux.redaction import redact_entry

LOGGER = "agent_mux"
logging.getLogger(LOGGER).addHandler(logging.NullHandler())


def is_logging_enabled() -> bool:
    """Return whether the application configured structlog or enabled the standard logger."""
    return _configured_structlog() is not None or logging.getLogger(LOGGER).isEnabledFor(logging.INFO)


def write_entry(level: int, event: str, fields: Mapping[str, Any], *, name: str = LOGGER) -> None:
    """Write an entry, without secrets, to the application's logging. Raises what that raises.

    `name`: the logger, `agent_mux` or one below it.
    """
    structlog = _configured_structlog()
    if structlog is not None:
        processors = [redact_entry, *structlog.get_config()["processors"]]
        structlog.wrap_logger(None, processors=processors, logger_factory_args=(name,)).log(level, event, **fields)
        return
    logger = logging.getLogger(name)
    if logger.isEnabledFor(level):
        entry = redact_entry(logger, "", {**fields, "event": event})
        message = " ".join((entry["event"], *(f"{field}={entry[field]}" for field in fields)))
        logger.log(level, message, extra={"entry": entry})


def _configured_structlog() -> Any:
    """Return the module structlog if the application configured it, else None."""
    structlog = sys.modules.get("structlog")
    return structlog if structlog is not None and structlog.is_configured() else None
