"""Secrets in what agents stored: hidden where it is read, as in the records of a run.

They write down what their tools printed, keys and all. What has the shape of a key is hidden, and so are the secrets of
this process's environment.
"""

import os
from functools import cache

from agent_mux.redaction import Redactor, secret_values


def hidden(data: bytes) -> bytes:
    """The same, as many bytes as it was, with its secrets as asterisks. JSON stays JSON."""
    spans, _ = _finder().find(data)
    if not spans:  # nearly always
        return data
    # Another one each time: it remembers what it hid, and nobody puts that back.
    return Redactor().hide(data, spans)


def hidden_text(data: bytes) -> str:
    """As text. What is no UTF-8 is shown as such."""
    return hidden(data).decode("utf-8", "replace")


@cache
def _finder() -> Redactor:
    return Redactor(_values())


@cache
def _values() -> frozenset[str]:
    return secret_values(os.environ)
