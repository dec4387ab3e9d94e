"""Native shapes of Codex that this adapter reads. Fields that it does not read are free to change.

Measured with Codex 0.169.0: its recordings and `codex app-server generate-json-schema`. `items.py` has the shapes of
items.
"""

import json
from typing import Any, TypeVar

import msgspec

Shape = TypeVar("Shape")


def read(kind: type[Shape], value: Any) -> Shape | None:
    """Convert a JSON value to a native shape; None when it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str:
    """Format a JSON value for people."""
    return json.dumps(value, ensure_ascii=False)  # unlike msgspec, it writes integers of any size


# -- streamed fragments: the hot path, decoded in one step -----------------------------------------------------------


class DeltaParams(msgspec.Struct, gc=False):
    """Parameters of a notification with a fragment of the item `itemId`."""

    thread: str = msgspec.field(name="threadId")
    item: str = msgspec.field(name="itemId")
    delta: str
    summary_index: int = msgspec.field(name="summaryIndex", default=0)
    content_index: int = msgspec.field(name="contentIndex", default=0)


class DeltaNotification(msgspec.Struct, gc=False):
    """A whole line with a fragment."""

    method: str
    params: DeltaParams


DELTA_METHODS = frozenset(
    {
        "item/agentMessage/delta",
        "item/reasoning/summaryTextDelta",
        "item/reasoning/textDelta",
        "item/commandExecution/outputDelta",
    }
)
DELTA_STARTS = tuple(f'{{"method":"{method}",'.encode() for method in sorted(DELTA_METHODS))
decode_delta = msgspec.json.Decoder(DeltaNotification).decode


# -- parameters and results of the app-server -------------------------------------------------------------------------


class _Camel(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base class of shapes with camelCase fields."""


class InThread(_Camel, frozen=True):
    """The thread, and for some methods the turn, that a message belongs to."""

    thread_id: str | None = None
    turn_id: str | None = None


class TurnError(_Camel, frozen=True):
    """Why a turn, or a model call in it, failed."""

    message: str
    codex_error_info: Any = None
    """A name, or `{name: {"httpStatusCode": n}}`."""
    additional_details: str | None = None


class TurnInfo(_Camel, frozen=True):
    """A turn in `turn/started` and `turn/completed`."""

    id: str
    status: Any = None
    error: Any = None
    """A `TurnError`. Left undecoded: the turn is over even when the error has an unknown shape."""


class TurnParams(_Camel, frozen=True):
    """Parameters of `turn/started` and `turn/completed`."""

    thread_id: str
    turn: TurnInfo


class ItemParams(_Camel, frozen=True):
    """Parameters of `item/started` and `item/completed`."""

    thread_id: str
    item: dict[str, Any]


class ErrorParams(_Camel, frozen=True):
    """Parameters of `error`: a failed model call."""

    error: TurnError
    will_retry: bool = False


class CodexTokens(_Camel, frozen=True):
    """Token counts as OpenAI counts: the input includes what was read from the cache and written to it."""

    total_tokens: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class ThreadTokenUsage(_Camel, frozen=True):
    """Token counts of a thread and of its last model call."""

    total: CodexTokens
    """Of the whole thread, earlier runs included."""
    last: CodexTokens
    """Of the last model call. Codex repeats it in several notifications."""
    model_context_window: int | None = None


class TokenUsageParams(_Camel, frozen=True):
    """Parameters of `thread/tokenUsage/updated`, printed after each model call."""

    token_usage: ThreadTokenUsage


class PlanStep(_Camel, frozen=True):
    """One line of the agent's plan."""

    step: str
    status: str


class PlanParams(_Camel, frozen=True):
    """Parameters of `turn/plan/updated`: the whole plan."""

    plan: list[PlanStep]
    explanation: str | None = None


class ThreadInfo(_Camel, frozen=True):
    """A thread, in `thread/started` and in the results of `thread/start`, `thread/resume` and `thread/fork`."""

    id: str
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    model: str | None = None
    turns: list[Any] = []


class ThreadResult(_Camel, frozen=True):
    """The result of `thread/start`, `thread/resume` and `thread/fork`."""

    thread: ThreadInfo
    model: str | None = None
    cwd: str | None = None
    instruction_sources: list[str] = []


class ThreadStarted(_Camel, frozen=True):
    """Parameters of `thread/started`: the new thread."""

    thread: ThreadInfo
