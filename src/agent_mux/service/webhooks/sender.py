"""One delivery attempt: a signed POST to a checked address.

Anybody who may create a webhook chooses its URL, which must not give access to the service's own network. A name is
resolved once, and the connection goes to the checked address instead of the name, so that a later change of the name
has no effect (DNS rebinding). Redirects are not followed, proxies are not used, and the body of the response is not
read.
"""

import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import anyio
import httpx
from anyio import to_thread

from agent_mux._util.version import __version__
from agent_mux.webhooks import ID, SIGNATURE, TIMESTAMP, sign

MAX_ADDRESSES = 3
"""Addresses tried per name."""
METADATA = frozenset({ip_address("fd00:ec2::254"), ip_address("100.100.100.200"), ip_address("168.63.129.16")})
"""Metadata services of clouds besides the link-local ones. They return credentials."""
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
_ASKS_TO_WAIT = frozenset({429, 502, 503, 504})
TIMEOUT = 10.0  # seconds to connect, and to wait for data
WHOLE_TIMEOUT = 30.0  # seconds for a whole attempt
PORTS = {"http": 80, "https": 443}


class AddressRefusedError(Exception):
    """A message may not be sent to this address. The message states why."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host name; an address resolves to itself. Raises `OSError`."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def addresses_for(host: str, port: int, *, allow_private: bool, resolver: Resolve = resolve) -> list[str]:
    """Return the permitted addresses of a host. Raises `AddressRefusedError`, and `OSError` for an unknown name."""
    found = await resolver(host, port)
    fit = [address for address in found if address_refusal(address, allow_private=allow_private) is None]
    if not fit:
        reasons = [address_refusal(address, allow_private=allow_private) for address in found]
        raise AddressRefusedError(reasons[0] if reasons and reasons[0] else f"{host} has no address")
    return fit[:MAX_ADDRESSES]


def address_refusal(value: str, *, allow_private: bool) -> str | None:
    """Return why messages may not be sent to an address, None if they may. Raises `ValueError` for a host name."""
    address = _effective_address(ip_address(value.partition("%")[0]))
    if address in METADATA or address.is_link_local:
        return f"{value} is link-local or a cloud metadata service"
    if address.is_multicast or address.is_unspecified or _is_reserved(address):
        return f"{value} is not the address of a host"
    if not allow_private and not address.is_global:
        return f"{value} is a private address, and private webhooks are not allowed (--allow-private-webhooks)"
    return None


def _is_reserved(address: Address) -> bool:
    return address.is_reserved and not address.is_loopback


def _effective_address(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, since a router may extract it; else the address itself."""
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


def retry_after(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds in `Retry-After`, None if absent or unreadable (RFC 9110, section 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if status not in _ASKS_TO_WAIT or not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """Result of a delivery attempt."""

    status: int | None = None
    error: str | None = None
    """Why the attempt failed: one line without the URL, which may contain a secret."""
    retry_after: float | None = None
    """Seconds that the receiver asks to wait."""
    is_refused: bool = False
    """Whether nothing was sent because the address is not permitted."""

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status == 410


class WebhookSender:
    """Sends signed messages to permitted addresses."""

    def __init__(self, *, allow_private: bool, resolver: Resolve = resolve) -> None:
        self._allow_private = allow_private
        self._look_up = resolver
        self._trusted: ssl.SSLContext | None = None

    async def send(self, url: str, secrets: Sequence[str], id_: str, body: bytes) -> AttemptResult:
        """Make one attempt. Failures of the network and of the receiver are results, not exceptions."""
        try:
            with anyio.fail_after(WHOLE_TIMEOUT):
                return await self._send(httpx.URL(url), secrets, id_, body)
        except AddressRefusedError as error:
            return AttemptResult(error=str(error), is_refused=True)
        except Exception as error:  # noqa: BLE001  # a receiver must not end the service
            return AttemptResult(error=_reason(error))

    async def _send(self, url: httpx.URL, secrets: Sequence[str], id_: str, body: bytes) -> AttemptResult:
        host = url.raw_host.decode()
        port = url.port or PORTS[url.scheme]
        addresses = await addresses_for(host, port, allow_private=self._allow_private, resolver=self._look_up)
        if self._trusted is None:
            self._trusted = await to_thread.run_sync(ssl.create_default_context)
        now = int(time.time())
        headers = {
            "host": url.netloc.decode(),
            "content-type": "application/json",
            "user-agent": f"agent-mux/{__version__}",
            ID: id_,
            TIMESTAMP: str(now),
            SIGNATURE: sign(secrets, id_, now, body),
        }
        *others, last = addresses
        for address in others:
            try:
                return await self._post(url, host, address, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._post(url, host, last, headers, body)

    async def _post(
        self, url: httpx.URL, host: str, address: str, headers: dict[str, str], body: bytes
    ) -> AttemptResult:
        # One client per attempt: a connection reused for another name at the same address would present the
        # certificate of the first name.
        async with httpx.AsyncClient(
            verify=self._trusted or True, trust_env=False, timeout=TIMEOUT, follow_redirects=False
        ) as client:
            request = client.build_request("POST", url.copy_with(host=address), headers=headers, content=body)
            request.extensions["sni_hostname"] = host
            response = await client.send(request, stream=True)
            try:
                return _answer(response)
            finally:
                await response.aclose()


def _answer(response: httpx.Response) -> AttemptResult:
    status = response.status_code
    if 200 <= status < 300:
        return AttemptResult(status)
    moved = "; redirects are not followed; change the URL of the webhook" if 300 <= status < 400 else ""
    return AttemptResult(
        status, f"the receiver answered {status}{moved}", retry_after(status, response.headers, time.time())
    )


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "the receiver did not answer in time"
    return " ".join(str(error).split())[:200] or type(error).__name__
