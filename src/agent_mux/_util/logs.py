"""Logging of run milestones, never of prompts or answers.

Nothing is logged by default. An application receives the entries through structlog once it has configured structlog,
otherwise through the standard logger `agent_mux` once it has set a level. structlog is not a dependency: an application
that configures it has installed it.
"""

import json
import logging
import queue
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any, Literal, TextIO

from agent_mux.redaction import HIDDEN, is_secret_name, redact_text

LOGGER = "agent_mux"
logging.getLogger(LOGGER).addHandler(logging.NullHandler())

Style = Literal["text", "json"]
LogEntry = MutableMapping[str, Any]


def hide_secrets(logger: Any, method: str, entry: LogEntry) -> LogEntry:  # noqa: ARG001  # the signature of a processor
    """Hide values under secret names, and keys inside of other texts. A structlog processor."""
    for name, value in entry.items():
        if isinstance(value, str):
            entry[name] = HIDDEN if is_secret_name(name) else redact_text(value)
    return entry


def is_logging_enabled() -> bool:
    """Return whether the application configured structlog or enabled the standard logger."""
    return _configured_structlog() is not None or logging.getLogger(LOGGER).isEnabledFor(logging.INFO)


def write_entry(level: int, event: str, fields: Mapping[str, Any], *, name: str = LOGGER) -> None:
    """Write an entry, without secrets, to the application's logging. Raises what that raises.

    `name`: the logger, `agent_mux` or one below it.
    """
    structlog = _configured_structlog()
    if structlog is not None:
        processors = [hide_secrets, *structlog.get_config()["processors"]]
        structlog.wrap_logger(None, processors=processors, logger_factory_args=(name,)).log(level, event, **fields)
        return
    logger = logging.getLogger(name)
    if logger.isEnabledFor(level):
        entry = hide_secrets(logger, "", {**fields, "event": event})
        message = " ".join((entry["event"], *(f"{field}={entry[field]}" for field in fields)))
        logger.log(level, message, extra={"entry": entry})


@contextmanager
def log_to(stream: TextIO, style: Style, *, level: int = logging.DEBUG, others: Sequence[str] = ()) -> Iterator[None]:
    """Write log entries to a stream while the block runs, one line each, in a thread of their own.

    A slow reader of the stream delays no run.

    Args:
        stream: Receives the lines.
        style: Lines for people, or one JSON object per line.
        level: Lowest level that is written.
        others: Names of further loggers whose warnings and errors are written too.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LineFormatter(style))
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    enqueuing, listener = _PlainQueueHandler(records), QueueListener(records, handler)
    levels = {LOGGER: level, **dict.fromkeys(others, logging.WARNING)}
    previous = {name: logging.getLogger(name).level for name in levels}
    for name, new_level in levels.items():
        logging.getLogger(name).addHandler(enqueuing)
        logging.getLogger(name).setLevel(new_level)
    listener.start()
    try:
        yield
    finally:
        for name, old_level in previous.items():
            logging.getLogger(name).removeHandler(enqueuing)
            logging.getLogger(name).setLevel(old_level)
        listener.stop()


class _PlainQueueHandler(QueueHandler):
    """Enqueues records unformatted: the listener formats them in the same process."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


def _configured_structlog() -> Any:
    """Return the module structlog if the application configured it, else None."""
    structlog = sys.modules.get("structlog")
    return structlog if structlog is not None and structlog.is_configured() else None


class _LineFormatter(logging.Formatter):
    def __init__(self, style: Style) -> None:
        super().__init__()
        self._is_json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = record.levelname.lower()
        trace = redact_text(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._is_json:
            entry = getattr(record, "entry", {"event": _message(record)})
            line = {"timestamp": when, "level": level, "event": entry["event"], **entry}
            return json.dumps({**line, "exception": trace} if trace else line, default=str)
        return f"{when} {level:<7} {_message(record)}" + (f"\n{trace}" if trace else "")


def _message(record: logging.LogRecord) -> str:
    """Return the message without secrets. Our own entries have none; records of other loggers may."""
    message = record.getMessage()
    return message if hasattr(record, "entry") else redact_text(message)
