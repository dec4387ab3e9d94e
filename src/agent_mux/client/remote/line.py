"""Asking the service: one request, one answer, or the error that it tells. Every request has a time limit."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx
import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.client.remote.address import Address
from agent_mux.client.remote.problems import error_of
from agent_mux.errors import AgentMuxError

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
