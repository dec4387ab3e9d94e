"""Output of log entries, one line each: for people, or as JSON. A run that shows no logs does not import this."""

import json
import logging
import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Literal, TextIO

from agent_mux._util.logs import LOGGER
from agent_mux.redaction import redact_text

Style = Literal["text", "json"]


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
