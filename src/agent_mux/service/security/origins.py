"""Requests that a page of another site makes in somebody's browser: none. Source: Fetch, sections 3.2 and 3.8.

Browsers say where a request comes from: `Origin` with all that can change something and with WebSockets,
`Sec-Fetch-Site` with everything. Programs say neither. There is no CORS: pages of other sites read nothing here.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from agent_mux.service.security.hosts import host_name

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
