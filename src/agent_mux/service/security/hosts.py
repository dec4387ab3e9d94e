"""The `Host` of requests: only names that mean this server.

DNS rebinding: a page of evil.example whose name leads to 127.0.0.1 a moment later is of the same origin as this server,
for a browser; its requests say `Host: evil.example`. An address as the host cannot be rebound.
"""

import ipaddress
import re
from collections.abc import Collection

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
