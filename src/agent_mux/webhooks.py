"""Signatures of webhooks, for senders and receivers. Needs no extra.

    from agent_mux import webhooks
    message = webhooks.verify(request.headers, request.body, "whsec_...")

They follow the Standard Webhooks specification 1.0: HMAC-SHA256 over `id.timestamp.body`, base64, `v1,<signature>`.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.errors import AgentMuxError

PREFIX = "whsec_"
SHORTEST_KEY, LONGEST_KEY = 24, 64  # bytes
VERSION = "v1"
TOLERANCE = 300.0  # seconds; limits how long a recorded message can be replayed
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_WRONG_SECRET = f"a webhook secret is {PREFIX} and the base64 of {SHORTEST_KEY} to {LONGEST_KEY} bytes"


def new_secret() -> str:
    """Generate a webhook secret from 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """Return the key in a secret. Raises VALIDATION_ERROR, which does not contain the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise AgentMuxError("VALIDATION_ERROR", _WRONG_SECRET) from error
    if not secret.startswith(PREFIX) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise AgentMuxError("VALIDATION_ERROR", _WRONG_SECRET)
    return key


def sign(secrets_: Iterable[str], id_: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`, one signature per secret. `timestamp`: seconds since the epoch."""
    signed = b"%b.%d.%b" % (id_.encode(), timestamp, body)
    return " ".join(f"{VERSION},{_digest(key_of(secret), signed)}" for secret in secrets_)


def verify(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = TOLERANCE, now: float | None = None
) -> Any:
    """Verify the signature and the age of a message, and return its decoded JSON.

    A message may arrive more than once with the same `webhook-id`: remember the ids for a while.

    Args:
        headers: Headers of the request, in any case.
        body: The unmodified body: parsing and encoding JSON again changes the signature.
        secret: The webhook's secret, `whsec_...`.
        tolerance: Maximum difference in seconds between the message's time and the clock.
        now: Seconds since the epoch; None: the clock.

    Raises:
        AgentMuxError: UNAUTHENTICATED for a message that cannot be trusted; answer it with 401.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    id_, timestamp = lowered.get(ID, ""), lowered.get(TIMESTAMP, "")
    if not (id_ and timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15 and SIGNATURE in lowered):
        raise AgentMuxError("UNAUTHENTICATED", f"not a webhook: {ID}, {TIMESTAMP} or {SIGNATURE} is missing")
    expected = _digest(key_of(secret), b"%b.%b.%b" % (id_.encode(), timestamp.encode(), body))
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in _signatures(lowered[SIGNATURE])):
        raise AgentMuxError("UNAUTHENTICATED", "the signature of the webhook does not match this secret")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise AgentMuxError("UNAUTHENTICATED", f"the time of the webhook differs by more than {tolerance:g} s")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AgentMuxError("UNAUTHENTICATED", "the webhook is not JSON") from error


def _digest(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _signatures(header: str) -> list[str]:
    """Return the signatures of our version; others may be there for other receivers."""
    pairs = (one.partition(",") for one in header.split())
    return [signature for version, _, signature in pairs if version == VERSION]
