"""The `Host` of requests: only names that mean this server.

DNS rebinding: a page of evil.example whose name leads to 127.0.0.1 a moment later is of the same origin as this server,
for a browser; its requests say `Host: evil.example`. An address as the host cannot be rebound.


Requests that a page of another site makes in somebody's browser: none. Source: Fetch, sections 3.2 and 3.8.

Browsers say where a request comes from: `Origin` with all that can change something and with WebSockets,
`Sec-Fetch-Site` with everything. Programs say neither. There is no CORS: pages of other sites read nothing here.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from agent_mux.service.listening import is_wildcard

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)


def host_name(said: str) -> str | None:
    """Name or address out of a `Host`, in small letters, without port and brackets; None: it is none."""
    found = _HOST.fullmatch(said)
    return None if found is None else found[1].strip("[]").lower().rstrip(".")


def is_own_host(said: str, bound: str, further: Collection[str] = ()) -> bool:
    """It means this server.

    Args:
        said: The header. Its port may be any: what is forwarded has another one.
        bound: The address that is listened on; one that stands for all: every address will do.
        further: Names that mean it, too.
    """
    name = host_name(said)
    if not name:
        return False
    if name == "localhost" or name.endswith(".localhost"):  # never looked up elsewhere: RFC 6761, section 6.3
        return True
    if name == bound.strip("[]").lower() or name in {one.lower() for one in further}:
        return True
    address = _address(name)
    return address is not None and (address.is_loopback or is_wildcard(bound))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


_OWN = frozenset({"same-origin", "none"})
"""`none`: a person typed the address."""


def is_from_browser(origin: str | None, fetch_site: str | None) -> bool:
    """A browser sent it."""
    return origin is not None or fetch_site is not None


def is_own_site(origin: str | None, fetch_site: str | None, host: str, further: Collection[str] = ()) -> bool:
    """No page of another site sent it. `host`: what the request says; `further`: names of a proxy before us."""
    if fetch_site is not None and fetch_site not in _OWN:
        return False
    return origin is None or _is_own_origin(origin, host, further)


def _is_own_origin(origin: str, host: str, further: Collection[str]) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or parts.path or parts.query or parts.fragment:
        return False  # also `null`: a page that is nobody's
    if parts.netloc.lower() == host.lower():
        return True
    return host_name(parts.netloc) in {one.lower() for one in further}
