"""The structured results of the tools. Their JSON Schemas are the output schemas of the tools.

Names are camelCase in JSON. Times are milliseconds, amounts are US dollars. Fields with default values are omitted.
"""

from typing import Any, Literal

import msgspec

EntryKind = Literal["message", "tool", "done", "failed", "warning", "question"]
"""The kinds of entries.

- message: text of the agent.
- tool: a tool call.
- done: a change of a file, an approval, or something else that succeeded.
- failed: a failed tool call, a denied approval, or an error.
- warning: a problem that does not end the run.
- question: an approval request or a question.
"""


class ToolResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base class of all responses and their parts."""


class AgentInfo(ToolResponse, frozen=True):
    """One agent in the response of `list_agents`."""

    name: str
    title: str
    installed: bool
    version: str | None = None
    can: list[str] = []
    """What the agent supports besides answering a prompt."""
    approval_modes: list[str] = []
    """The approval modes that the agent supports and this server allows."""
    default_model: str | None = None
    problem: str | None = None
    """Why the agent cannot be started."""


class LimitsInfo(ToolResponse, frozen=True):
    """The limits of the server, and what remains of them."""

    roots: list[str]
    depth: int
    max_depth: int
    runs_left: int
    places_free: int
    timeout_ms: int
    approval_modes: list[str]
    cost_left_usd: float | None = None


class AgentList(ToolResponse, frozen=True):
    """The response of `list_agents`: the agents that may be started, and the limits."""

    agents: list[AgentInfo]
    limits: LimitsInfo


class RunInfo(ToolResponse, frozen=True):
    """The response of `start_run`, and one run in that of `list_runs`."""

    run_id: str
    agent: str
    state: str
    cwd: str
    prompt: str
    """The beginning of the prompt."""
    approval_mode: str
    model: str | None = None
    pending: int = 0
    """The number of pending approvals and questions."""
    idle: bool = False
    """Whether the run is kept open and waits for a further prompt."""
    cost_usd: float | None = None


class RunList(ToolResponse, frozen=True):
    """The response of `list_runs`: all runs of the server, and the limits."""

    runs: list[RunInfo]
    limits: LimitsInfo


class RunEntry(ToolResponse, frozen=True):
    """One event in the condensed view of a run."""

    n: int
    """The number of the event."""
    kind: EntryKind
    text: str


class Pending(ToolResponse, frozen=True):
    """A pending approval or question of a run."""

    interaction_id: str
    kind: Literal["approval", "question"]
    text: str
    tool_name: str | None = None
    risk: str | None = None
    command: str | None = None
    diff: str | None = None
    """The unified diff of the files that would change."""
    tool_input: str | None = None
    """The input of the tool as JSON, if there is neither a command nor a diff."""
    options: list[str] = []
    cut: bool = False
    """Whether a text or the list of options is truncated; such a request should not be approved unseen."""


class ErrorInfo(ToolResponse, frozen=True):
    """The error of a run that did not complete."""

    code: str
    message: str
    stderr: str | None = None


class RunOutcome(ToolResponse, frozen=True):
    """The result of a run that has ended."""

    exit_reason: str
    text: str
    """A part of the text of the last turn, which begins at character `from_char`."""
    text_length: int
    """The length of the whole text, in characters."""
    from_char: int = 0
    next_char: int | None = None
    """Where the next part begins; None if this is the last one."""
    stop_reason: str | None = None
    """Why the last answer ended: `length` if it was cut, `filtered` if it was blocked."""
    denied: list[str] = []
    """What was denied to the agent; at most the first 10."""
    tool_errors: int = 0
    """The number of tool calls that failed."""
    failed_on: list[str] = []
    """The conditions of `fail_on` that held, so that the run counts as failed."""
    cost_usd: float | None = None
    duration_ms: int = 0
    turns: int = 0
    session_id: str | None = None
    error: ErrorInfo | None = None
    structured_output: Any = None


class RunProgress(ToolResponse, frozen=True):
    """The response of `watch_run`: what is new in a run, and what the run waits for."""

    run_id: str
    state: str
    next: int
    """The number to pass as `after` to see the following events."""
    more: bool = False
    """Whether further events are available now."""
    idle: bool = False
    entries: list[RunEntry] = []
    events: list[dict[str, Any]] = []
    pending: list[Pending] = []
    result: RunOutcome | None = None


class TrialInfo(ToolResponse, frozen=True):
    """One trial in the response of `compare_agents` and `watch_comparison`."""

    trial: str
    state: str
    run_id: str | None = None
    """The latest run: watch_run shows what it did, answer answers its requests."""
    verdict: str | None = None
    """pass, fail, infra (excluded: says nothing about the agent), undecided or unjudged."""
    cause: str | None = None
    """How the run ended."""
    checks: str | None = None
    """Passed and all checks: 2/3."""
    patch: str | None = None
    """File with the changes, for git apply."""
    pending: int = 0
    """The number of pending approvals and questions."""


class ComparisonProgress(ToolResponse, frozen=True):
    """The response of `compare_agents` and `watch_comparison`: the state of a comparison."""

    comparison_id: str
    status: str
    """active, interrupted (trials are left) or ended."""
    table: str
    """One line per candidate, then what a reader must know."""
    trials: list[TrialInfo]
    selected: str | None = None
    """The trial that the checks select."""
    note: str = ""
    """Why, or why none."""
    error: ErrorInfo | None = None
    """Why it could not be carried out."""


class ActionReceipt(ToolResponse, frozen=True):
    """The response of `answer`, `send_prompt` and `stop_run`."""

    run_id: str
    delivery: str
    """How the action was delivered: applied, queued, merged or unneeded."""
    state: str
    pending: list[Pending] = []


class ResultResponse(ToolResponse, frozen=True):
    """The response of `get_result`: the changed files of a run, and its result once it has ended."""

    run_id: str
    agent: str
    state: str
    over: bool
    files_changed: list[str] = []
    result: RunOutcome | None = None
    """The result; None while the run is active."""
