"""What the tools answer with. Their JSON Schema is the output schema of the tools; names are camelCase on the wire.

Times are milliseconds, money is US dollars. Absent fields are left out.
"""

from typing import Any, Literal

import msgspec

EntryKind = Literal["message", "tool", "done", "failed", "warning", "question"]
"""`message`: what the agent says; `tool`: it calls one; `done`: a file was changed, permission was given..."""


class AnswerStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all."""


class AgentInfo(AnswerStruct, frozen=True):
    """One agent."""

    name: str
    title: str
    installed: bool
    version: str | None = None
    can: list[str] = []
    """What it is good for besides a prompt and an answer."""
    approval_modes: list[str] = []
    """Those that this server allows."""
    default_model: str | None = None
    problem: str | None = None
    """What stands in its way."""


class LimitsInfo(AnswerStruct, frozen=True):
    """What may still be done."""

    roots: list[str]
    depth: int
    max_depth: int
    runs_left: int
    places_free: int
    timeout_ms: int
    approval_modes: list[str]
    cost_left_usd: float | None = None


class Agents(AnswerStruct, frozen=True):
    """Who can be asked."""

    agents: list[AgentInfo]
    limits: LimitsInfo


class RunInfo(AnswerStruct, frozen=True):
    """One run."""

    run_id: str
    agent: str
    state: str
    cwd: str
    prompt: str
    """Its beginning."""
    approval_mode: str
    model: str | None = None
    pending: int = 0
    idle: bool = False
    """It waits for a further prompt."""
    cost_usd: float | None = None


class Runs(AnswerStruct, frozen=True):
    """All runs of the server."""

    runs: list[RunInfo]
    limits: LimitsInfo


class Entry(AnswerStruct, frozen=True):
    """One thing that happened."""

    n: int
    """Its number among the events."""
    kind: EntryKind
    text: str


class Pending(AnswerStruct, frozen=True):
    """What the delegate waits for."""

    interaction_id: str
    kind: Literal["approval", "question"]
    text: str
    tool_name: str | None = None
    risk: str | None = None
    command: str | None = None
    options: list[str] = []
    cut: bool = False
    """More than can be shown: do not approve what you cannot see."""


class ErrorInfo(AnswerStruct, frozen=True):
    """Why a run did not complete."""

    code: str
    message: str
    stderr: str | None = None


class Outcome(AnswerStruct, frozen=True):
    """How a run ended."""

    exit_reason: str
    text: str
    """Of the last turn, from `fromChar`."""
    text_length: int
    from_char: int = 0
    next_char: int | None = None
    """Where the text goes on; absent: it is complete."""
    cost_usd: float | None = None
    duration_ms: int = 0
    turns: int = 0
    session_id: str | None = None
    error: ErrorInfo | None = None
    structured_output: Any = None


class Watched(AnswerStruct, frozen=True):
    """What happened in a run, and what it waits for."""

    run_id: str
    state: str
    next: int
    """Give this as `after` to see what comes next."""
    more: bool = False
    """There is more already."""
    idle: bool = False
    entries: list[Entry] = []
    events: list[dict[str, Any]] = []
    pending: list[Pending] = []
    result: Outcome | None = None


class Answered(AnswerStruct, frozen=True):
    """What was said to a run, and how it took it."""

    run_id: str
    delivery: str
    """applied, queued, merged or unneeded."""
    state: str
    pending: list[Pending] = []


class Result(AnswerStruct, frozen=True):
    """The result of a run, once it is over."""

    run_id: str
    agent: str
    state: str
    over: bool
    files_changed: list[str] = []
    result: Outcome | None = None
