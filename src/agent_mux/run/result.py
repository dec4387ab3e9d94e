"""The result of a run, and its wire format. See docs/spec/run-api.md, section 3 (RunResult)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.assembler import ExitReason, RunAttempt
from agent_mux.assembler.costs import add_optional
from agent_mux.errors import AgentMuxError, ErrorCode
from agent_mux.events import (
    AgentEvent,
    CostRecord,
    QuotaWindow,
    TokenUsageEvent,
    event_from_dict,
    event_to_dict,
)
from agent_mux.events.base import StopReason
from agent_mux.run.answer import joined
from agent_mux.run.changed_files import ChangedFile
from agent_mux.run.ledger import Ledger
from agent_mux.sdk.options import FailOn
from agent_mux.worktrees.state import Worktree

if TYPE_CHECKING:
    pass

FILTERED: ErrorCode = "CONTENT_FILTERED"


@dataclass(frozen=True, slots=True)
class RunError(PydanticCompatible):
    """The reason why a run did not complete."""

    code: ErrorCode
    """The kind of error, one of the [codes](#codes)."""
    message: str
    """What happened, to what, and the next step; without secrets."""
    stderr: str = ""
    """Last part of the agent's standard error."""
    recoverable: bool = False
    """Whether repeating the run may succeed."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "RunError":
        """Return the error for the result of `to_dict`."""
        return cls(plain["code"], plain.get("message", ""), plain.get("stderr", ""), plain.get("recoverable", False))

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format, without absent fields."""
        stderr = {"stderr": self.stderr} if self.stderr else {}
        return {"code": self.code, "message": self.message, **stderr, "recoverable": self.recoverable}


@dataclass(frozen=True, slots=True)
class TokenUsage(PydanticCompatible):
    """Token counts of all model calls of the run."""

    input_tokens: int = 0
    """Input tokens that were neither read from nor written to a cache."""
    output_tokens: int = 0
    """Output tokens."""
    thinking_tokens: int | None = None
    """Tokens of thinking; None if no call reported them."""
    cached_tokens: int | None = None
    """Tokens that were read from a cache; None if no call reported them."""

    def plus(self, call: TokenUsageEvent) -> "TokenUsage":
        """Return the sum with the tokens of one more model call."""
        return TokenUsage(
            self.input_tokens + call.input_tokens,
            self.output_tokens + call.output_tokens,
            add_optional(self.thinking_tokens, call.thinking_tokens),
            add_optional(self.cached_tokens, call.cached_tokens),
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, int]) -> "TokenUsage":
        """Return the counts for the result of `to_dict`."""
        return cls(
            plain.get("inputTokens", 0),
            plain.get("outputTokens", 0),
            plain.get("thinkingTokens"),
            plain.get("cachedTokens"),
        )

    def to_dict(self) -> dict[str, int]:
        """Return the wire format: camelCase, without absent fields."""
        plain = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "thinkingTokens": self.thinking_tokens,
            "cachedTokens": self.cached_tokens,
        }
        return {name: value for name, value in plain.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Denial(PydanticCompatible):
    """An approval that was denied: by a policy, a hook, a callback, a person, the approval mode, or a deadline."""

    action: str
    """Kind of the action, as in `ApprovalDetail`."""
    detail: str
    """The action itself, as in `ApprovalDetail`."""
    tool_name: str | None = None
    """The agent's name of the tool; None if the agent did not report it."""
    reason: str | None = None
    """Why it was denied; None if no reason was given."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Denial":
        """Return the denial for the result of `to_dict`."""
        return cls(plain["action"], plain["detail"], plain.get("toolName"), plain.get("reason"))

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format: camelCase, without absent fields."""
        plain = {"action": self.action, "detail": self.detail, "toolName": self.tool_name, "reason": self.reason}
        return {name: value for name, value in plain.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(PydanticCompatible):
    """How a run ended.

    Awaiting a run never raises for what the agent did: check `exit_reason` and `error`.
    """

    run_id: str
    """ULID of the run."""
    agent: str
    """Registered name of the agent; after a change of the agent, of the last one."""
    model: str | None
    """The model that the agent reported, else the requested one; None if neither is known."""
    session_id: str | None
    """The agent's own session id, to continue it later; None if the agent reported none."""
    exit_reason: ExitReason
    """How the run ended, one of the [words](#words) of `ExitReason`."""
    exit_code: int | None
    """None when a signal ended the process, or when it never started."""
    signal: int | None
    """Number of the signal that ended the process; None if none did."""
    duration_ms: int
    """Milliseconds from the start of the run to its end."""
    turn_count: int
    """Number of turns: prompts on which the agent worked."""
    cost: CostRecord | None
    """Cost of the whole run in US dollars, with its source; None if neither costs nor tokens are known."""
    token_usage: TokenUsage | None
    """Tokens of all model calls; None if the agent reported none."""
    error: RunError | None
    """Why the run did not complete; None if it did."""
    ledger: Ledger
    """Counts of mapped, ignored and unknown native lines."""
    stop_reason: StopReason | None = None
    """Why the last answer of the model ended: `end`, `length`, `filtered` or `tool_use`; None where not reported."""
    model_calls: int | None = None
    """Number of model calls, as far as the agent reports them one by one; None if it reports none."""
    tool_calls: int = 0
    """Number of tool calls of the main agent, including those of MCP tools."""
    tool_errors: int = 0
    """Number of those that failed."""
    denials: tuple[Denial, ...] = ()
    """Approvals that were denied, at most the first 100."""
    changed_files: tuple[ChangedFile, ...] = ()
    """Files that changed during the run, at most 1,000: as git compares them, or as the agent reported them."""
    failed_on: tuple[FailOn, ...] = ()
    """The conditions of `fail_on` that hold, so that the run counts as failed although the agent completed it."""
    structured_output: Any = None
    """Parsed answer, if `output_schema` was given."""
    tags: tuple[str, ...] = ()
    """The `tags` of the options, in their order."""
    events: tuple[AgentEvent, ...] | None = None
    """All events; only with `collect_events`."""
    journal: str | None = None
    """Path of the run's recording; None without one."""
    worktree: Worktree | None = None
    """The run's own worktree; None without one."""
    quota: tuple[QuotaWindow, ...] = ()
    """The quota of the agent's account as its provider last reported it; empty if it reported none."""
    attempts: tuple[RunAttempt, ...] = ()
    """The attempts before the last one, whose agent, model, session and outcome are those of the result."""
    agent_version: str | None = None
    """Version of the agent's program; None when it is unknown."""
    truncated_bytes: int | None = None
    """Bytes of UTF-8 that were cut from `text` after the limit `max_text_bytes`; None when it is whole."""
    texts: "Callable[[], list[list[str]]]" = field(default=list, repr=False, compare=False)
    answer: str | None = field(default=None, repr=False, compare=False)
    """The text, where it was kept apart from the messages."""

    @property
    def text(self) -> str:
        """Text of the last turn: its messages, joined with blank lines; its beginning, where it exceeds the limit."""
        if self.answer is not None:
            return self.answer
        turns = self.texts()
        return joined(turns[-1]) if turns else ""

    @property
    def messages(self) -> list[str]:
        """All messages of the run, in order."""
        return [message for turn in self.texts() for message in turn]

    @property
    def ok(self) -> bool:
        """Whether the agent completed the task, as far as it and we know, and no condition of `fail_on` holds."""
        return self.exit_reason == "completed" and not self.failed_on

    def _repr_html_(self) -> str:
        """Return the result as HTML for notebooks. Everything in it is escaped."""
        from agent_mux._util.html import notebook_box  # noqa: PLC0415  # for notebooks only

        cost = None if self.cost is None else f"${self.cost.total_usd:.4f} ({self.cost.source or 'native'})"
        usage = self.token_usage
        rows = {
            "run": self.run_id,
            "model": self.model,
            "session": self.session_id,
            "error": None if self.error is None else f"{self.error.code}: {self.error.message}",
            "turns": self.turn_count,
            "duration": f"{self.duration_ms / 1000:.1f} s",
            "cost": cost,
            "tokens": None if usage is None else f"{usage.input_tokens:,} in, {usage.output_tokens:,} out",
            "changed files": ", ".join(file.path for file in self.changed_files),
            "journal": self.journal,
        }
        return notebook_box(f"{self.agent}: {self.exit_reason}", rows, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format: camelCase, without absent fields. The last line of `amux run --json`."""
        import msgspec  # noqa: PLC0415

        plain: dict[str, Any] = {
            "type": "run_result",
            "runId": self.run_id,
            "agent": self.agent,
            "agentVersion": self.agent_version,
            "model": self.model,
            "sessionId": self.session_id,
            "text": self.text,
            "truncatedBytes": self.truncated_bytes,
            "exitReason": self.exit_reason,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "durationMs": self.duration_ms,
            "turnCount": self.turn_count,
            "cost": msgspec.to_builtins(self.cost),
            "tokenUsage": None if self.token_usage is None else self.token_usage.to_dict(),
            "error": None if self.error is None else self.error.to_dict(),
            "stopReason": self.stop_reason,
            "modelCalls": self.model_calls,
            "toolCalls": self.tool_calls,
            "toolErrors": self.tool_errors,
            "denials": [denial.to_dict() for denial in self.denials],
            "changedFiles": [file.to_dict() for file in self.changed_files],
            "failedOn": list(self.failed_on) or None,
            "structuredOutput": self.structured_output,
            "tags": list(self.tags) or None,
            "journal": self.journal,
            "worktree": None if self.worktree is None else self.worktree.to_dict(),
            "quota": [msgspec.to_builtins(window) for window in self.quota] or None,
            "attempts": [_attempt_to_dict(attempt) for attempt in self.attempts] or None,
            "events": None if self.events is None else [event_to_dict(event) for event in self.events],
            "ledger": self.ledger.to_dict(),
        }
        return {name: value for name, value in plain.items() if value is not None}

    @classmethod
    def from_dict(
        cls, plain: Mapping[str, Any], *, texts: "Callable[[], list[list[str]]] | None" = None, **overrides: Any
    ) -> "RunResult":
        """Return the result for the output of `to_dict`, ignoring fields of newer versions.

        Args:
            plain: The object. It has the text of the last turn only, which becomes its only message.
            texts: Returns the messages of all turns, if the caller has them.
            **overrides: Fields that the caller knows better.

        Raises:
            AgentMuxError: PARSE_ERROR for other data.
        """
        import msgspec  # noqa: PLC0415

        text = plain.get("text", "")
        try:
            fields = {name: read(plain[key]) for key, (name, read) in _READERS.items() if plain.get(key) is not None}
            values = {**dict.fromkeys(_OPTIONAL), "ledger": Ledger(), **fields, **overrides}
            return cls(**{"answer": plain.get("text"), **values}, texts=texts or (lambda: [[text]] if text else []))
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
            raise AgentMuxError("PARSE_ERROR", f"this is not a result of a run: {error!r}") from error


_ENDED_BY_THE_AGENT = frozenset({"completed", "failed"})
"""Exit reasons for which conditions of `fail_on` are checked; others are failures of their own kind."""


def conditions_met(result: RunResult, fail_on: Collection[FailOn]) -> tuple[FailOn, ...]:
    """Return which of these conditions hold for a run that the agent ended itself."""
    if result.exit_reason not in _ENDED_BY_THE_AGENT:
        return ()
    holds: Mapping[FailOn, bool] = {
        "denied": bool(result.denials),
        "tool_error": result.tool_errors > 0,
        "no_change": not result.changed_files,
        "length": result.stop_reason == "length",
        "filtered": result.stop_reason == "filtered" or (result.error is not None and result.error.code == FILTERED),
    }
    return tuple(name for name, is_met in holds.items() if is_met and name in fail_on)


def _cost_of(plain: Any) -> CostRecord:
    import msgspec  # noqa: PLC0415

    return msgspec.convert(plain, CostRecord)


def _attempt_to_dict(attempt: RunAttempt) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415

    plain: dict[str, Any] = msgspec.to_builtins(attempt)
    return {**plain, "quota": list(plain["quota"])} if "quota" in plain else plain


def _quota_of(plain: Any) -> tuple[QuotaWindow, ...]:
    import msgspec  # noqa: PLC0415

    return msgspec.convert(plain, tuple[QuotaWindow, ...])


def _attempts_of(plain: Any) -> tuple[RunAttempt, ...]:
    import msgspec  # noqa: PLC0415

    return msgspec.convert(plain, tuple[RunAttempt, ...])


_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "runId": ("run_id", str),
    "agent": ("agent", str),
    "agentVersion": ("agent_version", str),
    "model": ("model", str),
    "sessionId": ("session_id", str),
    "exitReason": ("exit_reason", str),
    "exitCode": ("exit_code", int),
    "signal": ("signal", int),
    "durationMs": ("duration_ms", int),
    "turnCount": ("turn_count", int),
    "cost": ("cost", _cost_of),
    "tokenUsage": ("token_usage", TokenUsage.from_dict),
    "error": ("error", RunError.from_dict),
    "truncatedBytes": ("truncated_bytes", int),
    "stopReason": ("stop_reason", str),
    "modelCalls": ("model_calls", int),
    "toolCalls": ("tool_calls", int),
    "toolErrors": ("tool_errors", int),
    "denials": ("denials", lambda denials: tuple(map(Denial.from_dict, denials))),
    "changedFiles": ("changed_files", lambda files: tuple(map(ChangedFile.from_dict, files))),
    "failedOn": ("failed_on", tuple),
    "structuredOutput": ("structured_output", lambda value: value),
    "tags": ("tags", tuple),
    "journal": ("journal", str),
    "worktree": ("worktree", Worktree.from_dict),
    "quota": ("quota", _quota_of),
    "attempts": ("attempts", _attempts_of),
    "events": ("events", lambda events: tuple(event_from_dict(event) for event in events)),
    "ledger": ("ledger", Ledger.from_dict),
}
"""By wire key: the field, and the function that reads its value."""
_OPTIONAL = ("model", "session_id", "exit_code", "signal", "cost", "token_usage", "error")
