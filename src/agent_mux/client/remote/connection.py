"""Where a service is, and who asks.

Problem details (RFC 9457) of the service, as the errors that they were there.


Asking the service: one request, one answer, or the error that it tells. Every request has a time limit.
"""

import ipaddress
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

import anyio
import httpx
import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux._util.version import __version__
from agent_mux.errors import (
    ERROR_CODES,
    AgentMuxError,
    AnyCode,
    CapabilityError,
    FieldError,
    ServiceCode,
    ValidationError,
)
from agent_mux.redaction import HIDDEN
from agent_mux.settings.requests import REQUEST_KEYS

URL_VARIABLE = "AGENT_MUX_SERVER"
TOKEN_VARIABLE = "AGENT_MUX_SERVER_TOKEN"  # noqa: S105  # the name of it
_TOKEN = re.compile(r"[!-~]+")
_URLS = "http://HOST:PORT or https://HOST, with or without a path"
KEPT_CONNECTIONS = 20
KEPT_FOR = 5.0  # seconds; the service closes what is idle for longer, and might do so while we ask


@dataclass(frozen=True, slots=True)
class Address:
    """A service."""

    url: str
    """Without a slash at its end."""
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str | None, token: str | None) -> "Address":
        """As given, else as the environment says. Raises `ValidationError` for what is none."""
        url = url or os.environ.get(URL_VARIABLE)
        if not url:
            raise ValidationError([FieldError("url", url, f"{_URLS}; or say it in {URL_VARIABLE}")])
        token = token or os.environ.get(TOKEN_VARIABLE) or None
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValidationError([FieldError("token", HIDDEN, "printable ASCII characters without blanks")])
        return cls(_checked(url), token)

    @property
    def headers(self) -> dict[str, str]:
        """With every request."""
        known = {"user-agent": f"agent-mux/{__version__}"}
        return known if self.token is None else {**known, "authorization": f"Bearer {self.token}"}

    @property
    def is_here(self) -> bool:
        """On this machine, without a proxy between."""
        host = httpx.URL(self.url).host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def client(self) -> httpx.Client:
        """To ask, blocking."""
        return httpx.Client(headers=self.headers, verify=self._trusted(), trust_env=not self.is_here)

    def async_client(self) -> httpx.AsyncClient:
        """To ask, on asyncio and trio."""
        # One connection for each run that is watched: no limit.
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_FOR
        )
        return httpx.AsyncClient(
            headers=self.headers, verify=self._trusted(), trust_env=not self.is_here, limits=limits
        )

    def _trusted(self) -> ssl.SSLContext | bool:
        """Reading the certificates of a machine takes longer than a request: not where there is no TLS."""
        return self.url.startswith("https:") and _trusted()


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValidationError([FieldError("url", url, f"{_URLS} ({error})")]) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query or parsed.fragment:
        raise ValidationError([FieldError("url", url, _URLS)])
    if parsed.userinfo:
        raise ValidationError([FieldError("url", HIDDEN, f"no name and password: the token goes in {TOKEN_VARIABLE}")])
    return str(parsed).rstrip("/")


_CODES = frozenset({*ERROR_CODES, *get_args(ServiceCode)})
_LONGEST_SHOWN = 200  # characters of an answer that is none of ours


class FieldProblem(msgspec.Struct):
    """One bad field."""

    path: str
    received: Any
    allowed: str


class Problem(msgspec.Struct):
    """What went wrong, as far as we read it."""

    code: str
    detail: str
    recoverable: bool = False
    fields: list[FieldProblem] = []
    agent: str = ""
    capability: str = ""


