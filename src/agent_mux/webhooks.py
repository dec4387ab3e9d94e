"""Signatures of webhooks: for who sends them, and for who receives them. Needs no extra.

    from agent_mux import webhooks
    told = webhooks.verify(request.headers, request.body, "whsec_...")

Source: the Standard Webhooks specification, 1.0: HMAC-SHA256 over `id.timestamp.body`, in base64, as `v1,<signature>`.
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
TOLERANCE = 300.0  # seconds that a message may be old, or ahead: who recorded one cannot send it again later
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


def new_secret() -> str:
    """A secret that nobody knows."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key in a secret. Raises VALIDATION_ERROR for what is none; the error does not say it."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise AgentMuxError("VALIDATION_ERROR", _WRONG_SECRET) from error
    if not secret.startswith(PREFIX) or not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise AgentMuxError("VALIDATION_ERROR", _WRONG_SECRET)
    return key


_WRONG_SECRET = f"a webhook secret is {PREFIX} and the base64 of {SHORTEST_KEY} to {LONGEST_KEY} bytes"


def sign(secrets_: Iterable[str], id_: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret. `timestamp`: seconds since the epoch."""
    signed = b"%b.%d.%b" % (id_.encode(), timestamp, body)
    return " ".join(f"{VERSION},{_digest(key_of(secret), signed)}" for secret in secrets_)


def verify(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = TOLERANCE, now: float | None = None
) -> Any:
    """The message, when it is from who has the secret, and new.

    The same message may come more than once, with the same `webhook-id`: remember those for a while.

    Args:
        headers: Of the request, in any case.
        body: As it came. JSON that was parsed and written again has another signature.
        secret: As it was told when the webhook was made: `whsec_...`.
        tolerance: Seconds that the message may be old, or ahead of the clock.
        now: Seconds since the epoch; default: the clock.

    Raises:
        AgentMuxError: UNAUTHENTICATED for a message that cannot be trusted: answer it with 401.
    """
    said = {name.lower(): value for name, value in headers.items()}
    id_, timestamp = said.get(ID, ""), said.get(TIMESTAMP, "")
    if not (id_ and timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15 and SIGNATURE in said):
        raise AgentMuxError("UNAUTHENTICATED", f"this is no webhook: it needs {ID}, {TIMESTAMP} and {SIGNATURE}")
    expected = _digest(key_of(secret), b"%b.%b.%b" % (id_.encode(), timestamp.encode(), body))
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in _signatures(said[SIGNATURE])):
        raise AgentMuxError("UNAUTHENTICATED", "the signature of the webhook was not made with this secret")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise AgentMuxError("UNAUTHENTICATED", f"the webhook is older or newer than {tolerance:g} s")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AgentMuxError("UNAUTHENTICATED", "the webhook is no JSON") from error


def _digest(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _signatures(said: str) -> list[str]:
    """Those of our version; others may be there for other receivers."""
    pairs = (one.partition(",") for one in said.split())
    return [signature for version, _, signature in pairs if version == VERSION]
