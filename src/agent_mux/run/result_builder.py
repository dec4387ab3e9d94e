"""Collects the result of a run from its events."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_mux.errors import RECOVERABLE
from agent_mux.events import (
    AgentEvent,
    CostRecord,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    MessageStopEvent,
    RetryEvent,
    SessionEndEvent,
    TokenUsageEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.events.base import StopReason
from agent_mux.run.answer import AnswerText
from agent_mux.run.changed_files import FILE_CHANGES, ChangedFile, ReportedChanges
from agent_mux.run.result import Denial, RunError, RunResult, TokenUsage, conditions_met
from agent_mux.sdk.options import FailOn
from agent_mux.worktrees.state import Worktree

if TYPE_CHECKING:
    from agent_mux.run.normalizer import Normalizer

MAX_TEXT_IN_MEMORY = 1 << 17  # characters of messages; longer ones are derived from the journal on demand


class ResultBuilder:
    """Collects from the events of a run what its result needs.

    `bounded`: long texts are not kept, because they can be derived again from the journal.
    """

    def __init__(self, *, collect: bool, cwd: str = "/", bounded: bool = False, max_text_bytes: int = 0) -> None:
        """Collect nothing yet.

        Args:
            collect: Keep all events.
            cwd: Changed files are relative to it.
            bounded: Whether long texts can be derived again.
            max_text_bytes: The limit of the result's text; 0: none.
        """
        self.reported_changes = ReportedChanges(cwd)
        """The changed files that events report."""
        self._events: list[AgentEvent] | None = [] if collect else None
        self.bounded = bounded
        self._handlers: dict[type, Callable[[Any], None]] = {
            MessageStopEvent: self._add_message,
            TurnStartEvent: self._begin_turn,
            TurnEndEvent: self._end_turn,
            RetryEvent: self._retry,
            TokenUsageEvent: self._count_tokens,
            SessionEndEvent: self._end_session,
            **dict.fromkeys((ToolCallStartEvent, McpToolCallStartEvent), self._count_tool_call),
            **dict.fromkeys((ToolErrorEvent, McpToolErrorEvent), self._count_tool_error),
            **dict.fromkeys(FILE_CHANGES, self.reported_changes.observe),
        }
        self._stop_reason: StopReason | None = None
        self._tool_calls = 0
        self._tool_errors = 0
        self._max_text_bytes = max_text_bytes
        self._answer = AnswerText(max_text_bytes)
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
        self._answer = AnswerText(self._max_text_bytes)
        self._is_in_turn = True
        self._turn_count = event.turn_index + 1

    def _end_turn(self, event: TurnEndEvent) -> None:
        self._stop_reason = event.stop_reason
        self._is_in_turn = False

    def _retry(self, _: RetryEvent) -> None:
        if not self._is_in_turn:  # a new attempt of the run; inside a turn, the agent repeats a model call
            self._turns = []
            self._answer = AnswerText(self._max_text_bytes)

    def _count_tool_call(self, event: ToolCallStartEvent | McpToolCallStartEvent) -> None:
        self._tool_calls += event.subagent_id is None

    def _count_tool_error(self, event: ToolErrorEvent | McpToolErrorEvent) -> None:
        self._tool_errors += event.subagent_id is None

    def _end_session(self, event: SessionEndEvent) -> None:
        self._cost = event.cost

    def _add_message(self, event: MessageStopEvent) -> None:
        if event.subagent_id is not None or event.abandoned or not self._turns:
            return
        if self._max_text_bytes:
            self._answer.add(event.text, event.truncated_bytes or 0)
        self._text_size += len(event.text)
        if self.bounded and self._text_size > MAX_TEXT_IN_MEMORY:
            self._overflowed = True
        if not self._overflowed:
            self._turns[-1].append(event.text)

    def _count_tokens(self, event: TokenUsageEvent) -> None:
        self._usage = (self._usage or TokenUsage()).plus(event)

    def retain_texts(self, derive: "Callable[[], Iterable[AgentEvent]]") -> None:
        """Keep all further texts, however long, because the journal ends. `derive` returns the events so far."""
        if self._overflowed:
            self._turns = _messages_by_turn(derive())
        self.bounded = self._overflowed = False

    def build(
        self,
        normalizer: "Normalizer",
        *,
        derive: "Callable[[], Iterable[AgentEvent]] | None",
        requested_model: str | None = None,
        fail_on: Collection[FailOn] = (),
        **fields: Any,
    ) -> RunResult:
        """Return the result of a run that has ended.

        Args:
            normalizer: What read the run, to its end.
            derive: Returns the events again, for texts that were too long to keep.
            requested_model: The model of the result if the agent reported none.
            fail_on: Conditions under which the run counts as failed.
            **fields: The other fields of the result.
        """
        assembler, verdict = normalizer.assembler, normalizer.verdict
        assert verdict is not None  # noqa: S101  # set by the end of the run
        failure = verdict.failure
        own = {
            "model": assembler.model or requested_model,
            "agent_version": assembler.agent_version,
            "session_id": assembler.session_id,
            "ledger": normalizer.ledger,
            "structured_output": assembler.structured_output,
            "model_calls": assembler.model_calls,
            "denials": tuple(
                Denial(request.action, request.detail, request.tool_name, reason)
                for _, request, reason in assembler.denied
            ),
            "changed_files": tuple(self._changed_files(normalizer)),
            "worktree": None if normalizer.worktree is None else Worktree.from_dict(normalizer.worktree),
            "quota": assembler.quota,
            "attempts": assembler.attempts,
        }
        result = RunResult(
            exit_reason=verdict.exit_reason,
            turn_count=self._turn_count,
            cost=self._cost,
            token_usage=self._usage,
            stop_reason=self._stop_reason,
            tool_calls=self._tool_calls,
            tool_errors=self._tool_errors,
            error=None
            if failure is None
            else RunError(failure.code, failure.message, normalizer.stderr_tail, failure.code in RECOVERABLE),
            events=self.events,
            texts=self.texts(derive),
            answer=str(self._answer) if self._max_text_bytes else None,
            truncated_bytes=self._answer.left_out,
            **own | fields,
        )
        return replace(result, failed_on=conditions_met(result, fail_on))

    def _changed_files(self, normalizer: "Normalizer") -> Sequence[ChangedFile]:
        if normalizer.changed_files is None:
            return self.reported_changes.files
        return [ChangedFile.from_dict(file) for file in normalizer.changed_files]

    @property
    def events(self) -> "tuple[AgentEvent, ...] | None":
        """The collected events; None unless collecting was requested."""
        return None if self._events is None else tuple(self._events)

    def texts(self, derive: "Callable[[], Iterable[AgentEvent]] | None") -> "Callable[[], list[list[str]]]":
        """Return a function that returns the messages of each turn.

        `derive` returns the events again, for texts that were too long to keep.
        """
        turns = self._turns
        if self._overflowed and derive is not None:
            return lambda: _messages_by_turn(derive())
        return lambda: turns


def _messages_by_turn(events: Iterable[AgentEvent]) -> list[list[str]]:
    builder = ResultBuilder(collect=False)
    for event in events:
        builder.observe((event,))
    return builder.texts(None)()