def error_of(status: int, body: bytes, url: httpx.URL) -> AgentMuxError:
    """What an answer that is no success means. One that is not by the service is UNAVAILABLE."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = body[:_LONGEST_SHOWN].decode("utf-8", "replace")
        strange = f"{url.copy_with(query=None)} answered {status}, and not as a service of agent-mux does: {said!r}"
        return AgentMuxError("UNAVAILABLE", strange)
    return _error(problem)


def _error(problem: Problem) -> AgentMuxError:
    code: AnyCode = problem.code if problem.code in _CODES else "INTERNAL"  # type: ignore[assignment]  # it is one
    if code == "VALIDATION_ERROR" and problem.fields:
        return ValidationError([FieldError(_path(one.path), one.received, one.allowed) for one in problem.fields])
    if code == "CAPABILITY_ERROR" and problem.capability:
        error: AgentMuxError = CapabilityError(problem.agent, problem.capability)
        error.message = problem.detail
        return error
    return AgentMuxError(code, problem.detail, recoverable=problem.recoverable)


def _path(key: str) -> str:
    """A key of the request as the field of `RunOptions` that it is."""
    ends = [place for place in (key.find("."), key.find("[")) if place >= 0]
    end = min(ends, default=len(key))
    return REQUEST_KEYS.get(key[:end], key[:end]) + key[end:]


CONNECT_WITHIN = 10.0  # seconds
SILENT_FOR = 50.0  # seconds without anything, on a stream that says something every 15
FIRST_DELAY = 0.05  # seconds before asking again what can be asked twice
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout)


class Line:
    """To one service. `patience`: seconds for an answer."""

    def __init__(self, address: Address, patience: float) -> None:
        self.address = address
        self.patience = patience
        self._http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Be able to `ask`."""
        self._http = self.address.async_client()

    async def close(self) -> None:
        """Give all connections back."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def ask(  # noqa: PLR0913  # all of it is one request
        self,
        method: str,
        path: str,
        told: Any = None,
        *,
        key: str | None = None,
        again: bool = False,
        patience: float | None = None,
    ) -> bytes:
        """The body of the answer.

        A request whose answer was lost is sent again where that does no harm: with an idempotency `key`, or `again`.

        Raises what the service says, and UNAVAILABLE when it cannot be reached.
        """
        asked = _Asked(self, method, path, told, key, again=again, patience=patience)
        while True:
            try:
                return asked.answered(await self._open_http.request(**asked.request()))
            except httpx.RequestError as error:
                await anyio.sleep(asked.delay_after(error))

    def ask_blocking(  # noqa: PLR0913  # all of it is one request
        self,
        method: str,
        path: str,
        told: Any = None,
        *,
        key: str | None = None,
        again: bool = False,
        accept: str = "application/json",
    ) -> bytes:
        """The same without an event loop, or while it stands still."""
        asked = _Asked(self, method, path, told, key, again=again, accept=accept)
        with self.address.client() as http:
            while True:
                try:
                    return asked.answered(http.request(**asked.request()))
                except httpx.RequestError as error:
                    time.sleep(asked.delay_after(error))

    def lines_blocking(self, path: str) -> Iterator[bytes]:
        """The lines of an answer as they come, without an event loop. They end at newlines, and nothing else.

        Raises as `ask`; UNAVAILABLE, too, when the connection breaks before the end.
        """
        asked = _Asked(self, "GET", path, None, None, accept="application/jsonl")
        begun = bytearray()
        try:
            with self.address.client() as http, http.stream(**asked.request()) as response:
                if not response.is_success:
                    response.read()
                    asked.check(response)
                for chunk in response.iter_bytes():
                    begun += chunk
                    *lines, begun = begun.split(b"\n")
                    yield from map(bytes, lines)
        except httpx.RequestError as error:
            raise self.unreachable(error) from error
        if begun:
            yield bytes(begun)

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, Any], last_id: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """An answer that comes bit by bit. Raises what the service says, and `httpx.RequestError`."""
        headers = {"accept": "text/event-stream", "accept-encoding": "identity"}
        if last_id >= 0:
            headers["last-event-id"] = str(last_id)
        timeout = httpx.Timeout(CONNECT_WITHIN, read=SILENT_FOR)
        async with self._open_http.stream(
            "GET", self.address.url + path, params=params, headers=headers, timeout=timeout
        ) as response:
            if response.status_code != 200:
                raise error_of(response.status_code, await response.aread(), response.url)
            chunks = response.aiter_raw()
            try:
                yield chunks
            finally:
                # The generators inside of httpx are to end, and not to be found by the garbage collector: without a
                # connection they do.
                with anyio.CancelScope(shield=True):
                    await response.aclose()
                    with suppress(httpx.HTTPError, httpx.StreamError):
                        async for _ in chunks:
                            pass

    @property
    def _open_http(self) -> httpx.AsyncClient:
        if self._http is None:
            raise AgentMuxError("UNAVAILABLE", "the client is closed; use it in `async with RemoteMux() as mux:`")
        return self._http

    def unreachable(self, error: Exception) -> AgentMuxError:
        """What to say when there is no answer."""
        why = str(error) or type(error).__name__
        return AgentMuxError("UNAVAILABLE", f"the service at {self.address.url} cannot be reached: {why}")


class _Asked:
    """One request, and how often it may be sent."""

    def __init__(  # noqa: PLR0913  # all of it is one request
        self,
        line: Line,
        method: str,
        path: str,
        told: Any,
        key: str | None,
        *,
        again: bool = False,
        patience: float | None = None,
        accept: str = "application/json",
    ) -> None:
        self._line = line
        self._method, self._url = method, line.address.url + path
        self._body = None if told is None else to_json_bytes(told)
        self._key = key
        self._again = again or key is not None
        self._accept = accept
        self._patience = line.patience if patience is None else patience
        self._until = time.monotonic() + self._patience
        self._delay = FIRST_DELAY

    def request(self) -> dict[str, Any]:
        """As httpx takes it."""
        headers = {"accept": self._accept}
        headers |= {} if self._body is None else {"content-type": "application/json"}
        headers |= {} if self._key is None else {"idempotency-key": self._key}
        left = max(self._until - time.monotonic(), FIRST_DELAY)
        timeout = httpx.Timeout(left, connect=min(CONNECT_WITHIN, left))
        return {
            "method": self._method, "url": self._url, "content": self._body, "headers": headers, "timeout": timeout
        }  # fmt: skip

    def answered(self, response: httpx.Response) -> bytes:
        """The body of a success. Raises what the service says."""
        self.check(response)
        return response.content

    def check(self, response: httpx.Response) -> None:
        """Raises what the service says, of an answer that was read."""
        if not response.is_success:
            raise error_of(response.status_code, response.content, response.url)

    def delay_after(self, error: httpx.RequestError) -> float:
        """Seconds until it is sent again. Raises UNAVAILABLE when it is not."""
        is_lost = self._again and not isinstance(error, _NOT_SENT)
        if not is_lost or time.monotonic() + self._delay >= self._until:
            raise self._line.unreachable(error) from error
        delay, self._delay = self._delay, self._delay * 2
        return delay


def decoded(body: bytes, kind: Any) -> Any:
    """JSON of the service. Raises UNAVAILABLE for what is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentMuxError("UNAVAILABLE", f"the service answered what this version cannot read: {error}") from error
