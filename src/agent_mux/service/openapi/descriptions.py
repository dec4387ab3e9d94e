"""Texts of the OpenAPI document, and how an operation describes its body and its responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from agent_mux.errors import AnyCode
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES

JSON, JSONL, SSE = "application/json", "application/jsonl", "text/event-stream"
Links = Mapping[str, Mapping[str, str]]
"""Operation -> its parameters as expressions on the response: `{"get_run": {"run_id": "$response.body#/runId"}}`."""
COMMON_ERRORS: tuple[AnyCode, ...] = ("UNAUTHENTICATED", "FORBIDDEN", "LIMIT_EXCEEDED", "UNAVAILABLE", "INTERNAL")
"""Errors of every operation that needs a token."""
REFUSAL_DESCRIPTIONS: Mapping[int, str] = {
    400: "The request is not valid HTTP.",
    408: "The request arrived too slowly.",
    413: "The request body is too large.",
    414: "The request target is too long.",
    415: "A request body from a browser is not JSON.",
    421: "The Host header names another host.",
    431: "The request headers are too large.",
}
"""Status -> why a request is refused, whatever its operation."""
INTRODUCTION = """Drive coding agents over HTTP: start runs, read their events, answer their requests.

JSON is camelCase; absent fields are omitted. Times are milliseconds since the epoch, durations are milliseconds, money
is US dollars. Text contains no NUL characters. Errors are problem details (RFC 9457) with a `code`. Requests that are
not valid HTTP (400), too slow (408) or too large (413, 414, 431), that come from a browser and are not JSON (415), or
that name another host (421) are refused by every operation.

Each response has an `X-Request-Id`, which the request may choose. Where a rate limit applies, responses have the fields
`RateLimit-Policy`, `RateLimit`, `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`; a request beyond it is
refused with 429 and `Retry-After`."""
TAGS: Mapping[str, str] = {
    "runs": "Start, list and delete runs.",
    "events": "Events of a run as Server-Sent Events or JSON lines.",
    "commands": "Send commands to a run: prompts, answers, interruption.",
    "files": "Files that a run changed.",
    "comparisons": "Several agents on one task, judged by checks.",
    "agents": "Supported agents and their installations.",
    "models": "Models that agents offer, and their prices.",
    "sessions": "Sessions stored by the agents themselves.",
    "cost": "Cost of stored sessions.",
    "quota": "The quotas of the agents' accounts, as last reported.",
    "profiles": "Named sets of run options.",
    "webhooks": "Notify other programs about runs.",
    "audit": "Who did what.",
    "health": "Liveness, readiness and metrics.",
}
PATH_PARAMETERS: Mapping[str, Any] = {
    "run_id": Annotated[str, Meta(description="Run id: a ULID.")],
    "comparison_id": Annotated[str, Meta(description="Comparison id: a ULID.")],
    "trial": Annotated[str, Meta(description="Trial id: the name of its candidate, `-`, and its number from 1.")],
    "webhook_id": Annotated[str, Meta(description="Webhook id: a ULID.")],
    "path": Annotated[
        str, Meta(max_length=4096, description="Path of a file relative to the working directory of the run.")
    ],
    "agent": Annotated[str, Meta(description="Agent name or alias.")],
    "model": Annotated[str, Meta(description="Model name or alias. It may contain slashes.")],
    "session_id": Annotated[
        str,
        Meta(description="The agent's own session id, percent-encoded, or an unambiguous prefix of it."),
    ],
    "name": Annotated[str, Meta(pattern=f"^{PROFILE_NAME.pattern}$", description=f"Profile name: {PROFILE_NAMES}.")],
}
"""Name of a path parameter -> its type."""


@dataclass(frozen=True, slots=True)
class SchemaRef:
    """Reference to a schema by its name among the components."""

    name: str


@dataclass(frozen=True, slots=True)
class SseMessages:
    """The messages of a stream of Server-Sent Events."""

    events: tuple[Any, ...]
    """Data of messages with an id: types that msgspec supports, or schemas."""
    snapshot: SchemaRef | None = None
    """Data of messages of the type `run`; None: there are none."""
    id_pattern: str = "^[0-9]+$"
    id_description: str = "Number of the event, from 0."


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """One successful response of an operation."""

    shape: Any = None
    """Type of the JSON body: one that msgspec supports, or a `SchemaRef`; None: no JSON body."""
    status: int = 200
    description: str = "Success."
    other_media: Mapping[str, Any] = field(default_factory=dict)
    """Media type -> type of the body, several in a tuple. For a stream, the type of each event in it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header name -> description."""
    links: Links = field(default_factory=dict)
    """Operations that take values from this response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySpec:
    """The JSON body of a request."""

    shape: Any
    """A type that msgspec supports, or a `SchemaRef`."""
    is_required: bool = True
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Name -> a valid body."""
    omitted: tuple[str, ...] = ()
    """Fields of the shape that the path determines."""
    constraints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Field -> further schema keywords."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Schema keywords for the object as a whole."""
