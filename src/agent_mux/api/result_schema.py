"""The JSON Schema of a run's result, as `RunResult.to_dict()` puts it on the wire: the shapes here mirror it."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from agent_mux.api import JsonView
from agent_mux.assembler import ExitReason
from agent_mux.errors import ErrorCode
from agent_mux.events import CostRecord


class TokenUsage(JsonView, kw_only=True):
    """Tokens of all model calls of the run."""

    input_tokens: int
    output_tokens: int
    thinking_tokens: int | UnsetType = UNSET
    cached_tokens: int | UnsetType = UNSET


class RunError(JsonView, kw_only=True):
    """Why the run did not complete."""

    code: ErrorCode
    message: str
    recoverable: bool
    stderr: str | UnsetType = UNSET


class Ledger(JsonView, kw_only=True):
    """What became of every native line: `lines` is mapped, ignored and unknown together."""

    lines: int
    mapped: int
    ignored: dict[str, int]
    reasons: dict[str, str]
    unknown: dict[str, int]


class Worktree(JsonView, kw_only=True):
    """The git worktree that the run had to itself; it is there still when `isChanged`."""

    path: str
    base_commit: str
    is_changed: bool


class RunResult(JsonView, kw_only=True):
    """How a run ended: the last line of `amux run --json`."""

    type: Literal["run_result"]
    run_id: str
    agent: str
    model: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    text: str
    exit_reason: ExitReason
    exit_code: int | UnsetType = UNSET
    signal: int | UnsetType = UNSET
    duration_ms: int
    turn_count: int
    cost: CostRecord | UnsetType = UNSET
    token_usage: TokenUsage | UnsetType = UNSET
    error: RunError | UnsetType = UNSET
    structured_output: Any = UNSET
    tags: list[str] | UnsetType = UNSET
    journal: str | UnsetType = UNSET
    worktree: Worktree | UnsetType = UNSET
    events: list[dict[str, Any]] | UnsetType = UNSET
    ledger: Ledger


def result_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the result."""
    schema = msgspec.json.schema(RunResult)
    _without_nulls(schema["$defs"]["CostRecord"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "RunResult", **schema}


def _without_nulls(component: dict[str, Any]) -> None:
    for name, shape in component["properties"].items():
        if shape.pop("default", ...) is None:
            (component["properties"][name],) = (choice for choice in shape["anyOf"] if choice != {"type": "null"})
