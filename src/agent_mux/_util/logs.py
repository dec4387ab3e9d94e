"""What a run goes through, as log entries: never what is said in it.

Silent until somebody wants to hear: whoever has configured structlog gets the entries there; whoever has set the
standard logger `agent_mux` to a level gets them there. structlog is imported then and not before: it is slow to load.
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
Entry = MutableMapping[str, Any]


def hide_secrets(logger: Any, method: str, entry: Entry) -> Entry:  # noqa: ARG001  # the signature of a processor
    """A structlog processor: values under secret names are hidden, and keys in texts."""
    for name, value in entry.items():
        if isinstance(value, str):
            entry[name] = HIDDEN if is_secret_name(name) else redact_text(value)
    return entry


@contextmanager
def logs_on(stream: TextIO, style: Style, *, level: int = logging.DEBUG, others: Sequence[str] = ()) -> Iterator[None]:
    """Write the entries from a level on to a stream, one a line; a reader of it that is slow stops nobody.

    `others`: further loggers, whose warnings and errors go there too.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(style))
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    front, listener = _Handing(waiting), QueueListener(waiting, handler)
    levels = {LOGGER: level, **dict.fromkeys(others, logging.WARNING)}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, chosen in levels.items():
        logging.getLogger(name).addHandler(front)
        logging.getLogger(name).setLevel(chosen)
    listener.start()
    try:
        yield
    finally:
        for name, chosen in before.items():
            logging.getLogger(name).removeHandler(front)
            logging.getLogger(name).setLevel(chosen)
        listener.stop()


class _Handing(QueueHandler):
    """As it is: the other end formats, in the same process."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


def _is_heard() -> bool:
    return _is_structlog_configured() or logging.getLogger(LOGGER).isEnabledFor(logging.INFO)


def _is_structlog_configured() -> bool:
    structlog = sys.modules.get("structlog")
    return structlog is not None and bool(structlog.is_configured())


def _logger() -> Any:
    import structlog  # noqa: PLC0415  # slow to load, and nobody listens as a rule

    if structlog.is_configured():
        processors = [hide_secrets, *structlog.get_config()["processors"]]
        return structlog.wrap_logger(None, processors=processors, logger_factory_args=(LOGGER,))
    return structlog.wrap_logger(
        logging.getLogger(LOGGER),
        processors=[hide_secrets, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _as_record(logger: Any, method: str, entry: Entry) -> tuple[tuple[str], dict[str, Any]]:  # noqa: ARG001
    """For the standard library: the message is readable alone, and the fields are there for formatters."""
    fields = {name: value for name, value in entry.items() if name != "event"}
    message = " ".join((entry["event"], *(f"{name}={value}" for name, value in fields.items())))
    return (message,), {"extra": {"entry": dict(entry)}}


class _Lines(logging.Formatter):
    """One entry, one line."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._is_json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = record.levelname.lower()
        trace = redact_text(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._is_json:
            said = getattr(record, "entry", {"event": _message(record)})
            told = {"timestamp": when, "level": level, "event": said["event"], **said}
            return json.dumps({**told, "exception": trace} if trace else told, default=str)
        return f"{when} {level:<7} {_message(record)}" + (f"\n{trace}" if trace else "")


def _message(record: logging.LogRecord) -> str:
    """What it says. Entries are without secrets already; what others say may have some."""
    message = record.getMessage()
    return message if hasattr(record, "entry") else redact_text(message)
