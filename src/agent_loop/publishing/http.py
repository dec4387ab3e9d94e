"""The HTTP interface of an event bus, as an ASGI application without a framework.

| request                              | response                                                     |
|--------------------------------------|--------------------------------------------------------------|
| GET /events                          | the events of all sessions as Server-Sent Events             |
| GET /sessions/SESSION_ID/events      | those of one session                                         |
| POST /sessions/SESSION_ID/steer      | `{"text": "..."}`: a message that the run reads next         |
| POST /sessions/SESSION_ID/follow-up  | `{"text": "..."}`: a message that it reads before it ends    |
| POST /sessions/SESSION_ID/abort      | `{"reason": "..."}`: end the run in an orderly way           |
| POST /sessions/SESSION_ID/answer     | `{"question_id": "...", "answer": "..."}`: answer a question |

Errors are problem details (RFC 9457).
"""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import isawaitable
from typing import Any, Literal, cast
from urllib.parse import parse_qs

import anyio
import msgspec

from agent_loop.errors import ConfigurationError
from agent_loop.messages.formatting import encode_json
from agent_loop.publishing.bus import EventBus, Subscription
from agent_loop.publishing.sse import RESTARTED, Receive, Scope, Send, SseStream, position_frame, read_position

HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent; proxies and clients drop silent connections."""
MAX_STREAMS = 256
MAX_BODY = 64 * 1024
"""Bytes of a request."""
BODY_TIMEOUT = 30.0
"""Seconds in which a client must have sent its request."""
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Action = Literal["events", "steer", "follow-up", "abort", "answer"]
_SESSION_PATH = re.compile(r"/sessions/([^/]{1,200})/(events|steer|follow-up|abort|answer)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRequest:
    """A request that `authorize` decides about."""

    action: Action
    session_id: str | None
    """The session that is read or controlled; None: the events of all sessions. It need not exist."""
    headers: Mapping[str, str]
    """The headers, by names in lower case."""
    query: Mapping[str, str]
    """The last value of each parameter."""
    scope: Scope
    """The ASGI scope, with what middleware has added to it, such as `user`."""


Authorize = Callable[[EventRequest], bool | Awaitable[bool]]
"""Return whether the request is allowed: False is the status 401, a raised `PermissionError` 403."""


def bearer_token(token: str) -> Authorize:
    """Return an `authorize` that accepts all requests with the header `Authorization: Bearer TOKEN`, and no others.

    Raises `ConfigurationError` for an empty token.
    """
    if not token.strip():
        raise ConfigurationError("the bearer token is empty; generate one, such as secrets.token_urlsafe()")
    expected = f"Bearer {token}".encode()

    def authorize(request: EventRequest) -> bool:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), expected)

    return authorize


def event_app(
    bus: EventBus,
    *,
    authorize: Authorize,
    control: bool = False,
    heartbeat: float = HEARTBEAT,
    max_streams: int = MAX_STREAMS,
) -> AsgiApp:
    """Return an ASGI application that serves a bus. Mount it in your own, for example with Starlette's `Mount`.

    Args:
        bus: The bus whose events are sent, and whose agents are controlled.
        authorize: Decides about each request, see `Authorize`. There is no default: nothing is open by accident.
        control: Whether clients may steer and abort runs and answer questions; otherwise these paths do not exist.
        heartbeat: Seconds without an event after which a comment is sent.
        max_streams: Number of streams at the same time; more are refused with the status 429.

    Raises `ConfigurationError` without a function `authorize`.
    """
    if not callable(authorize):
        raise ConfigurationError(
            "event_app needs authorize=: a function that decides about each request, for example bearer_token(TOKEN)"
        )
    return _EventApp(bus, authorize, heartbeat, max_streams, control)


class _Problem(Exception):  # noqa: N818  # an answer, not an error of the program
    """The response for a request that is refused."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class _Reason(msgspec.Struct, forbid_unknown_fields=True):
    reason: str = "aborted by a client"


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    question_id: str
    answer: str


_FORMS: Mapping[Action, str] = {
    "steer": '{"text": "..."}',
    "follow-up": '{"text": "..."}',
    "abort": '{"reason": "..."}',
    "answer": '{"question_id": "...", "answer": "..."}',
}
"""The bodies of POST requests, for error messages."""


