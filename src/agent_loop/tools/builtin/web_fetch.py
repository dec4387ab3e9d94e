"""The tool `web_fetch`, which returns a page of the web as text.

Addresses of this machine and of private networks are refused, also behind redirects: a page could otherwise make the
model read what only this machine can reach. The connection is made to the address that was checked, so that a name that
changes its address in between gains nothing. Time, size and redirects are limited. Requests use `httpx` (extra
`remote`).
"""

import importlib
import importlib.util
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.html_text import text_of_html
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

if TYPE_CHECKING:
    import httpx

MAX_SHOWN = 50_000
"""The most characters of one result."""
MAX_REDIRECTS = 5
MAX_URL = 4_000
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway translates to the IPv4 address in their last 32 bits."""
_PORTS = {"http": 80, "https": 443}
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson")
_TEXT_SUFFIXES = ("+json", "+xml")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class _Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    data: bytes
    encoding: str
    is_cut: bool


def is_available() -> bool:
    """Whether httpx is installed, without importing it."""
    return importlib.util.find_spec("httpx") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFetchTool:
    """The tool `web_fetch`. Raises `ConfigurationError` if httpx is not installed, or a limit is not above 0."""

    timeout: float = 30.0
    """The time limit of a call in seconds, redirects included."""
    max_bytes: int = 5 * 1024 * 1024
    """The bytes of a response that are read; the rest is left out."""
    allow_private: bool = False
    """Whether addresses of this machine and of private networks are allowed."""

    name: ClassVar[str] = "web_fetch"
    label: ClassVar[str] = "Fetch page"
    kind: ClassVar[ToolKind] = "fetch"
    risk: ClassVar[Risk] = "medium"
    read_only: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Fetch a page of the web by GET and return its text; HTML is converted. Use it for documentation and pages "
        "that the user names. Addresses of this machine and of private networks are refused; use the shell for those."
    )
    parameters: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The http or https URL."},
            "offset": {"type": "integer", "minimum": 0, "description": "Characters of the text to skip; default 0."},
        },
        "required": ["url"],
        "additionalProperties": False,
    }

    def __post_init__(self) -> None:
        if not is_available():
            raise ConfigurationError("web_fetch needs httpx; try: pip install 'agent-mux[remote]'")
        if self.timeout <= 0 or self.max_bytes < 1:
            raise ConfigurationError("timeout and max_bytes of web_fetch must be above 0")

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:  # noqa: ARG002  # the protocol of tools
        """Fetch a page. Raises `ToolError` if it cannot be fetched, is not text, or is at a refused address."""
        url = str(arguments["url"])
        try:
            with anyio.fail_after(self.timeout):
                url, response = await self._follow(url)
        except TimeoutError:
            raise ToolError(f"{url[:200]} did not respond within {self.timeout:g} seconds") from None
        if not 200 <= response.status < 300:
            raise ToolError(f"{url[:200]} returned status {response.status}")
        text = _text_of(url, response)
        offset = int(arguments.get("offset") or 0)
        return ToolResult((Text(_page(url, text, offset, is_cut=response.is_cut)),), details={"url": url})

    async def _follow(self, url: str) -> tuple[str, _Response]:
        """Return the last URL and its response, after redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._get(url)
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                return url, response
            url = urljoin(url, location)
        raise ToolError(f"more than {MAX_REDIRECTS} redirects; the last one leads to {url[:200]}")

    async def _get(self, url: str) -> _Response:
        parts = _parse_url(url)
        host = parts.hostname or ""
        address = await self._address_of(host, parts.port or _PORTS[parts.scheme])
        httpx = importlib.import_module("httpx")
        # The name is for the certificate and the server; the connection goes to the address that was checked.
        target = httpx.URL(url).copy_with(host=address)
        headers = {"host": parts.netloc.rpartition("@")[2], "accept": "text/html, text/*, application/json;q=0.9"}
        # Compression is refused: a few bytes could expand to gigabytes.
        headers |= {"accept-encoding": "identity", "user-agent": "agent-mux"}
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
                request = client.build_request(
                    "GET", target, headers=headers, extensions={"sni_hostname": host} if parts.scheme == "https" else {}
                )
                response = await client.send(request, stream=True, follow_redirects=False)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ToolError(f"{host} cannot be reached ({type(error).__name__}); is there a network?") from None

    async def _address_of(self, host: str, port: int) -> str:
        """Return an address of a host. Raises `ToolError` for unknown hosts and refused addresses."""
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(f"the address of {host[:200]!r} cannot be found; is there a network?") from None
        addresses = [str(each[4][0]).partition("%")[0] for each in found]
        refused = [each for each in addresses if not self.allow_private and not _is_public(each)]
        if refused or not addresses:
            raise ToolError(f"{host[:200]} has the address {', '.join(refused)}, which is not public; it is refused")
        return addresses[0]

    async def _read(self, response: "httpx.Response") -> _Response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if headers.get("content-encoding", "identity") != "identity":
            raise ToolError("the response is compressed, although compression was refused")
        data = bytearray()
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self.max_bytes:
                break
        is_cut = len(data) > self.max_bytes
        return _Response(
            response.status_code, headers, bytes(data[: self.max_bytes]), response.charset_encoding or "utf-8", is_cut
        )


def _parse_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises `InvalidArgumentsError` unless it is an HTTP URL without a password."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _PORTS and bool(parts.hostname) and len(url) <= MAX_URL and url.isprintable()
        _ = parts.port
    except ValueError:
        valid = False
    if not valid:
        raise InvalidArgumentsError(f"{url[:200]!r} is not an http or https URL")
    if "@" in parts.netloc:
        raise InvalidArgumentsError("the URL contains a user name; web_fetch sends no credentials")
    return parts


def _is_public(address: str) -> bool:
    """Whether an address is one of the public network; of an IPv6 address that contains an IPv4 address, the latter."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        translated = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _TRANSLATED else None
        mapped = parsed.ipv4_mapped or parsed.sixtofour or translated
        if mapped is not None:
            return mapped.is_global and not mapped.is_multicast
    return parsed.is_global and not parsed.is_multicast


def _text_of(url: str, response: _Response) -> str:
    """Return the text of a response. Raises `ToolError` for other content."""
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not kind.startswith(_TEXT_TYPES) and not kind.endswith(_TEXT_SUFFIXES):
        raise ToolError(f"{url[:200]} has the content type {kind[:100]!r}, which is not text")
    try:
        text = response.data.decode(response.encoding, "replace")
    except LookupError:
        text = response.data.decode("utf-8", "replace")
    return text_of_html(text, url) if kind in _HTML_TYPES else text


def _page(url: str, text: str, offset: int, *, is_cut: bool) -> str:
    shown = text[offset : offset + MAX_SHOWN]
    rest = len(text) - offset - len(shown)
    notes = [f"[{rest:,} more characters; fetch it again with offset={offset + len(shown)}]"] if rest > 0 else []
    notes += ["[the page was cut at the size limit]"] if is_cut and rest <= 0 else []
    return "\n".join([f"[{url}]", shown or "(no text)", *notes])
