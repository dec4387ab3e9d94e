"""HTTP requests to a service.

Every request has a time limit. A request whose answer is lost is sent again if that is safe.
"""

import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import anyio

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.client.remote import lazy_httpx as httpx
from agent_mux.client.remote.address import TOKEN_VARIABLE, Address
from agent_mux.client.remote.answer_limit import closed_after
from agent_mux.client.remote.responses import decode_response, error_of, foreign_response
from agent_mux.errors import AgentMuxError

if TYPE_CHECKING:
    from agent_mux.sessions.summary import When

JSON = "application/json"
CONNECT_TIMEOUT = 10.0  # seconds
STREAM_TIMEOUT = 50.0  # seconds without any bytes; the service sends something on a stream every 15 seconds
FIRST_DELAY = 0.05  # seconds before a request is sent again; doubled each time
LIMIT_DELAY = 0.2  # seconds; httpx limits each read, and its errors name the cause
_DOT_SEGMENTS = {".": "%2E", "..": "%2E%2E"}
"""Names that would otherwise change the meaning of a path."""


class ServiceConnection:
    """Sends requests to one service.

    `timeout` is the number of seconds for a complete answer in JSON, retries included. Files, diffs and recordings may
    take longer while they arrive: for them, it limits the silence.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        self.address = address
        self.timeout = timeout
        self._http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Open the connection pool that `request` and `stream` use."""
        self._http = self.address.async_client()

    async def close(self) -> None:
        """Close all connections of the pool."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def request(  # noqa: PLR0913  # all of it is one request
        self,
        method: str,
        path: str,
        payload: Any = None,
        *,
        key: str | None = None,
        is_idempotent: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109  # the limit covers retries, which a cancel scope would cut
    ) -> bytes:
        """Send a request and return the body of the response.

        A request whose answer is lost is sent again if that is safe: with an idempotency `key`, or if `is_idempotent`.

        Raises the error that the service returns, and UNAVAILABLE when it cannot be reached.
        """
        attempt = _RequestAttempts(self, method, path, payload, key, is_idempotent=is_idempotent, timeout=timeout)
        while True:
            try:
                with anyio.fail_after(attempt.seconds_for_answer):
                    response = await self._pool.request(**attempt.arguments())
                return attempt.body_of(response)
            except TimeoutError as error:
                raise self.unreachable(httpx.TimeoutException("")) from error
            except httpx.RequestError as error:
                await anyio.sleep(attempt.delay_after(error))

    def request_blocking(  # noqa: PLR0913  # all of it is one request
        self,
        method: str,
        path: str,
        payload: Any = None,
        *,
        key: str | None = None,
        is_idempotent: bool = False,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """Send a request as `request` does, but without an event loop; inside of one, it blocks the loop."""
        attempt = _RequestAttempts(
            self, method, path, payload, key, is_idempotent=is_idempotent, accept=accept, timeout=timeout
        )
        return self._respond_blocking(attempt).content

    def get_blocking(self, path: str) -> "httpx.Response":
        """Send GET as `request_blocking` does, and return the response with its headers."""
        return self._respond_blocking(_RequestAttempts(self, "GET", path, None, None, is_idempotent=True))

    def _respond_blocking(self, attempt: "_RequestAttempts") -> "httpx.Response":
        with self.address.client() as http, closed_after(attempt.seconds_for_answer) as limit:
            while True:
                try:
                    response = http.request(**attempt.arguments(), extensions={"trace": limit.trace})
                    attempt.check(response)
                except httpx.RequestError as error:
                    if limit.is_reached:
                        raise self.unreachable(httpx.TimeoutException("")) from error
                    time.sleep(attempt.delay_after(error))
                else:
                    return response

    def iter_lines(self, path: str) -> Iterator[bytes]:
        r"""Yield the lines of a response as they arrive, split at `\n` only. Blocking.

        Raises as `request`; also UNAVAILABLE when the connection breaks before the end.
        """
        attempt = _RequestAttempts(self, "GET", path, None, None, accept="application/jsonl")
        partial = bytearray()
        try:
            with self.address.client() as http, http.stream(**attempt.arguments()) as response:
                if not response.is_success:
                    response.read()
                    attempt.check(response)
                for chunk in response.iter_bytes():
                    partial += chunk
                    *lines, partial = partial.split(b"\n")
                    yield from map(bytes, lines)
        except httpx.RequestError as error:
            raise self.unreachable(error) from error
        if partial:
            yield bytes(partial)

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, Any], last_id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of server-sent events and provide its chunks of bytes.

        Args:
            path: The path below the service's URL.
            params: The query.
            last_id: The id of the last event that was received, empty for none.

        Raises the error that the service returns, and `httpx.RequestError`.
        """
        headers = {"accept": "text/event-stream", "accept-encoding": "identity"}
        if last_id:
            headers["last-event-id"] = last_id
        timeout = httpx.Timeout(CONNECT_TIMEOUT, read=STREAM_TIMEOUT)
        async with self._pool.stream(
            "GET", self.address.url + path, params=params, headers=headers, timeout=timeout
        ) as response:
            if response.status_code not in {200, 204}:  # 204: nothing follows
                await response.aread()
                raise self.error_of(response)
            chunks = response.aiter_raw()
            try:
                yield chunks
            finally:
                # Exhaust the generators inside of httpx, so that the garbage collector does not have to finalize them;
                # without a connection they end at once.
                with anyio.CancelScope(shield=True):
                    await response.aclose()
                    with suppress(httpx.HTTPError, httpx.StreamError):
                        async for _ in chunks:
                            pass

    @property
    def _pool(self) -> "httpx.AsyncClient":
        if self._http is None:
            raise AgentMuxError("UNAVAILABLE", "the client is closed; use it in `async with RemoteMux() as mux:`")
        return self._http

    def error_of(self, response: "httpx.Response") -> AgentMuxError:
        """Return the error that an unsuccessful response stands for. Its body must have been read."""
        error = error_of(response.status_code, response.content, response.url)
        if error.code == "UNAUTHENTICATED":
            problem = "requires a token" if self.address.token is None else "does not accept the token"
            step = f"create one there with `amux tokens create`, and set {TOKEN_VARIABLE}"
            error.message = f"the service at {self.address.url} {problem}; {step}"
        return error

    def unreachable(self, error: Exception) -> AgentMuxError:
        """Return the UNAVAILABLE error for a request that got no answer."""
        url = self.address.url
        match error:
            case httpx.ConnectTimeout():
                what = f"cannot be reached: no connection within {CONNECT_TIMEOUT:g} seconds"
            case httpx.TimeoutException():
                what = "accepted the connection, but did not answer in time"
            case httpx.ReadError() | httpx.RemoteProtocolError():
                what = "closed the connection without a complete answer"
            case _:
                what = f"cannot be reached: {str(error) or type(error).__name__}"
        return AgentMuxError("UNAVAILABLE", f"the service at {url} {what}; {_next_step(url, error)}")


