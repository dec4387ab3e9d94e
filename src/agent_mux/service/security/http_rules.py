"""Rules for every HTTP message: sizes, `Host`, `Origin`, bodies, and the headers of responses.

Sizes: the HTTP parser limits the data that it has not parsed yet; `head_size_status` is the exact limit. Bodies are
counted while they arrive, so a chunked body without a declared length is limited, too.

Host: against DNS rebinding. For a browser, a page of evil.example whose name resolves to 127.0.0.1 a moment later has
the same origin as this server, but its requests carry `Host: evil.example`. An address cannot be rebound.

Origin: pages of other sites are refused. Browsers send `Origin` with every request that can change something and with
WebSockets, and `Sec-Fetch-Site` with every request (Fetch, sections 3.2 and 3.8); programs send neither. There is no
CORS: pages of other sites cannot read responses.

Response headers: agents print anything, scripts included. A response is never interpreted as a page (exact types,
`nosniff`); if it were, its scripts would not run (`default-src 'none'`); no other site can frame or embed it; it is not
cached.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from agent_mux.service.sockets import is_wildcard

MAX_HEADERS = 100
LARGEST_HEADERS = 1 << 14  # bytes of all names and values
LONGEST_TARGET = 1 << 13  # bytes of path and query
HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
JSON = "application/json"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
_SAME_SITE = frozenset({"same-origin", "none"})
"""`none`: the user entered the address."""


def head_size_status(target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return the status for a request head that is too large, else None (RFC 9110, 15.5.15; RFC 6585, section 5)."""
    if len(target) > LONGEST_TARGET:
        return 414
    sizes = [len(name) + len(value) for name, value in headers]
    return 431 if len(sizes) > MAX_HEADERS or sum(sizes) > LARGEST_HEADERS else None


def has_two_lengths(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request has both lengths, so that a proxy could see its end elsewhere (RFC 9112, 6.1)."""
    return {b"content-length", b"transfer-encoding"} <= {name.lower() for name, _ in headers}


class RequestRefused(HTTPException):
    """Refusal of a request. As an `HTTPException` it becomes a problem even while a route reads the body."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, reason, headers)


def add_headers(headers: MutableHeaders) -> None:
    """Add the security headers that are missing. A route may set its own; a test checks that none is weaker."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def is_json(content_type: str | None) -> bool:
    """Return whether a content type is `application/json` or ends in `+json`."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def check_content_length(content_length: str | None, limit: int) -> None:
    """Refuse a body whose declared length exceeds the limit, before reading it."""
    if content_length is not None and content_length.isdigit() and int(content_length) > limit:
        raise _too_large(limit)


def bounded_receive(receive: Receive, limit: int, within: float) -> Receive:
    """Wrap `receive` to refuse a body over `limit` bytes or one that takes longer than `within` seconds.

    The time counts from the first call, since an unread body costs nothing. Raises `RequestRefused`.
    """
    size = 0
    deadline: float | None = None
    is_whole = False

    async def receive_bounded() -> Message:
        nonlocal size, deadline, is_whole
        if is_whole:
            return await receive()  # after the body only the disconnect follows, at any time
        deadline = anyio.current_time() + within if deadline is None else deadline
        with anyio.CancelScope(deadline=deadline) as scope:
            message = await receive()
        if scope.cancelled_caught:
            late = f"the body did not arrive within {within:g} s; send it again"
            raise RequestRefused(408, late, {"connection": "close"})
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
        return message

    return receive_bounded


def _too_large(limit: int) -> RequestRefused:
    return RequestRefused(413, f"the body is larger than {limit} bytes; send less")


def host_name(value: str) -> str | None:
    """Return the lower-case name or address in a `Host` header, without port and brackets; None if it is invalid."""
    found = _HOST.fullmatch(value)
    return None if found is None else found[1].strip("[]").lower().rstrip(".")


def is_allowed_host(value: str, bound: str, extra_names: Collection[str] = ()) -> bool:
    """Return whether a `Host` header names this server.

    Args:
        value: The header. Its port is ignored: a forwarded port differs.
        bound: The address that the server listens on; a wildcard address allows every address.
        extra_names: Further names of this server.
    """
    name = host_name(value)
    if not name:
        return False
    if name == "localhost" or name.endswith(".localhost"):  # always resolves to loopback: RFC 6761, section 6.3
        return True
    if name == bound.strip("[]").lower() or name in {one.lower() for one in extra_names}:
        return True
    address = _address(name)
    return address is not None and (address.is_loopback or is_wildcard(bound))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def is_from_browser(origin: str | None, fetch_site: str | None) -> bool:
    """Return whether a browser sent the request."""
    return origin is not None or fetch_site is not None


def is_same_site(origin: str | None, fetch_site: str | None, host: str, extra_names: Collection[str] = ()) -> bool:
    """Return whether no page of another site sent the request.

    Args:
        origin: The `Origin` header.
        fetch_site: The `Sec-Fetch-Site` header.
        host: The `Host` header.
        extra_names: Names of a reverse proxy in front of the server.
    """
    if fetch_site is not None and fetch_site not in _SAME_SITE:
        return False
    return origin is None or _is_own_origin(origin, host, extra_names)


def _is_own_origin(origin: str, host: str, extra_names: Collection[str]) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or parts.path or parts.query or parts.fragment:
        return False  # includes the opaque origin `null`
    if parts.netloc.lower() == host.lower():
        return True
    return host_name(parts.netloc) in {one.lower() for one in extra_names}
