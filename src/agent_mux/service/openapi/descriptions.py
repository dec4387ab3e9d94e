"""What a path says of itself beyond its parameters: what it reads, what it answers, and what can go wrong.

    @router.get("/{run_id}")
    @described(Answer(RunView), errors=("RUN_NOT_FOUND",))
    async def get_run(...): ...

The function's name is the operation's id, its docstring the description. Every path has to be described: a test asks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_mux.errors import AnyCode

JSON, JSONL, SSE = "application/json", "application/jsonl", "text/event-stream"
Links = Mapping[str, Mapping[str, str]]
"""Operation -> its parameters, as expressions on the answer: `{"get_run": {"run_id": "$response.body#/runId"}}`."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class SchemaRef:
    """A schema that is made by hand: its name among the components."""

    name: str


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """One answer of a path that is no problem."""

    shape: Any = None
    """Of a JSON body: a type that msgspec knows, or a `Component`."""
    status: int = 200
    description: str = "Done."
    other_media: Mapping[str, Any] = field(default_factory=dict)
    """Bodies of other media types: their shapes; several in a tuple. Of a stream, the shape of each event in it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Name -> what it says."""
    links: Links = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySpec:
    """What a path reads."""

    shape: Any
    """A type that msgspec knows, or a `Component`."""
    is_required: bool = True
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Name -> a body that works."""
    omitted: tuple[str, ...] = ()
    """Fields of the shape that the path has already said."""
    constraints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Field -> what its schema says besides its type."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the schema says of the fields together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSpec:
    """All of it."""

    answers: tuple[ResponseSpec, ...]
    body: BodySpec | None = None
    errors: tuple[AnyCode, ...] = ()
    """Besides those that every path has: see `words.EVERYWHERE`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Name -> an example that works."""
    is_stream: bool = False
    """It answers for as long as there is something to tell."""


DESCRIBED: dict[str, OperationSpec] = {}
"""By the name of the function."""


def described(
    *answers: ResponseSpec,
    body: BodySpec | None = None,
    errors: tuple[AnyCode, ...] = (),
    parameters: Mapping[str, Any] | None = None,
    is_stream: bool = False,
) -> Callable[[_Function], _Function]:
    """Say what a path answers and reads. See `Description`."""
    spec = OperationSpec(answers=answers, body=body, errors=errors, parameters=parameters or {}, is_stream=is_stream)

    def remember(function: _Function) -> _Function:
        DESCRIBED[function.__name__] = spec
        return function

    return remember


COMMON_ERRORS: tuple[AnyCode, ...] = ("UNAUTHENTICATED", "FORBIDDEN", "UNAVAILABLE", "INTERNAL")
"""What can go wrong wherever a token is wanted."""
REFUSAL_DESCRIPTIONS: Mapping[int, str] = {
    408: "It is too slow.",
    413: "Its body is too large.",
    414: "Its target is too long.",
    415: "A body from a browser is not JSON.",
    421: "It is for another host.",
    431: "Its headers are too large.",
}
"""Requests that are refused whatever they ask for."""
INTRODUCTION = """Drive coding agents over HTTP: start runs, watch what happens in them, answer what they ask.

JSON is camelCase; a field that is not there is left out. Times are milliseconds since the epoch, durations are
milliseconds, money is US dollars. No text has NUL characters. Errors are problem details (RFC 9457) with a `code`.
What is too slow (408) or too large (413, 414, 431), from a browser and not JSON (415), or for another host (421) is
refused whatever it asks for."""
TAGS: Mapping[str, str] = {
    "runs": "Start runs, find them, forget them.",
    "events": "What happens in a run: Server-Sent Events or JSON lines.",
    "commands": "Tell a run something: prompts, answers, interruption.",
    "agents": "The agents that can be driven, and what is installed.",
    "models": "The models that agents offer, and their prices.",
    "sessions": "The conversations that the agents stored themselves.",
    "cost": "What stored sessions cost.",
    "profiles": "Options of runs under a name.",
    "webhooks": "Other programs that are told of runs.",
    "health": "Whether the process lives, and whether it can work.",
}
PATH_PARAMETERS: Mapping[str, str] = {
    "run_id": "Id of a run: a ULID.",
    "webhook_id": "Id of a webhook: a ULID.",
    "agent": "Name of an agent, or an alias.",
    "model": "Name of a model, or one that means it. It may have slashes.",
    "session_id": "The agent's own id of a session, percent-encoded; or its beginning, if no other begins so.",
}