_NEXT_STEPS = (
    (("CERTIFICATE_VERIFY_FAILED",), "to trust its certificate, set SSL_CERT_FILE to a file with its authority"),
    (("[SSL",), "check whether the URL begins with http:// instead of https://"),
    (("Name or service", "name resolution", "nodename", "getaddrinfo", "No address"), "check the host name in the URL"),
)
"""Words of a network error -> what the user can do about it."""


def _next_step(url: str, error: Exception) -> str:
    for words, step in _NEXT_STEPS:
        if any(word in str(error) for word in words):
            return step
    is_closed = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
    if is_closed and url.startswith("http:"):
        return "check that `amux serve` runs there, and whether the URL begins with https:// instead"
    return "check that `amux serve` runs there"


def _is_json(response: "httpx.Response") -> bool:
    return "json" in response.headers.get("content-type", JSON)


class _RequestAttempts:
    """One request and its repetitions, which end when its time limit is reached."""

    def __init__(  # noqa: PLR0913  # all of it is one request
        self,
        connection: ServiceConnection,
        method: str,
        path: str,
        payload: Any,
        key: str | None,
        *,
        is_idempotent: bool = False,
        timeout: float | None = None,
        accept: str = JSON,
    ) -> None:
        self._connection = connection
        self._method, self._url = method, connection.address.url + path
        self._body = None if payload is None else to_json_bytes(payload)
        self._key = key
        self._is_repeatable = is_idempotent or key is not None
        self._accept = accept
        self._deadline = time.monotonic() + (connection.timeout if timeout is None else timeout)
        self._delay = FIRST_DELAY

    @property
    def seconds_for_answer(self) -> float:
        """The seconds after which an incomplete answer is given up; httpx's own limits are reached first."""
        is_limited = self._accept == JSON
        return max(self._deadline - time.monotonic(), 0) + LIMIT_DELAY if is_limited else math.inf

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of httpx's `request` for the next attempt."""
        headers = {"accept": self._accept}
        headers |= {} if self._body is None else {"content-type": "application/json"}
        headers |= {} if self._key is None else {"idempotency-key": self._key}
        left = max(self._deadline - time.monotonic(), FIRST_DELAY)
        timeout = httpx.Timeout(left, connect=min(CONNECT_TIMEOUT, left))
        return {
            "method": self._method, "url": self._url, "content": self._body, "headers": headers, "timeout": timeout
        }  # fmt: skip

    def body_of(self, response: "httpx.Response") -> bytes:
        """Return the body of a successful response. Raises the error of an unsuccessful one."""
        self.check(response)
        return response.content

    def check(self, response: "httpx.Response") -> None:
        """Raise the error of a response that is unsuccessful, or not JSON where JSON is requested.

        Its body must have been read.
        """
        if not response.is_success:
            raise self._connection.error_of(response)
        if self._accept == JSON and response.content and not _is_json(response):
            raise foreign_response(response.status_code, response.content, response.url)

    def delay_after(self, error: "httpx.RequestError") -> float:
        """Return the seconds to wait before the next attempt. Raises UNAVAILABLE when there is none."""
        is_unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        can_repeat = self._is_repeatable and not is_unsent
        if not can_repeat or time.monotonic() + self._delay >= self._deadline:
            raise self._connection.unreachable(error) from error
        delay, self._delay = self._delay, self._delay * 2
        return delay


