"""Logging of run milestones, never of prompts or answers.

Nothing is logged by default. An application receives the entries through structlog once it has configured structlog,
otherwise through the standard logger `agent_mux` once it has set a level. structlog is imported only then, because
importing it is slow.
"""

import json
import logging
import queue
import sys
from collections.abc import Iterator, MutableMapping, Sequence
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
    return _is_structlog_configured() or logging.getLogger(LOGGER).isEnabledFor(logging.INFO)


def get_logger() -> Any:
    """Return a structlog logger that hides secrets and writes to the application's logging."""
    import structlog  # noqa: PLC0415  # slow to import, and usually not needed

    if structlog.is_configured():
        processors = [hide_secrets, *structlog.get_config()["processors"]]
        return structlog.wrap_logger(None, processors=processors, logger_factory_args=(LOGGER,))
    return structlog.wrap_logger(
        logging.getLogger(LOGGER),
        processors=[hide_secrets, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


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


def _is_structlog_configured() -> bool:
    structlog = sys.modules.get("structlog")
    return structlog is not None and bool(structlog.is_configured())


def _as_record(logger: Any, method: str, entry: LogEntry) -> tuple[tuple[str], dict[str, Any]]:  # noqa: ARG001
    """Convert an entry for the standard library: a readable message, and the fields as `record.entry`."""
    fields = {name: value for name, value in entry.items() if name != "event"}
    message = " ".join((entry["event"], *(f"{name}={value}" for name, value in fields.items())))
    return (message,), {"extra": {"entry": dict(entry)}}


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
