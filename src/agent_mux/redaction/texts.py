"""Hiding secrets in texts for people and for logs: messages of errors, lines of the command line."""

import os
from functools import cache

from agent_mux.redaction.redactor import Redactor
from agent_mux.redaction.values import secret_values


def redact_text(text: str) -> str:
    """The text without keys of known shapes, and without the secrets of this process's environment."""
    return _of_this_process(secret_values(os.environ)).mask_text(text)


@cache
def _of_this_process(values: frozenset[str]) -> Redactor:
    return Redactor(values)
