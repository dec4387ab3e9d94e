"""How large a request may be. The parser has a limit too, for what it has not understood yet; this is the exact one.

A request that is not let in: the status, and one sentence.


Headers of every answer: what a browser may do with it, which is nothing but to show it as what it is.

Agents print what they like, scripts too. An answer is never taken for a page (exact types, `nosniff`); if it were one,
no script of it would run (`default-src 'none'`); no other site can frame or embed it; nobody keeps a copy.


Bodies of requests: JSON, not larger than allowed, and not slower.

They are counted while they come, so that a chunked one without a length is no way around the limit.
"""

from collections.abc import Iterable, Mapping

import anyio
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

MOST_HEADERS = 100
LARGEST_HEADERS = 1 << 14  # bytes of all names and values
LONGEST_TARGET = 1 << 13  # bytes of path and query


def wrong_size(target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The status for a head that is too large; None: it is not. Source: RFC 9110, 15.5.15, and RFC 6585, section 5."""
    if len(target) > LONGEST_TARGET:
        return 414
    sizes = [len(name) + len(value) for name, value in headers]
    return 431 if len(sizes) > MOST_HEADERS or sum(sizes) > LARGEST_HEADERS else None


class Refused(HTTPException):
    """As any `HTTPException`, it becomes a problem: also when it is raised while a route reads its body."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, why, headers)


HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def add_headers(headers: MutableHeaders) -> None:
    """Those that are not there. A route may say its own; a test says that none is weaker."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


JSON = "application/json"


def is_json(content_type: str | None) -> bool:
    """`application/json`, or something that ends in `+json`."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def check_declared(content_length: str | None, limit: int) -> None:
    """Raises `Refused` for a body that says itself that it is too large, before any of it is read."""
    if content_length is not None and content_length.isdigit() and int(content_length) > limit:
        raise _too_large(limit)


def bounded(receive: Receive, limit: int, within: float) -> Receive:
    """`receive`, which raises `Refused` when the body becomes larger than `limit` bytes, or takes longer than `within`.

    The time counts from the first call: nobody waits for a body that is not read.
    """
    size = 0
    deadline: float | None = None
    is_whole = False

    async def receive_bounded() -> Message:
        nonlocal size, deadline, is_whole
        if is_whole:
            return await receive()  # what comes now is the end of the connection, whenever that is
        deadline = anyio.current_time() + within if deadline is None else deadline
        with anyio.CancelScope(deadline=deadline) as scope:
            message = await receive()
        if scope.cancelled_caught:
            raise Refused(408, f"the body did not come within {within:g} s", {"connection": "close"})
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
        return message

    return receive_bounded


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes; send less")
