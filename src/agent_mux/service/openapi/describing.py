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
class Component:
    """A schema that is made by hand: its name among the components."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a path that is no problem."""

    shape: Any = None
    """Of a JSON body: a type that msgspec knows, or a `Component`."""
    status: int = 200
    meaning: str = "Done."
    also: Mapping[str, Any] = field(default_factory=dict)
    """Bodies of other media types: their shapes; several in a tuple. Of a stream, the shape of each event in it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Name -> what it says."""
    links: Links = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a path reads."""

    shape: Any
    """A type that msgspec knows, or a `Component`."""
    is_required: bool = True
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Name -> a body that works."""
    without: tuple[str, ...] = ()
    """Fields of the shape that the path has already said."""
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Field -> what its schema says besides its type."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What the schema says of the fields together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of it."""

    answers: tuple[Answer, ...]
    body: Body | None = None
    errors: tuple[AnyCode, ...] = ()
    """Besides those that every path has: see `words.EVERYWHERE`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Name -> an example that works."""
    is_stream: bool = False
    """It answers for as long as there is something to tell."""


DESCRIBED: dict[str, Description] = {}
"""By the name of the function."""


def described(
    *answers: Answer,
    body: Body | None = None,
    errors: tuple[AnyCode, ...] = (),
    parameters: Mapping[str, Any] | None = None,
    is_stream: bool = False,
) -> Callable[[_Function], _Function]:
    """Say what a path answers and reads. See `Description`."""
    said = Description(answers=answers, body=body, errors=errors, parameters=parameters or {}, is_stream=is_stream)

    def remember(function: _Function) -> _Function:
        DESCRIBED[function.__name__] = said
        return function

    return remember
