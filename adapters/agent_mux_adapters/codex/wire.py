"""The native shapes of Codex that we read, and no more of them; everything else on a line is free to change.

Source: recordings of Codex 0.169.0 and its `codex app-server generate-json-schema`. Items of `codex exec --json` have
snake_case fields, those of the app-server camelCase ones: `items.py` reads both through the classes below.
"""

import json
from typing import Any, TypeVar

import msgspec

Shape = TypeVar("Shape")


def read(kind: type[Shape], value: Any) -> Shape | None:
    """This JSON value in that shape; None when it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str:
    """A JSON value for people to read."""
    return json.dumps(value, ensure_ascii=False)  # it writes whatever was read, integers of any size too


# -- streamed fragments: the hot path, decoded in one go -------------------------------------------------------------


class DeltaParams(msgspec.Struct, gc=False):
    """A fragment of the item `itemId`."""

    thread: str = msgspec.field(name="threadId")
    item: str = msgspec.field(name="itemId")
    delta: str
    summary_index: int = msgspec.field(name="summaryIndex", default=0)
    content_index: int = msgspec.field(name="contentIndex", default=0)


class Delta(msgspec.Struct, gc=False):
    """A whole line that streams a fragment."""

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
decode_delta = msgspec.json.Decoder(Delta).decode


# -- parameters of notifications and requests of the app-server -------------------------------------------------------


class _Camel(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of the app-server's shapes."""


class InThread(_Camel, frozen=True):
    """Most parameters say which thread they are about, some which turn."""

    thread_id: str | None = None
    turn_id: str | None = None


class TurnError(_Camel, frozen=True):
    """Why a turn, or a model call in it, failed."""

    message: str
    codex_error_info: Any = None
    """A name, or `{name: {"httpStatusCode": n}}`."""
    additional_details: str | None = None


class Turn(_Camel, frozen=True):
    """A turn as `turn/started` and `turn/completed` tell it."""

    id: str
    status: Any = None
    error: Any = None
    """A `TurnError`. Whatever is wrong with it, the turn is over."""


class TurnParams(_Camel, frozen=True):
    """`turn/started`, `turn/completed`."""

    thread_id: str
    turn: Turn


class ItemParams(_Camel, frozen=True):
    """`item/started`, `item/completed`."""

    thread_id: str
    item: dict[str, Any]


class ErrorParams(_Camel, frozen=True):
    """`error`: a failed model call."""

    error: TurnError
    will_retry: bool = False


class Tokens(_Camel, frozen=True):
    """Counts as OpenAI counts: the input includes what was read from the cache and written to it."""

    total_tokens: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenUsage(_Camel, frozen=True):
    """`total` counts over the whole thread, earlier runs included; `last` is the last model call, told repeatedly."""

    total: Tokens
    last: Tokens
    model_context_window: int | None = None


class TokenUsageParams(_Camel, frozen=True):
    """`thread/tokenUsage/updated`."""

    token_usage: TokenUsage


class PlanStep(_Camel, frozen=True):
    """One line of the agent's plan."""

    step: str
    status: str


class PlanParams(_Camel, frozen=True):
    """`turn/plan/updated`."""

    plan: list[PlanStep]
    explanation: str | None = None


class ThreadInfo(_Camel, frozen=True):
    """A thread, in `thread/started` and in the answers to `thread/start`, `thread/resume` and `thread/fork`."""

    id: str
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    model: str | None = None
    turns: list[Any] = []


class ThreadAnswer(_Camel, frozen=True):
    """The answer to `thread/start`, `thread/resume` and `thread/fork`."""

    thread: ThreadInfo
    model: str | None = None
    cwd: str | None = None
    instruction_sources: list[str] = []


class ThreadStarted(_Camel, frozen=True):
    """`thread/started`."""

    thread: ThreadInfo
