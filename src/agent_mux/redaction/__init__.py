"""Find secrets and hide them in journals, events, results, errors, logs and messages.

Secrets are recognized by the name of the variable or option that holds them (`names`), by value (`values`) and by the
form that issuers give to keys (`patterns`). A hidden secret keeps its length in bytes, so that framing and JSON remain
valid, and a run can restore it in its input to the agent (`Redactor.restore`).
"""

from agent_mux.redaction.entries import redact_entry
from agent_mux.redaction.fragments import FragmentedText, UnfinishedSecrets
from agent_mux.redaction.names import (
    HIDDEN,
    hide_secret_arguments,
    hide_secret_values,
    hide_user_information,
    is_secret_name,
)
from agent_mux.redaction.redactor import Redactor, redact_text
from agent_mux.redaction.stream import RedactedStream
from agent_mux.redaction.values import secret_values, secrets_of_servers

__all__ = [
    "HIDDEN",
    "FragmentedText",
    "RedactedStream",
    "Redactor",
    "UnfinishedSecrets",
    "hide_secret_arguments",
    "hide_secret_values",
    "hide_user_information",
    "is_secret_name",
    "redact_entry",
    "redact_text",
    "secret_values",
    "secrets_of_servers",
]
