"""What is asked for: the options of a run as they came, as they are remembered, and whether two are the same."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.redaction import Redactor, secret_values, secrets_of_servers, shown
from agent_mux.settings.requests import request_from_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One request for a run."""

    said: Mapping[str, Any]
    """Fields of `RunOptions`."""
    remembered: str
    """JSON: the same without secrets."""
    is_complete: bool
    """Nothing had to be left out of it."""
    fingerprint: str
    """SHA-256 of what was asked: the same request has the same one, whatever the order of its keys."""


def request_of(told: Any) -> RunRequest:
    """Read a request. Raises `ValidationError` by its keys."""
    said = request_from_wire(told)
    plain = {key: value for key, value in told.items() if value is not None}
    as_asked = to_json_bytes(plain)
    redactor = Redactor(secrets_of_servers(said.get("mcp_servers", ())) | secret_values(os.environ))
    remembered = redactor.mask(to_json_bytes(shown("", plain)))
    return RunRequest(
        said=said,
        remembered=remembered.decode(),
        is_complete=remembered == as_asked,
        fingerprint=hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest(),
    )
