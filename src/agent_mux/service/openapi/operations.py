"""The operations of the API. One declaration is both the route and the entry of the OpenAPI document.

    operations = OperationGroup("/v1/runs", tag="runs")

    @operations.get("/{run_id}", ResponseSpec(RunView), errors=("RUN_NOT_FOUND",))
    async def get_run(request: Request) -> Response:
        ...

The function's name is the operation id, its docstring the description.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from agent_mux.errors import AnyCode
from agent_mux.service.openapi.descriptions import BodySpec, ResponseSpec
from agent_mux.service.parameters import HeaderParameters, QueryParameters

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    """Path as Starlette has it: `/v1/models/{agent}/{model:path}`."""
    tag: str
    endpoint: Any
    """The function that answers; an `Endpoint`."""
    responses: tuple[ResponseSpec, ...]
    matches_raw_path: bool = False
    """Whether the path is matched before percent-decoding; see `OperationRoute`."""
    query: type[QueryParameters] | None = None
    headers: type[HeaderParameters] | None = None
    body: BodySpec | None = None
    errors: tuple[AnyCode, ...] = ()
    """Error codes besides `COMMON_ERRORS`."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Parameter name -> a valid value."""
    is_stream: bool = False
    """Whether the response lasts as long as there are events."""

    @property
    def name(self) -> str:
        """The operation id, which code generators use as a function name."""
        return str(self.endpoint.__name__)

    @property
    def route(self) -> "OperationRoute":
        """A new route that calls the endpoint."""
        return OperationRoute(self)


class OperationGroup:
    """The operations of one kind of resource."""

    def __init__(self, prefix: str = "", *, tag: str, matches_raw_path: bool = False) -> None:
        """Collect operations below `prefix`. `matches_raw_path`: see `OperationRoute`."""
        self._prefix = prefix
        self._tag = tag
        self._matches_raw_path = matches_raw_path
        self._operations: list[Operation] = []
        self.get = partial(self._declare, "GET")
        self.post = partial(self._declare, "POST")
        self.put = partial(self._declare, "PUT")
        self.patch = partial(self._declare, "PATCH")
        self.delete = partial(self._declare, "DELETE")

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)

    def _declare(
        self, method: str, path: str, *responses: ResponseSpec, **described: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that adds an operation. `described`: further fields of `Operation`."""

        def add(endpoint: Endpoint) -> Endpoint:
            self._operations.append(
                Operation(
                    method=method,
                    path=self._prefix + path,
                    tag=self._tag,
                    endpoint=endpoint,
                    responses=responses,
                    matches_raw_path=self._matches_raw_path,
                    **described,
                )
            )
            return endpoint

        return add


class OperationRoute(Route):
    """The route of an operation.

    HEAD is answered wherever GET is, except for streams, which have no answer to it: only reading a stream shows
    whether there are events. The server omits the body of such a response (RFC 9110, section 9.3.2).

    A route may match the path before percent-decoding and decode each parameter on its own. Names and ids that others
    chose may contain any character: a `%2F` belongs to its parameter and separates nothing.
    """

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation.path, operation.endpoint, methods=[operation.method], name=operation.name)
        self._matches_raw_path = operation.matches_raw_path
        if operation.is_stream and self.methods is not None:
            self.methods.discard("HEAD")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a request and return its path parameters and, for the metrics, its route."""
        raw = scope.get("raw_path") if self._matches_raw_path else None
        path = scope["path"] if raw is None else raw.decode("latin-1").partition("?")[0]
        match, child = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            child["route"] = self
            if raw is not None:
                child["path_params"] = {name: unquote(value) for name, value in child["path_params"].items()}
        return match, child
