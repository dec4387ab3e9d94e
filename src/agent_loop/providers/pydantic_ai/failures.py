"""Conversion of exceptions of pydantic-ai and the vendors' clients to our errors.

pydantic-ai classifies most errors; the others are classified by phrases in their text. Keys are redacted.
"""

import re
from collections.abc import Iterable
from typing import Any

from pydantic_ai import exceptions as native

from agent_loop.errors import (
    AuthenticationError,
    ContextExceededError,
    NetworkError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    redact,
)

TOO_LONG_STATUSES = frozenset({400, 413})
SERVER_ERROR = 500
PAYMENT_REQUIRED = 402
CUT_OFF_MESSAGE = "Streamed response ended without"
"""Text of pydantic-ai's error for a truncated stream of chat completions."""
MAX_DETAIL_CHARACTERS = 500  # characters; some providers answer with a whole page of HTML
TOO_LONG = re.compile(
    r"prompt is too long|input is too long|exceeds? the (?:model'?s? )?(?:maximum )?context"
    r"|context[ _](?:length|window|size)(?: is)?[ _]?(?:limit[ _])?exceed|maximum context length"
    r"|exceeds? the maximum number of (?:input )?tokens|too many (?:input )?tokens|request_too_large"
    r"|input token count.{0,40}exceeds|reduce the length of the messages|maximum prompt length"
    r"|exceeds the limit of \d+ tokens|context window exceeds|exceeded model token limit"
    r"|input length and `?max_tokens`? exceed|available context size|greater than the context length",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(
    r"insufficient_quota|billing_hard_limit|credit balance is too low|insufficient (?:balance|credits?|funds)"
    r"|out of credits",
    re.IGNORECASE,
)
"""Codes and phrases of an account without credit. "Exceeded your current quota" alone is a rate limit at Google."""
TOKENS = (
    re.compile(r"(?P<used>\d{3,}) tokens > (?P<most>\d{3,})"),
    re.compile(r"(?:limit of|length is|maximum(?: of)?) (?P<most>\d{3,}) tokens.*?(?P<used>\d{3,}) tokens", re.DOTALL),
    re.compile(r"count \(?(?P<used>\d{3,})\)? exceeds.*?\(?(?P<most>\d{3,})\)?", re.DOTALL),
)


def provider_error(error: Exception, provider: str, secrets: Iterable[str] = ()) -> ProviderError:
    """Return our error for an exception of a model call; its message names the provider and contains no secret."""
    detail = redact(_detail(error), secrets)
    status = error.status_code if isinstance(error, native.ModelHTTPError) else None
    fields: dict[str, Any] = {"provider": provider, "status": status}
    if _is_too_long(error, status, detail):
        used, most = _tokens(detail)
        return ContextExceededError(
            f"{provider} reports that the conversation is too long for the model: {detail}; make it shorter",
            provider=provider,
            status=status,
            used_tokens=used,
            max_tokens=most,
        )
    if _has_no_credit(error, status, detail):
        return QuotaExceededError(
            f"the account at {provider} has no credit or quota left: {detail}; add credit or use another provider",
            **fields,
        )
    if isinstance(error, native.ModelAuthenticationError) or status in {401, 403}:
        return AuthenticationError(f"{provider} does not accept the key: {detail}; check it and its rights", **fields)
    if _is_rate_limit(error, status):
        return RateLimitedError(
            f"{provider} limits the request rate: {detail}; try again later",
            **fields,
            retry_after=getattr(error, "retry_after", None),
        )
    if _is_network(error, status):
        return NetworkError(f"{provider} could not be reached or closed the connection: {detail}; try again", **fields)
    return ProviderError(f"{provider} could not answer: {detail}", **fields)


def _is_too_long(error: Exception, status: int | None, detail: str) -> bool:
    if isinstance(error, native.ModelContextWindowExceededError):
        return True
    is_candidate = status in TOO_LONG_STATUSES or (status is None and isinstance(error, native.ModelAPIError))
    return is_candidate and TOO_LONG.search(detail) is not None


def _has_no_credit(error: Exception, status: int | None, detail: str) -> bool:
    if isinstance(error, native.ModelQuotaExceededError) or status == PAYMENT_REQUIRED:
        return True
    return isinstance(error, native.ModelAPIError) and NO_CREDIT.search(f"{detail} {_error_code(error)}") is not None


def _error_code(error: Exception) -> str:
    """Return the machine-readable code and type in the error body, in any of the vendors' layouts."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    return f"{inner.get('code')} {inner.get('type')}" if isinstance(inner, dict) else ""


def _is_rate_limit(error: Exception, status: int | None) -> bool:
    return isinstance(error, native.ModelRateLimitError) or status == 429


def _is_network(error: Exception, status: int | None) -> bool:
    if status is not None:
        return status >= SERVER_ERROR or status == 408
    kinds = (
        native.ModelConnectionError,
        native.ModelRequestTimeout,
        native.ModelUnavailableError,
        native.ModelServerError,
        OSError,
        TimeoutError,
    )
    return isinstance(error, kinds) or _is_broken_transport(error) or CUT_OFF_MESSAGE in str(error)


def _is_broken_transport(error: BaseException) -> bool:
    """Return whether an HTTP client's error passed through, or a stream ended early or was corrupt."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"TransportError", "StreamError", "EventStreamError", "HTTPClientError", "ParserError",
                         "JSONDecodeError", "UnicodeDecodeError"})  # fmt: skip


def _detail(error: Exception) -> str:
    body = getattr(error, "body", None)
    message = _error_message(body) or getattr(error, "message", None) or str(error) or type(error).__name__
    text = " ".join(str(message).split()).rstrip(".")
    return text if len(text) <= MAX_DETAIL_CHARACTERS else f"{text[:MAX_DETAIL_CHARACTERS]}..."


def _error_message(body: Any) -> str | None:
    """Return the message in an error body, in any of the vendors' layouts."""
    if isinstance(body, list) and body:
        return _error_message(body[0])
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    if isinstance(inner, dict | list):
        return _error_message(inner)
    message = body.get("message") or body.get("Message") or inner
    return message if isinstance(message, str) else None


def _tokens(detail: str) -> tuple[int | None, int | None]:
    """Return the used and maximum tokens, if the text states them."""
    for pattern in TOKENS:
        if (found := pattern.search(detail.replace(",", ""))) is not None:
            return int(found["used"]), int(found["most"])
    return None, None
