"""A tool that an HTTP service executes. Source: hooks seed, section 2.4.

Each call is one POST of `{"name", "args", "call_id"}` as JSON. The service answers 2xx with `{"output": ...}`, with
`{"error": "..."}` where the tool failed, or with any other body, which then is the output as it stands.

`httpx` does it, from the extra `remote`: it can be cancelled on asyncio and trio, which a client in a thread cannot.
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
"""Of an answer."""
SHOWN = 500
"""Characters of an answer that an error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPTool:
    """Forwards its calls to `callback_url`. Raises `ConfigurationError` without httpx, or for no HTTP address."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    callback_url: str = field(repr=False)
    """It may contain a secret: errors and `repr` have its host only."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of every call, for example `Authorization`. Never shown."""
    timeout: float = 30.0
    """Seconds for the whole call."""
    max_bytes: int = MOST_BYTES
    """An answer that is larger is an error."""
    label: str = ""
    kind: ToolKind = "fetch"
    risk: Risk = "medium"
    sequential: bool = False
    client: "httpx.AsyncClient | None" = field(default=None, repr=False)
    """Makes the calls, and is never closed; None: one for each call, without the environment's proxies and `.netrc`."""

    def __post_init__(self) -> None:
        _httpx()
        if not _host(self.callback_url):
            raise ConfigurationError(f"the callback of tool {self.name!r} is no http or https address")
        if self.timeout <= 0 or self.max_bytes < 1:
            raise ConfigurationError(f"timeout and max_bytes of tool {self.name!r} must be above 0")

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Ask the service. Raises `ToolError` where it fails, answers too late, too much, or with an error."""
        body = {"name": self.name, "args": arguments, "call_id": context.call_id}
        status, answer = await self._answered(json.dumps(body, allow_nan=False).encode())
        if not 200 <= status < 300:
            said = f": {answer[:SHOWN]}" if answer.strip() else ""
            more = "; redirects are not followed" if 300 <= status < 400 else ""
            raise ToolError(f"tool {self.name!r}: {_host(self.callback_url)} answered {status}{more}{said}")
        return _output(answer)

    async def _answered(self, body: bytes) -> tuple[int, str]:
        """Status and text of the answer, within the time."""
        place = _host(self.callback_url)
        httpx = _httpx()
        try:
            with anyio.fail_after(self.timeout):
                if self.client is not None:
                    return await self._asked(self.client, body)
                # The scope around it bounds everything.
                async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
                    return await self._asked(client, body)
        except TimeoutError:
            raise ToolError(f"tool {self.name!r}: {place} did not answer within {self.timeout:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ToolError(f"tool {self.name!r}: {place} cannot be reached ({type(error).__name__})") from None

    async def _asked(self, client: "httpx.AsyncClient", body: bytes) -> tuple[int, str]:
        headers = {"accept": "application/json, text/plain", **self.headers}
        # Not compressed: a few bytes could be gigabytes then.
        fixed = {"content-type": "application/json", "accept-encoding": "identity"}
        request = client.build_request("POST", self.callback_url, content=body, headers={**headers, **fixed})
        answer = await client.send(request, stream=True, follow_redirects=False)
        try:
            return answer.status_code, await self._text(answer)
        finally:
            await answer.aclose()

    async def _text(self, answer: "httpx.Response") -> str:
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise ToolError(f"tool {self.name!r}: the answer is compressed, which was not asked for")
        whole = bytearray()
        async for chunk in answer.aiter_bytes():
            whole += chunk
            if len(whole) > self.max_bytes:
                raise ToolError(f"tool {self.name!r}: the answer is larger than {self.max_bytes} bytes")
        return whole.decode(errors="replace")


def _httpx() -> Any:
    try:
        return importlib.import_module("httpx")
    except ImportError:
        raise ConfigurationError("HTTP tools need httpx; try: pip install 'agent-mux[remote]'") from None


def _host(url: str) -> str:
    """Scheme, host and port: what may be shown of an address. Empty where it is none."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme in {"http", "https"} and parts.hostname else ""


def _output(answer: str) -> str:
    """What the service says came of it. Raises `ToolError` with its error."""
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    if not isinstance(said, dict):
        return answer
    if said.get("error"):
        raise ToolError(_text_of(said["error"])[:MOST_BYTES])
    return _text_of(said["output"]) if "output" in said else answer


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
