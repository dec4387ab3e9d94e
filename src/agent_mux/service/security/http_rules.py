"""How large a request may be. The parser has a limit too, for what it has not understood yet; this is the exact one.

A request that is not let in: the status, and one sentence.


Headers of every answer: what a browser may do with it, which is nothing but to show it as what it is.

Agents print what they like, scripts too. An answer is never taken for a page (exact types, `nosniff`); if it were one,
no script of it would run (`default-src 'none'`); no other site can frame or embed it; nobody keeps a copy.


Bodies of requests: JSON, not larger than allowed, and not slower.

They are counted while they come, so that a chunked one without a length is no way around the limit.


The `Host` of requests: only names that mean this server.

DNS rebinding: a page of evil.example whose name leads to 127.0.0.1 a moment later is of the same origin as this server,
for a browser; its requests say `Host: evil.example`. An address as the host cannot be rebound.


Requests that a page of another site makes in somebody's browser: none. Source: Fetch, sections 3.2 and 3.8.

Browsers say where a request comes from: `Origin` with all that can change something and with WebSockets,
`Sec-Fetch-Site` with everything. Programs say neither. There is no CORS: pages of other sites read nothing here.
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


def head_size_status(target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The status for a head that is too large; None: it is not. Source: RFC 9110, 15.5.15, and RFC 6585, section 5."""
    if len(target) > LONGEST_TARGET:
        return 414
    sizes = [len(name) + len(value) for name, value in headers]
    return 431 if len(sizes) > MAX_HEADERS or sum(sizes) > LARGEST_HEADERS else None


class RequestRefused(HTTPException):
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


def check_content_length(content_length: str | None, limit: int) -> None:
    """Raises `Refused` for a body that says itself that it is too large, before any of it is read."""
    if content_length is not None and content_length.isdigit() and int(content_length) > limit:
        raise _too_large(limit)


def bounded_receive(receive: Receive, limit: int, within: float) -> Receive:
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
            raise RequestRefused(408, f"the body did not come within {within:g} s", {"connection": "close"})
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
        return message

    return receive_bounded


def _too_large(limit: int) -> RequestRefused:
    return RequestRefused(413, f"the body is larger than {limit} bytes; send less")


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)


def host_name(value: str) -> str | None:
    """Name or address out of a `Host`, in small letters, without port and brackets; None: it is none."""
    found = _HOST.fullmatch(value)
    return None if found is None else found[1].strip("[]").lower().rstrip(".")


def is_allowed_host(value: str, bound: str, extra_names: Collection[str] = ()) -> bool:
    """It means this server.

    Args:
        said: The header. Its port may be any: what is forwarded has another one.
        bound: The address that is listened on; one that stands for all: every address will do.
        further: Names that mean it, too.
    """
    name = host_name(value)
    if not name:
        return False
    if name == "localhost" or name.endswith(".localhost"):  # never looked up elsewhere: RFC 6761, section 6.3
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


_SAME_SITE = frozenset({"same-origin", "none"})
"""`none`: a person typed the address."""


def is_from_browser(origin: str | None, fetch_site: str | None) -> bool:
    """A browser sent it."""
    return origin is not None or fetch_site is not None


def is_same_site(origin: str | None, fetch_site: str | None, host: str, extra_names: Collection[str] = ()) -> bool:
    """No page of another site sent it. `host`: what the request says; `further`: names of a proxy before us."""
    if fetch_site is not None and fetch_site not in _SAME_SITE:
        return False
    return origin is None or _is_own_origin(origin, host, extra_names)


def _is_own_origin(origin: str, host: str, extra_names: Collection[str]) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or parts.path or parts.query or parts.fragment:
        return False  # also `null`: a page that is nobody's
    if parts.netloc.lower() == host.lower():
        return True
    return host_name(parts.netloc) in {one.lower() for one in extra_names}
