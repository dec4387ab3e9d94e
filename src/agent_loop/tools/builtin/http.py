"""A tool that an HTTP service executes.

Each call is one POST of `{"name", "args", "call_id"}` as JSON. The service responds with status 2xx and
`{"output": ...}`, or `{"error": "..."}` if the tool failed. Any other body is used as the output unchanged.

Requests use `httpx` (extra `remote`), which can be cancelled on asyncio and trio, unlike a client in a thread.
"""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 65_536
"""The largest response body by default."""
SHOWN = 500
"""The most characters of a response body that an error message contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPTool:
    """A tool that forwards its calls to `callback_url`.

    Raises `ConfigurationError` if httpx is not installed, or the URL is not an HTTP URL.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    callback_url: str = field(repr=False)
    """The URL of the service. It may contain a secret, so errors contain its host only and `repr` leaves it out."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request, for example `Authorization`. They never appear in errors."""
    timeout: float = 30.0
    """The time limit of a call in seconds."""
    max_bytes: int = MOST_BYTES
    """The largest accepted response body; a larger one is an error."""
    label: str = ""
    kind: ToolKind = "fetch"
    risk: Risk = "medium"
    read_only: bool = False
    """Whether calls change nothing, so that several may run concurrently."""
    sequential: bool = False
    client: "httpx.AsyncClient | None" = field(default=None, repr=False)
    """The client for all calls; it is not closed. None: a new client for each call, which ignores proxy settings and
    `.netrc` of the environment.
    """

    def __post_init__(self) -> None:
        _httpx()
        if not _host(self.callback_url):
            raise ConfigurationError(f"the callback URL of tool {self.name!r} is not an http or https URL")
        if self.timeout <= 0 or self.max_bytes < 1:
            raise ConfigurationError(f"timeout and max_bytes of tool {self.name!r} must be above 0")

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Send a call to the service. Raises `ToolError` if it fails, times out, or returns too much or an error."""
        body = {"name": self.name, "args": arguments, "call_id": context.call_id}
        status, text = await self._post(json.dumps(body, allow_nan=False).encode())
        if not 200 <= status < 300:
            details = f": {text[:SHOWN]}" if text.strip() else ""
            more = "; redirects are not followed" if 300 <= status < 400 else ""
            raise ToolError(f"tool {self.name!r}: {_host(self.callback_url)} returned status {status}{more}{details}")
        return _parse_output(text)

    async def _post(self, body: bytes) -> tuple[int, str]:
        """Return status and text of the response. Raises `ToolError` on timeouts and network errors."""
        host = _host(self.callback_url)
        httpx = _httpx()
        try:
            with anyio.fail_after(self.timeout):
                if self.client is not None:
                    return await self._send(self.client, body)
                # `fail_after` limits the whole request.
                async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
                    return await self._send(client, body)
        except TimeoutError:
            raise ToolError(f"tool {self.name!r}: {host} did not respond within {self.timeout:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ToolError(f"tool {self.name!r}: {host} cannot be reached ({type(error).__name__})") from None

    async def _send(self, client: "httpx.AsyncClient", body: bytes) -> tuple[int, str]:
        headers = {"accept": "application/json, text/plain", **self.headers}
        # Compression is refused: a few bytes could expand to gigabytes.
        fixed = {"content-type": "application/json", "accept-encoding": "identity"}
        request = client.build_request("POST", self.callback_url, content=body, headers={**headers, **fixed})
        response = await client.send(request, stream=True, follow_redirects=False)
        try:
            return response.status_code, await self._read_text(response)
        finally:
            await response.aclose()

    async def _read_text(self, response: "httpx.Response") -> str:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ToolError(f"tool {self.name!r}: the response is compressed, although compression was refused")
        whole = bytearray()
        async for chunk in response.aiter_bytes():
            whole += chunk
            if len(whole) > self.max_bytes:
                raise ToolError(f"tool {self.name!r}: the response is larger than {self.max_bytes} bytes")
        return whole.decode(errors="replace")


def _httpx() -> Any:
    try:
        return importlib.import_module("httpx")
    except ImportError:
        raise ConfigurationError("HTTP tools need httpx; try: pip install 'agent-mux[remote]'") from None


def _host(url: str) -> str:
    """Return scheme, host and port of a URL, which contain no secret. Empty for anything but an HTTP URL."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme in {"http", "https"} and parts.hostname else ""


def _parse_output(text: str) -> str:
    """Return the output in a response body. Raises `ToolError` with the error in it."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(body, dict):
        return text
    if body.get("error"):
        raise ToolError(_text_of(body["error"])[:MOST_BYTES])
    return _text_of(body["output"]) if "output" in body else text


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
