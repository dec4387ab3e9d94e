"""ASGI middleware that counts requests and streams. The outermost one: what others refuse is counted, too."""

import time
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux.service.metrics import Metrics, Stream

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAMS: Mapping[str, Stream] = {"text/event-stream": "sse", "application/jsonl": "jsonl"}
"""Types of content that are sent for as long as there is some; how long says nothing about us."""
NO_ROUTE = "(none)"


class Metering:
    """Counts."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        seen = _Seen(self._metrics)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.begins(message)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            seen.ends()
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.requests.labels(route, method, seen.status).inc()
            if seen.stream is None:
                self._metrics.request_seconds.labels(route, method).observe(time.monotonic() - began)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _Seen(self._metrics)

        async def watched(message: Message) -> None:
            if message["type"] == "websocket.accept":
                seen.opens("websocket")
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            seen.ends()


class _Seen:
    """What became of one request."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.status = 500
        """If nothing was answered, it is what is answered further out."""
        self.stream: Stream | None = None

    def begins(self, message: Message) -> None:
        self.status = message["status"]
        for name, value in message.get("headers", ()):
            if name == b"content-type":
                stream = STREAMS.get(value.decode("latin-1").partition(";")[0])
                if stream is not None:
                    self.opens(stream)

    def opens(self, stream: Stream) -> None:
        self.stream = stream
        self._metrics.streams.labels(stream).inc()
        self._metrics.readers.labels(stream).inc()

    def ends(self) -> None:
        if self.stream is not None:
            self._metrics.readers.labels(self.stream).dec()
