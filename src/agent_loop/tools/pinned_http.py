"""HTTP requests to checked addresses, for tools whose URLs come from a model or a document.

Addresses of this machine and of private networks are refused. The connection is made to the address that was checked,
so that a name that changes its address in between gains nothing. Redirects are not followed, compression is refused,
and the size of a response is limited. The transport of `httpx` (extra `remote`) is used without its client, which would
log each URL with its query.
"""

import importlib
import importlib.util
import ipaddress
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from agent_loop.errors import ToolError

if TYPE_CHECKING:
    import httpx

PORTS = {"http": 80, "https": 443}
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway translates to the IPv4 address in their last 32 bits."""


class HTTPResponse(NamedTuple):
    """A response whose body is complete or cut at the size limit. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    encoding: str
    is_cut: bool

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters."""
        return self.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The decoded body."""
        try:
            return self.data.decode(self.encoding, "replace")
        except LookupError:
            return self.data.decode("utf-8", "replace")


def is_available() -> bool:
    """Whether httpx is installed, without importing it."""
    return importlib.util.find_spec("httpx") is not None


async def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    max_bytes: int,
    allow_private: bool = False,
    **body: Any,
) -> HTTPResponse:
    """Send a request and return its response, with at most `max_bytes` of the body.

    `body` is `content`, `data` or `files`, as for `httpx.Request`. The time is not limited. Raises `ToolError` without
    the path and query of the URL if the host is unknown or cannot be reached, or has an address that is refused.
    """
    httpx = importlib.import_module("httpx")
    try:
        target = httpx.URL(url)
        host = target.raw_host.decode("ascii")
        address = await _address_of(host, target.port or PORTS[target.scheme], allow_private=allow_private)
        # The name is for the certificate and the server; the connection goes to the address that was checked.
        fixed = {"host": target.netloc.decode("ascii"), "accept-encoding": "identity", "user-agent": "agent-mux"}
        extensions = {"sni_hostname": host} if target.scheme == "https" else {}
        request = httpx.Request(
            method, target.copy_with(host=address), headers={**headers, **fixed}, extensions=extensions, **body
        )
    except httpx.InvalidURL:
        raise ToolError("the URL is not valid") from None
    try:
        async with httpx.AsyncHTTPTransport(trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                return await _read(response, max_bytes)
            finally:
                await response.aclose()
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise ToolError(f"{host} cannot be reached ({type(error).__name__}); is there a network?") from None


async def _address_of(host: str, port: int, *, allow_private: bool) -> str:
    """Return an address of a host. Raises `ToolError` for unknown hosts and refused addresses."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"the address of {host[:200]!r} cannot be found; is there a network?") from None
    addresses = [str(each[4][0]).partition("%")[0] for each in found]
    refused = [each for each in addresses if not allow_private and not is_public(each)]
    if refused or not addresses:
        shown = f"{host[:200]} has the address {', '.join(refused)}, which is not public"
        raise ToolError(f"{shown}; it is refused without allow_private")
    return addresses[0]


async def _read(response: "httpx.Response", max_bytes: int) -> HTTPResponse:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity") != "identity":
        raise ToolError("the response is compressed, although compression was refused")
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > max_bytes:
            break
    is_cut = len(data) > max_bytes
    encoding = response.charset_encoding or "utf-8"
    return HTTPResponse(response.status_code, headers, bytes(data[:max_bytes]), encoding, is_cut)


def is_public(address: str) -> bool:
    """Whether an address is one of the public network; of an IPv6 address that contains an IPv4 address, the latter."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        translated = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _TRANSLATED else None
        mapped = parsed.ipv4_mapped or parsed.sixtofour or translated
        if mapped is not None:
            return mapped.is_global and not mapped.is_multicast
    return parsed.is_global and not parsed.is_multicast