class _EventApp:
    """The application; see `event_app`."""

    def __init__(self, bus: EventBus, authorize: Authorize, heartbeat: float, max_streams: int, control: bool) -> None:
        self._bus = bus
        self._authorize = authorize
        self._heartbeat = heartbeat
        self._max_streams = max_streams
        self._control = control
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"event_app serves HTTP only, not {scope['type']!r}")
        try:
            await self._respond_to(scope, receive, send)
        except _Problem as problem:
            status = HTTPStatus(problem.status)
            body = {"title": status.phrase, "status": problem.status, "detail": problem.detail}
            await _respond(send, problem.status, body, "application/problem+json", problem.headers)

    async def _respond_to(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await self._authorized(scope)
        session_id = request.session_id
        if session_id is not None and not self._bus.knows(session_id):
            raise _Problem(404, f"no agent of this bus has a session {session_id!r}, and the buffer has no event of it")
        if request.action == "events":
            await self._stream(request, receive, send)
        elif session_id is not None:
            body = await _read_body(request, receive)
            self._act(request.action, session_id, body)
            await _respond(send, 202, {"session_id": session_id})

    async def _authorized(self, scope: Scope) -> EventRequest:
        """Return the request if its path and method exist and it is allowed."""
        action, session_id = self._route(_path_of(scope))
        allowed = "GET" if action == "events" else "POST"
        if scope["method"] != allowed:
            raise _Problem(405, f"this path does not support {scope['method']}; allowed: {allowed}", {"allow": allowed})
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        request = EventRequest(
            action=action,
            session_id=session_id,
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
            query={name: values[-1] for name, values in query.items()},
            scope=scope,
        )
        try:
            decision = self._authorize(request)
            is_allowed = await decision if isawaitable(decision) else decision
        except PermissionError:
            raise _Problem(403, "the request is not allowed; ask for access, or use other credentials") from None
        if not is_allowed:
            detail = "the request is not authorized; send the credentials that this application expects"
            raise _Problem(401, detail, {"www-authenticate": "Bearer"})
        return request

    def _route(self, path: str) -> tuple[Action, str | None]:
        if path == "/events":
            return "events", None
        match = _SESSION_PATH.fullmatch(path)
        if match is None or (match[2] != "events" and not self._control):
            raise _Problem(404, "no such path; the events are at /events and /sessions/SESSION_ID/events")
        return cast("Action", match[2]), match[1]

    # -- control ----------------------------------------------------------------------------------------------------

    def _act(self, action: Action, session_id: str, body: bytes) -> None:
        """Act on the active run of a session."""
        agent = self._bus.active_agent(session_id)
        if agent is None:
            raise _Problem(409, f"the session {session_id!r} has no active run; start one first")
        try:
            match action:
                case "abort":
                    self._bus.abort(session_id, msgspec.json.decode(body or b"{}", type=_Reason).reason)
                case "answer":
                    self._answer_question(session_id, msgspec.json.decode(body, type=_Answer))
                case "follow-up":
                    agent.follow_up(msgspec.json.decode(body, type=_Message).text)
                case _:
                    agent.steer(msgspec.json.decode(body, type=_Message).text)
        except (ValueError, RecursionError) as error:
            raise _Problem(422, f"the body is invalid ({error}); send {_FORMS[action]}") from None

    def _answer_question(self, session_id: str, given: _Answer) -> None:
        if not self._bus.answer(session_id, given.question_id, given.answer):
            detail = "the question was answered already, or its run does not wait for it any more"
            raise _Problem(409, f"{detail}; follow the events `question_asked` and `question_closed`")

    # -- events -----------------------------------------------------------------------------------------------------

    async def _stream(self, request: EventRequest, receive: Receive, send: Send) -> None:
        subscription, first = self._subscribe(request)
        if self._streams >= self._max_streams:
            detail = f"{self._streams} streams are open, which is the limit; close one, or try again later"
            raise _Problem(429, detail, {"retry-after": "1"})
        self._streams += 1
        try:
            await SseStream(self._bus, subscription, first, self._heartbeat).send(receive, send)
        finally:
            self._streams -= 1

    def _subscribe(self, request: EventRequest) -> tuple[Subscription, bytes]:
        """Return the subscription that the request asks for, and the first frame of its stream."""
        query, start, first = request.query, None, b""
        position = request.headers.get("last-event-id") or query.get("after")
        types = query.get("types")
        try:
            if position is not None:
                start, is_of_bus = read_position(position, self._bus)
                first = b"" if is_of_bus else RESTARTED
            subscription = self._bus.subscribe(
                session=request.session_id,
                loop=query.get("loop"),
                types=None if types is None else types.split(","),
                after=start,
            )
        except ConfigurationError as error:
            raise _Problem(422, str(error)) from None
        return subscription, first + position_frame(self._bus, subscription)


def _path_of(scope: Scope) -> str:
    """Return the path below the mount point. Some frameworks remove it from `path`, some do not."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


async def _read_body(request: EventRequest, receive: Receive) -> bytes:
    """Return the body of a request with JSON.

    The media type is required: a page of another origin cannot send it without the consent of the browser's user.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _Problem(415, "send the header Content-Type: application/json")
    body = bytearray()
    with anyio.move_on_after(BODY_TIMEOUT):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Problem(400, "the client disconnected before its request was complete; send it again")
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                raise _Problem(413, f"the body is larger than {MAX_BODY} bytes; send less")
            if not message.get("more_body", False):
                return bytes(body)
    raise _Problem(408, "the body did not arrive in time; send the whole request at once")


async def _respond(
    send: Send, status: int, body: Any, media_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> None:
    content = encode_json(body)
    fields = {"content-type": media_type, "content-length": str(len(content)), "cache-control": "no-store"}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in (fields | dict(headers or {})).items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
