"""The result of a run, and the builder that collects it from the events.

See docs/spec/run-api.md, section 3 (RunResult).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.assembler import ExitReason, Verdict
from agent_mux.assembler.costs import add_optional
from agent_mux.errors import RECOVERABLE, AgentMuxError, ErrorCode
from agent_mux.events import (
    AgentEvent,
    CostRecord,
    MessageStopEvent,
    RetryEvent,
    SessionEndEvent,
    TokenUsageEvent,
    TurnEndEvent,
    TurnStartEvent,
    event_from_dict,
    event_to_dict,
)
from agent_mux.run.ledger import Ledger

MAX_TEXT_IN_MEMORY = 1 << 17  # characters of messages; longer ones are derived from the journal on demand


@dataclass(frozen=True, slots=True)
class RunError(PydanticCompatible):
    """The reason why a run did not complete."""

    code: ErrorCode
    message: str
    stderr: str = ""
    """Last part of the agent's standard error."""
    recoverable: bool = False

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
    output_tokens: int = 0
    thinking_tokens: int | None = None
    cached_tokens: int | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree(PydanticCompatible):
    """The git worktree in which the run worked (`isolation`)."""

    path: str
    base_commit: str
    """Commit from which the worktree was created."""
    is_changed: bool
    """Whether the worktree was changed, or its changes could not be determined: then it is kept, otherwise removed."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Worktree":
        """Return the worktree for the result of `to_dict`."""
        return cls(path=plain["path"], base_commit=plain["baseCommit"], is_changed=plain["isChanged"])

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format, in camelCase."""
        return {"path": self.path, "baseCommit": self.base_commit, "isChanged": self.is_changed}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(PydanticCompatible):
    """How a run ended.

    Awaiting a run never raises for what the agent did: check `exit_reason` and `error`.
    """

    run_id: str
    agent: str
    model: str | None
    session_id: str | None
    exit_reason: ExitReason
    exit_code: int | None
    """None when a signal ended the process, or when it never started."""
    signal: int | None
    duration_ms: int
    turn_count: int
    cost: CostRecord | None
    token_usage: TokenUsage | None
    error: RunError | None
    ledger: Ledger
    """Counts of mapped, ignored and unknown native lines."""
    structured_output: Any = None
    """Parsed answer, if `output_schema` was given."""
    tags: tuple[str, ...] = ()
    events: tuple[AgentEvent, ...] | None = None
    """All events; only with `collect_events`."""
    journal: str | None = None
    """Path of the run's recording; None without one."""
    worktree: Worktree | None = None
    """The run's own worktree; None without one."""
    texts: "Callable[[], list[list[str]]]" = field(default=list, repr=False, compare=False)

    @property
    def text(self) -> str:
        """Text of the last turn: its messages, joined with blank lines."""
        turns = self.texts()
        return "\n\n".join(turns[-1]) if turns else ""

    @property
    def messages(self) -> list[str]:
        """All messages of the run, in order."""
        return [message for turn in self.texts() for message in turn]

    @property
    def ok(self) -> bool:
        """Whether the agent reported that it completed the task, and nothing contradicts it."""
        return self.exit_reason == "completed"

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format: camelCase, without absent fields. The last line of `amux run --json`."""
        import msgspec  # noqa: PLC0415

        plain: dict[str, Any] = {
            "type": "run_result",
            "runId": self.run_id,
            "agent": self.agent,
            "model": self.model,
            "sessionId": self.session_id,
            "text": self.text,
            "exitReason": self.exit_reason,
            "exitCode": self.exit_code,
            "signal": self.signal,
            "durationMs": self.duration_ms,
            "turnCount": self.turn_count,
            "cost": msgspec.to_builtins(self.cost),
            "tokenUsage": None if self.token_usage is None else self.token_usage.to_dict(),
            "error": None if self.error is None else self.error.to_dict(),
            "structuredOutput": self.structured_output,
            "tags": list(self.tags) or None,
            "journal": self.journal,
            "worktree": None if self.worktree is None else self.worktree.to_dict(),
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
            return cls(**values, texts=texts or (lambda: [[text]] if text else []))
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
            raise AgentMuxError("PARSE_ERROR", f"this is not a result of a run: {error!r}") from error


class ResultBuilder:
    """Collects from the events of a run what its result needs.

    `bounded`: long texts are not kept, because they can be derived again from the journal.
    """

    def __init__(self, *, collect: bool, bounded: bool = False) -> None:
        self._events: list[AgentEvent] | None = [] if collect else None
        self.bounded = bounded
        self._handlers: dict[type, Callable[[Any], None]] = {
            MessageStopEvent: self._add_message,
            TurnStartEvent: self._begin_turn,
            TurnEndEvent: self._end_turn,
            RetryEvent: self._retry,
            TokenUsageEvent: self._count_tokens,
            SessionEndEvent: self._end_session,
        }
        self._turns: list[list[str]] = []
        self._is_in_turn = False
        self._text_size = 0
        self._overflowed = False
        self._turn_count = 0
        self._cost: CostRecord | None = None
        self._usage: TokenUsage | None = None

    def observe(self, events: Sequence[AgentEvent]) -> None:
        """Collect from these events, in order."""
        if self._events is not None:
            self._events.extend(events)
        handlers = self._handlers
        for event in events:
            handler = handlers.get(event.__class__)
            if handler is not None:
                handler(event)

    def _begin_turn(self, event: TurnStartEvent) -> None:
        self._turns.append([])
        self._is_in_turn = True
        self._turn_count = event.turn_index + 1

    def _end_turn(self, _: TurnEndEvent) -> None:
        self._is_in_turn = False

    def _retry(self, _: RetryEvent) -> None:
        if not self._is_in_turn:  # a new attempt of the run; inside a turn, the agent repeats a model call
            self._turns = []

    def _end_session(self, event: SessionEndEvent) -> None:
        self._cost = event.cost

    def _add_message(self, event: MessageStopEvent) -> None:
        if event.subagent_id is not None or event.abandoned or not self._turns:
            return
        self._text_size += len(event.text)
        if self.bounded and self._text_size > MAX_TEXT_IN_MEMORY:
            self._overflowed = True
        if not self._overflowed:
            self._turns[-1].append(event.text)

    def _count_tokens(self, event: TokenUsageEvent) -> None:
        self._usage = (self._usage or TokenUsage()).plus(event)

    def retain_texts(self, derive: "Callable[[], Sequence[AgentEvent]]") -> None:
        """Keep all further texts, however long, because the journal ends. `derive` returns the events so far."""
        if self._overflowed:
            self._turns = _messages_by_turn(derive())
        self.bounded = self._overflowed = False

    def build(
        self, verdict: Verdict, *, stderr: str, derive: "Callable[[], Sequence[AgentEvent]] | None", **fields: Any
    ) -> RunResult:
        """Return the result. `derive` returns the events again, for texts that were too long to keep."""
        failure = verdict.failure
        return RunResult(
            exit_reason=verdict.exit_reason,
            turn_count=self._turn_count,
            cost=self._cost,
            token_usage=self._usage,
            error=None
            if failure is None
            else RunError(failure.code, failure.message, stderr, failure.code in RECOVERABLE),
            events=self.events,
            texts=self.texts(derive),
            **fields,
        )

    @property
    def events(self) -> "tuple[AgentEvent, ...] | None":
        """The collected events; None unless collecting was requested."""
        return None if self._events is None else tuple(self._events)

    def texts(self, derive: "Callable[[], Sequence[AgentEvent]] | None") -> "Callable[[], list[list[str]]]":
        """Return a function that returns the messages of each turn.

        `derive` returns the events again, for texts that were too long to keep.
        """
        turns = self._turns
        if self._overflowed and derive is not None:
            return lambda: _messages_by_turn(derive())
        return lambda: turns


def _messages_by_turn(events: Sequence[AgentEvent]) -> list[list[str]]:
    builder = ResultBuilder(collect=False)
    builder.observe(events)
    return builder.texts(None)()


def _cost_of(plain: Any) -> CostRecord:
    import msgspec  # noqa: PLC0415

    return msgspec.convert(plain, CostRecord)


_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "runId": ("run_id", str),
    "agent": ("agent", str),
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
    "structuredOutput": ("structured_output", lambda value: value),
    "tags": ("tags", tuple),
    "journal": ("journal", str),
    "worktree": ("worktree", Worktree.from_dict),
    "events": ("events", lambda events: tuple(event_from_dict(event) for event in events)),
    "ledger": ("ledger", Ledger.from_dict),
}
"""By wire key: the field, and the function that reads its value."""
_OPTIONAL = ("model", "session_id", "exit_code", "signal", "cost", "token_usage", "error")
