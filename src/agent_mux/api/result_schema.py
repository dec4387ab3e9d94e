"""The JSON Schema of a run's result. The classes mirror the output of `RunResult.to_dict()`."""

import json
import re
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from agent_mux._util.json_schemas import json_schema
from agent_mux.api import JsonView
from agent_mux.assembler import ExitReason, RunAttempt
from agent_mux.errors import ErrorCode
from agent_mux.events import CostRecord, QuotaWindow
from agent_mux.events.base import StopReason
from agent_mux.sdk.options import FailOn
from agent_mux.worktrees.git import ChangeKind


class TokenUsageView(JsonView, kw_only=True):
    """Tokens of all model calls of the run."""

    input_tokens: int
    output_tokens: int
    thinking_tokens: int | UnsetType = UNSET
    cached_tokens: int | UnsetType = UNSET


class RunErrorView(JsonView, kw_only=True):
    """Why the run did not complete."""

    code: ErrorCode
    message: str
    recoverable: bool
    stderr: str | UnsetType = UNSET


class LedgerView(JsonView, kw_only=True):
    """How the native lines were handled. `lines` is the sum of the mapped, ignored and unknown ones."""

    lines: int
    mapped: int
    ignored: dict[str, int]
    reasons: dict[str, str]
    unknown: dict[str, int]


class WorktreeView(JsonView, kw_only=True):
    """The git worktree of the run, or its copy of a directory. Kept if `isChanged`, and removed otherwise."""

    path: str
    base_commit: Annotated[
        str | None, Meta(description="`null` for a copy of a directory that is in no git repository.")
    ]
    is_changed: bool


class DenialView(JsonView, kw_only=True):
    """An approval that was denied."""

    action: str
    detail: str
    tool_name: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class ChangedFileView(JsonView, kw_only=True):
    """A file that changed during the run, with the numbers of lines where they are known."""

    path: str
    change: ChangeKind
    added: int | UnsetType = UNSET
    removed: int | UnsetType = UNSET


class RunResultView(JsonView, kw_only=True):
    """The result of a run: the last line of `amux run --json`."""

    type: Literal["run_result"]
    run_id: str
    agent: str
    model: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    text: Annotated[str, Meta(description="Text of the last turn; its beginning, if it exceeds `maxTextBytes`.")]
    truncated_bytes: Annotated[
        int | UnsetType, Meta(description="Bytes of UTF-8 that were cut from `text`; absent when it is whole.")
    ] = UNSET
    exit_reason: ExitReason
    exit_code: int | UnsetType = UNSET
    signal: int | UnsetType = UNSET
    duration_ms: int
    turn_count: int
    cost: CostRecord | UnsetType = UNSET
    token_usage: TokenUsageView | UnsetType = UNSET
    error: RunErrorView | UnsetType = UNSET
    stop_reason: StopReason | UnsetType = UNSET
    model_calls: int | UnsetType = UNSET
    tool_calls: int | UnsetType = UNSET
    tool_errors: int | UnsetType = UNSET
    denials: list[DenialView] | UnsetType = UNSET
    changed_files: list[ChangedFileView] | UnsetType = UNSET
    failed_on: list[FailOn] | UnsetType = UNSET
    structured_output: Any = UNSET
    tags: list[str] | UnsetType = UNSET
    journal: str | UnsetType = UNSET
    worktree: WorktreeView | UnsetType = UNSET
    quota: list[QuotaWindow] | UnsetType = UNSET
    attempts: list[RunAttempt] | UnsetType = UNSET
    events: list[dict[str, Any]] | UnsetType = UNSET
    ledger: LedgerView


def result_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the result."""
    named = json.dumps(json_schema(RunResultView))
    schema = json.loads(re.sub(r"\b(\w+)View\b", r"\1", named))  # components are named like the classes of the library
    for name in ("CostRecord", "QuotaWindow", "RunAttempt"):
        _remove_nulls(schema["$defs"][name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "RunResult", **schema}


def _remove_nulls(component: dict[str, Any]) -> None:
    """Make optional fields non-nullable: `to_dict` omits them instead."""
    for name, schema in component["properties"].items():
        if schema.pop("default", ...) is None:
            (component["properties"][name],) = (choice for choice in schema["anyOf"] if choice != {"type": "null"})
