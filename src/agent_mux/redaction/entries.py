"""Secrets in log entries."""

from collections.abc import MutableMapping
from typing import Any

from agent_mux.redaction.names import HIDDEN, is_secret_name
from agent_mux.redaction.redactor import redact_text


def redact_entry(logger: Any, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ARG001  # the signature of a processor
    """Hide texts under secret names, and keys inside of other texts. A structlog processor: it changes the entry."""
    for name, value in entry.items():
        if isinstance(value, str):
            entry[name] = HIDDEN if is_secret_name(name) else redact_text(value)
    return entry
