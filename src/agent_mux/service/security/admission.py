"""Keeps checking the token of a request until its response is complete.

A stream may last for hours. When its token is revoked, expires, is rotated (after the grace time) or loses the needed
scope, it ends within a second: Server-Sent Events with a last event `error`, other responses by closing the connection,
so that the client sees that they are incomplete, and requests that are still waiting for their response with 401.

A request that changes something is carried out to its end, since it was admitted; only its response is withheld.
"""

from collections.abc import Mapping

import anyio
import anyio.lowlevel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.service import problems
from agent_mux.service.security.authenticator import Authenticator
from agent_mux.service.security.http_rules import RequestRefused
from agent_mux.service.security.tokens import READ_METHODS, Caller
from agent_mux.service.security.tokens import Scope as TokenScope

END_GRACE = 1.0  # seconds to send the last event to a client that may not be reading
NO_LONGER = "this token is no longer valid for this request: it was revoked, expired, was rotated or lost a scope"
STEP = "create one with `amux tokens create`"


def no_longer_admitted() -> RequestRefused:
    """Return the refusal of a request whose token became invalid."""
    return RequestRefused(401, f"{NO_LONGER}; {STEP}", {"www-authenticate": "Bearer"})


class CheckedExchange:
    """A request whose caller is checked until its response is complete."""

    def __init__(self, authenticator: Authenticator, caller: Caller, needed: TokenScope, scope: Scope) -> None:
        """`needed`: the scope of the request."""
        self._authenticator = authenticator
        self._caller = caller
        self._needed: TokenScope = needed
        self._scope = scope
        self._cancel = anyio.CancelScope()
        self._is_read = scope["method"] in READ_METHODS
        self._is_withheld = False
        self._started: Mapping[str, str] | None = None
        """The headers of the response once it has started."""
        self._is_complete = False

    async def serve(self, application: ASGIApp, receive: Receive, send: Send) -> None:
        """Pass the request on, and end its response when the caller is no longer admitted."""

        async def checked_send(message: Message) -> None:
            await self._check()
            if not self._is_withheld:
                self._note(message)
                await send(message)

        if self._is_read:
            with self._cancel:
                async with self._authenticator.watching(self._caller, self._needed, self._cancel.cancel):
                    await application(self._scope, receive, checked_send)
        else:
            await application(self._scope, receive, checked_send)
        if self._is_withheld or (self._cancel.cancelled_caught and not self._is_complete):
            await self._end(receive, send)

    async def _check(self) -> None:
        if self._is_withheld or self._authenticator.admits(self._caller, self._needed):
            return
        if self._is_read:
            self._cancel.cancel()
            await anyio.lowlevel.checkpoint()  # raises the cancellation
        elif self._started is None:
            self._is_withheld = True

    def _note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = Headers(raw=message["headers"])
        else:
            self._is_complete = not message.get("more_body", False)

    async def _end(self, receive: Receive, send: Send) -> None:
        """Answer 401, or end the response that has started."""
        refusal = no_longer_admitted()
        if self._started is None:
            await problems.http_error_response(refusal)(self._scope, receive, send)
        elif self._started.get("content-type", "").startswith("text/event-stream"):
            details = to_json_bytes({"code": "UNAUTHENTICATED", "detail": refusal.detail, "status": 401})
            last = b"event: error\ndata: %b\n\n" % details
            with anyio.move_on_after(END_GRACE):
                await send({"type": "http.response.body", "body": last, "more_body": False})
        # Otherwise the response stays incomplete, and the server closes the connection.
