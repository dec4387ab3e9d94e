"""The tool `web_fetch`, which returns a page of the web as text.

Addresses of this machine and of private networks are refused, also behind redirects: a page could otherwise make the
model read what only this machine can reach. The connection is made to the address that was checked, so that a name that
changes its address in between gains nothing. Time, size and redirects are limited. Requests use `httpx` (extra
`remote`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

import anyio

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.html_text import text_of_html
from agent_loop.tools.pinned_http import PORTS, HTTPResponse, is_available, send
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

MAX_SHOWN = 50_000
"""The most characters of one result."""
MAX_REDIRECTS = 5
MAX_URL = 4_000
_HEADERS = {"accept": "text/html, text/*, application/json;q=0.9"}
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson")
_TEXT_SUFFIXES = ("+json", "+xml")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


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

    async def _follow(self, url: str) -> tuple[str, HTTPResponse]:
        """Return the last URL and its response, after redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._get(url)
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                return url, response
            url = urljoin(url, location)
        raise ToolError(f"more than {MAX_REDIRECTS} redirects; the last one leads to {url[:200]}")

    async def _get(self, url: str) -> HTTPResponse:
        _check_url(url)
        return await send("GET", url, headers=_HEADERS, max_bytes=self.max_bytes, allow_private=self.allow_private)


def _check_url(url: str) -> None:
    """Raise `InvalidArgumentsError` unless it is an HTTP URL without a password."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in PORTS and bool(parts.hostname) and len(url) <= MAX_URL and url.isprintable()
        _ = parts.port
    except ValueError:
        valid = False
    if not valid:
        raise InvalidArgumentsError(f"{url[:200]!r} is not an http or https URL")
    if "@" in parts.netloc:
        raise InvalidArgumentsError("the URL contains a user name; web_fetch sends no credentials")


def _text_of(url: str, response: HTTPResponse) -> str:
    """Return the text of a response. Raises `ToolError` for other content."""
    kind = response.content_type
    if not kind.startswith(_TEXT_TYPES) and not kind.endswith(_TEXT_SUFFIXES):
        raise ToolError(f"{url[:200]} has the content type {kind[:100]!r}, which is not text")
    return text_of_html(response.text, url) if kind in _HTML_TYPES else response.text


def _page(url: str, text: str, offset: int, *, is_cut: bool) -> str:
    shown = text[offset : offset + MAX_SHOWN]
    rest = len(text) - offset - len(shown)
    notes = [f"[{rest:,} more characters; fetch it again with offset={offset + len(shown)}]"] if rest > 0 else []
    notes += ["[the page was cut at the size limit]"] if is_cut and rest <= 0 else []
    return "\n".join([f"[{url}]", shown or "(no text)", *notes])
