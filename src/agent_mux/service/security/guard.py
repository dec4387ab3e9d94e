"""The guard in front of the application: it checks every request before any route receives it."""

import logging
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.utils import ClientDisconnected

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service import problems
from agent_mux.service.security.admission import CheckedExchange
from agent_mux.service.security.authenticator import Authenticator
from agent_mux.service.security.http_rules import (
    RequestRefused,
    add_headers,
    bounded_receive,
    check_content_length,
    has_two_lengths,
    head_size_status,
    is_allowed_host,
    is_from_browser,
    is_json,
    is_same_site,
)
from agent_mux.service.security.rate_limits import RateLimiter, charge, rate_headers
from agent_mux.service.security.tokens import Caller, needed_scope
from agent_mux.service.settings import ServiceSettings


class Guard:
    """ASGI middleware that refuses requests by head size, host, origin, token, rate and body."""

    def __init__(
        self,
        application: ASGIApp,
        settings: ServiceSettings,
        authenticator: Callable[[], Authenticator],
        limiter: Callable[[], RateLimiter],
    ) -> None:
        """Wrap `application`. `authenticator` and `limiter` return those of the open service."""
        self._application = application
        self._settings = settings
        self._authenticator = authenticator
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on. Lifespan messages are passed on unchecked."""
        if scope["type"] not in {"http", "websocket"}:
            await self._application(scope, receive, send)
            return
        answer = _GuardedResponse(send, scope)
        try:
            receive = await self._admit(scope, receive)
        except RequestRefused as refused:
            await problems.http_error_response(refused)(scope, receive, answer)  # also refuses a WebSocket handshake
        except AgentMuxError as error:
            await problems.error_response(error)(scope, receive, answer)
        else:
            await self._serve(scope, receive, answer)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_GuardedResponse") -> None:
        caller, needed = scope.get("state", {}).get("caller"), needed_scope(scope.get("method", "GET"), scope["path"])
        try:
            if caller is None or needed is None or scope["type"] == "websocket":  # which checks each of its messages
                await self._application(scope, receive, answer)
            else:
                exchange = CheckedExchange(self._authenticator(), caller, needed, scope)
                await exchange.serve(self._application, receive, answer)
        except (ClientDisconnected, WebSocketDisconnect):
            logging.getLogger(LOGGER).debug("a client disconnected before it was answered")
        except Exception:
            if not answer.is_complete:  # the server has to abort it; a complete response was already logged
                logging.getLogger(LOGGER).exception("a response was aborted")
                raise

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """Return the bounded `receive` of an admitted request.

        Raises:
            RequestRefused: A rule refuses the request.
            AgentMuxError: UNAVAILABLE without the database.
        """
        headers = Headers(scope=scope)
        self._check_head(scope, headers)
        await self._authorize(scope, headers)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return receive
        limits = self._settings.limits
        check_content_length(headers.get("content-length"), limits.largest_body)
        from_browser = is_from_browser(headers.get("origin"), headers.get("sec-fetch-site"))
        if from_browser and not is_json(headers.get("content-type")):
            raise RequestRefused(415, "a request body from a browser has another type; send it as application/json")
        return bounded_receive(receive, limits.largest_body, limits.body_timeout)

    def _check_head(self, scope: Scope, headers: Headers) -> None:
        status = head_size_status(scope.get("raw_path", b"") + scope["query_string"], scope["headers"])
        if status is not None:
            raise RequestRefused(status, "too many or too long headers, or too long a path; send less")
        if has_two_lengths(scope["headers"]):
            both = "the request has Content-Length and Transfer-Encoding; send one of them"
            raise RequestRefused(400, both, {"connection": "close"})
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_allowed_host(hosts[0], self._settings.host, self._settings.allowed_hosts):
            raise RequestRefused(421, "unknown Host; allow it with `amux serve --allow-host NAME`")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if len(headers.getlist("origin")) > 1 or not is_same_site(origin, site, hosts[0], self._settings.allowed_hosts):
            raise RequestRefused(403, "pages of other sites are refused; allow one with `amux serve --allow-host NAME`")

    async def _authorize(self, scope: Scope, headers: Headers) -> None:
        needed = needed_scope(scope.get("method", "GET"), scope["path"])
        if needed is None:
            return
        values = headers.getlist("authorization")
        authenticate: Caller | None = await self._authenticator().authenticate(values[0] if len(values) == 1 else None)
        if authenticate is None:
            raise RequestRefused(
                401,
                "a valid token is required: `Authorization: Bearer amux_...`; create one with `amux tokens create`",
                {"www-authenticate": "Bearer"},
            )
        if not authenticate.may(needed):
            step = f"create a token with it: `amux tokens create NAME --scope {needed}`"
            raise RequestRefused(403, f"this token lacks the required scope {needed}; {step}")
        state = scope.setdefault("state", {})
        state["caller"] = authenticate
        charge(state, self._limiter(), authenticate, "requests", scope["path"])


class _GuardedResponse:
    """Adds the security and rate limit headers to a response and records whether it is complete."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers = MutableHeaders(scope=message)
            add_headers(headers)
            headers.update(rate_headers(self._scope.get("state", {})))
        self.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)
