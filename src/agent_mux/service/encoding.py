"""Events as bytes, encoded once for all who watch, and the ways in which they travel.

What programs send, made into what everything behind can take: numbers of one kind, texts without NUL.


HEAD: what GET answers, without the body, which the server leaves out. Source: RFC 9110, section 9.3.2; ASGI.

Not for streams: whether there is something to read, only reading tells.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection

from agent_mux.errors import FieldError, ValidationError
from agent_mux.events import AgentEvent, encode_event
from agent_mux.service.openapi.describing import DESCRIBED

MOST_BYTES = 32 << 20
"""Of encoded events that are kept for the next reader."""


class EncodedEvents:
    """JSON lines of events, by run and number. Bounded: what was made first is forgotten first."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lines: OrderedDict[tuple[str, int, bool], bytes] = OrderedDict()

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """The event as `amux run --json` prints it, or with `--compact`; without the newline."""
        key = (run_id, number, accumulated)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encode_event(event, accumulated=accumulated)
            self._size += len(line)
            while self._size > self._most:
                self._size -= len(self._lines.popitem(last=False)[1])
        return line


Frame = Callable[[int, bytes], bytes]
"""Makes of the number and the JSON of an event what is sent."""


def as_sse(number: int, line: bytes) -> bytes:
    """A Server-Sent Event. JSON has no line breaks, so one `data` field holds it. Source: HTML, section 9.2."""
    return b"id: %d\ndata: %b\n\n" % (number, line)


def as_json_line(_: int, line: bytes) -> bytes:
    """A line, as `amux run --json` prints it."""
    return line + b"\n"


def as_view(line: bytes) -> bytes:
    """A Server-Sent Event of another name: no event of the run, and no number to go on behind."""
    return b"event: run\ndata: %b\n\n" % line


LARGEST = 1 << 53  # beyond it, not every whole number is a float
NO_NUL = "text without NUL characters"
REPEATED = frozenset({"tag", "state"})
"""Query parameters that may stand several times."""


def tidied(value: Any, path: str = "") -> Any:
    """The same with `5.0` as 5: JSON knows one kind of numbers. Source: RFC 8259, section 6.

    Raises `ValidationError` for a NUL character: databases, paths and arguments of programs cannot have one.
    """
    match value:
        case float() if value.is_integer() and abs(value) < LARGEST:
            return int(value)
        case str():
            _check(value, path)
        case dict():
            for key in value:
                _check(key, path)
            return {key: tidied(part, f"{path}.{key}" if path else key) for key, part in value.items()}
        case list():
            return [tidied(part, f"{path}[{index}]") for index, part in enumerate(value)]
    return value


def check_target(connection: HTTPConnection) -> None:
    """Refuse a path or a query with a NUL character, and a parameter that is said twice: which one would count?"""
    query = connection.query_params.multi_items()
    if "\0" in connection.scope["path"] or any("\0" in text for pair in query for text in pair):
        raise ValidationError([FieldError("(path)", "a NUL character", NO_NUL)])
    counted = Counter(name for name, _ in query if name not in REPEATED)
    twice = [FieldError(name, f"{count} times", "once") for name, count in counted.items() if count > 1]
    if twice:
        raise ValidationError(twice)


def _check(text: str, path: str) -> None:
    if "\0" in text:
        raise ValidationError([FieldError(path or "(body)", "a NUL character", NO_NUL)])


def heads_of(router: APIRouter) -> APIRouter:
    """A route for HEAD beside each one for GET. The OpenAPI document leaves them out: they say nothing of their own."""
    made = APIRouter()
    for route in router.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not _is_stream(route.name):
            made.add_api_route(
                route.path,
                route.endpoint,
                methods=["HEAD"],
                name=route.name,
                include_in_schema=False,
                route_class_override=type(route),
            )
    return made


def _is_stream(name: str) -> bool:
    said = DESCRIBED.get(name)
    return said is not None and said.is_stream