def path_of(*names: str, **parameters: object) -> str:
    """Return `/v1/...` with the quoted names as segments. Parameters that are None or empty tuples are left out."""
    path = "/".join(("/v1", *(_DOT_SEGMENTS.get(name) or quote(name, safe="", errors="replace") for name in names)))
    query = {name: value for name, value in parameters.items() if value not in {None, ()}}
    return f"{path}?{urlencode(query, doseq=True, errors='replace')}" if query else path


def fetch(connection: ServiceConnection, kind: Any, *names: str, **parameters: object) -> Any:
    """Send GET to `path_of(*names, **parameters)` and return the response as a `kind`. Blocking.

    Raises the error that the service returns, and UNAVAILABLE when it cannot be reached or decoded.
    """
    return decode_response(connection.request_blocking("GET", path_of(*names, **parameters), is_idempotent=True), kind)


MAX_PAGE_SIZE = 200  # entries in one response


def fetch_pages(connection: ServiceConnection, kind: Any, name: str, limit: int | None, **filters: object) -> list[Any]:
    """Return the entries of as many pages as `limit` needs; None: of all. Blocking.

    Args:
        connection: The connection to the service.
        kind: The class of a page: its first field has the entries, `next` the cursor of the page after it.
        name: The path of the pages.
        limit: Maximum number of entries.
        **filters: The query parameters.
    """
    entries = kind.__struct_fields__[0]
    found: list[Any] = []
    cursor: str | None = None
    while limit is None or len(found) < limit:
        size = MAX_PAGE_SIZE if limit is None else min(limit - len(found), MAX_PAGE_SIZE)
        page = fetch(connection, kind, name, **filters, limit=size, cursor=cursor)
        found += getattr(page, entries)
        cursor = page.next
        if cursor is None:
            break
    return found


def to_milliseconds(when: "When | None") -> int | None:
    """Convert a time to milliseconds since the epoch, the form that the service accepts."""
    return round(when.timestamp() * 1000) if isinstance(when, datetime) else when
