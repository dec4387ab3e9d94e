"""Where messages may go. Whoever makes a webhook chooses a URL; the service must not become a way into its own network.

A name is resolved once, and the connection goes to the address that was checked, not to the name: what the name stands
for a moment later does not matter (DNS rebinding).


When a message that could not be delivered is tried again.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import anyio

MOST_TRIED = 3
"""Addresses of one name."""
METADATA = frozenset({ip_address("fd00:ec2::254"), ip_address("100.100.100.200"), ip_address("168.63.129.16")})
"""Of clouds, besides the link-local ones: what answers there hands out credentials."""
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class RefusedError(Exception):
    """No message goes there. Says why."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, or the address that it is. Raises `OSError`."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def addresses_for(host: str, port: int, *, allow_private: bool, look_up: Resolve = resolve) -> list[str]:
    """Where a message for this host may go. Raises `RefusedError`, and `OSError` for a name that nobody knows."""
    found = await look_up(host, port)
    fit = [address for address in found if why_not(address, allow_private=allow_private) is None]
    if not fit:
        reasons = [why_not(address, allow_private=allow_private) for address in found]
        raise RefusedError(reasons[0] if reasons and reasons[0] else f"{host} has no address")
    return fit[:MOST_TRIED]


def why_not(said: str, *, allow_private: bool) -> str | None:
    """What keeps messages from an address; None: nothing."""
    address = _meant(ip_address(said.partition("%")[0]))
    if address in METADATA or address.is_link_local:
        return f"{said} is link-local or of a cloud's metadata service"
    if address.is_multicast or address.is_unspecified or _is_reserved(address):
        return f"{said} is no address of a host"
    if not allow_private and not address.is_global:
        return f"{said} is a private address, and private webhooks are not allowed (--allow-private-webhooks)"
    return None


def _is_reserved(address: Address) -> bool:
    return address.is_reserved and not address.is_loopback


def _meant(address: Address) -> Address:
    """The IPv4 address in an IPv6 address that stands for one: a router on the way takes it out."""
    if isinstance(address, IPv4Address):
        return address
    embedded = address.ipv4_mapped or address.sixtofour
    if embedded is None and address.teredo is not None:
        embedded = address.teredo[1]
    if embedded is None and any(isinstance(net, IPv6Network) and address in net for net in _NAT64):
        embedded = IPv4Address(int(address) & 0xFFFFFFFF)
    if embedded is None and int(address) >> 32 == 0 and not (address.is_loopback or address.is_unspecified):
        embedded = IPv4Address(int(address))
    return embedded or address


MINUTE, HOUR = 60.0, 3600.0
DELAYS = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 10 * HOUR)
"""Seconds behind each attempt that failed; 8 attempts in about a day."""
ATTEMPTS = len(DELAYS) + 1
JITTER = 0.2
"""Of the delay, at random: those that failed together do not come back together."""
LONGEST_WAIT = 24 * HOUR
"""However long a receiver asks for."""
_ASKS_TO_WAIT = frozenset({429, 502, 503, 504})


def delay_after(attempts: int, chance: float, asked: float | None = None) -> float | None:
    """Seconds until the next attempt; None: there is no other one.

    Args:
        attempts: How many there were.
        chance: A random number from 0 to 1.
        asked: Seconds that the receiver wants to be left alone for.
    """
    if attempts >= ATTEMPTS:
        return None
    usual = DELAYS[attempts - 1] * (1 + JITTER * chance)
    return max(usual, min(asked or 0.0, LONGEST_WAIT))


def asked_delay(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """What `Retry-After` says, in seconds; None: nothing, or nothing readable. Source: RFC 9110, section 10.2.3."""
    said = headers.get("retry-after", "").strip()
    if status not in _ASKS_TO_WAIT or not said:
        return None
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        when = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)


def iso(ms: int) -> str:
    """A time in milliseconds since the epoch as in ISO 8601, UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
