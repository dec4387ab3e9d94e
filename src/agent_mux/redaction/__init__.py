"""Keeping secrets out of everything that is written down: journals, events, results, errors, logs, messages.

Secrets are known by name (`names`), by value (`values`) and by shape (`shapes`). What is hidden keeps its length, so
that framing and JSON stay whole, and a run can put it back into what it sends to its agent (`Redactor.restore`).
"""

from agent_mux.redaction.names import HIDDEN, is_secret_name, shown, without_secret_values
from agent_mux.redaction.redactor import Redactor
from agent_mux.redaction.text import RedactedStream, redact_text
from agent_mux.redaction.values import secret_values, secrets_of_servers

__all__ = [
    "HIDDEN",
    "RedactedStream",
    "Redactor",
    "is_secret_name",
    "redact_text",
    "secret_values",
    "secrets_of_servers",
    "shown",
    "without_secret_values",
]
