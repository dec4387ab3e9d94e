"""The state of an event stream: performs the effects of its transitions, and keeps the agent's last closing message."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal

from agent_mux.assembler.costs import CostTally, sanitize_cost
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.interactions import InteractionAssembler
from agent_mux.assembler.lifecycle import SessionAssembler, TurnAssembler
from agent_mux.assembler.masks import Masks
from agent_mux.assembler.outcome import Ending, Outcome, Verdict, determine_verdict, emit_terminal, without_answer
from agent_mux.assembler.scopes import AgentScope, SubagentAssembler
from agent_mux.assembler.transitions import TRANSITIONS, StreamEffect, StreamInput, StreamState
from agent_mux.assembler.versions import VersionAssembler
from agent_mux.events.base import BaseEvent, CostEvent, CostRecord, TokenUsageEvent
from agent_mux.events.content import ImageInputAckEvent, ThinkingDeltaEvent, ThinkingStartEvent, ThinkingStopEvent
from agent_mux.events.run import (
    ContextLimitWarningEvent,
    DebugEvent,
    ErrorEvent,
    LogEvent,
    PausedEvent,
    RateLimitedEvent,
    ResumedEvent,
    RetryEvent,
    StreamFallbackEvent,
)
from agent_mux.events.session import StepEndEvent, StepStartEvent, TurnStartEvent
from agent_mux.sdk import facts

_NO_ANSWER: frozenset[type[BaseEvent]] = frozenset({
    ContextLimitWarningEvent, CostEvent, DebugEvent, ErrorEvent, ImageInputAckEvent, LogEvent, PausedEvent,
    RateLimitedEvent, ResumedEvent, RetryEvent, StepEndEvent, StepStartEvent, StreamFallbackEvent, ThinkingDeltaEvent,
    ThinkingStartEvent, ThinkingStopEvent, TokenUsageEvent, TurnStartEvent,
})  # fmt: skip
"""Events of a turn in which the agent answers nothing and does nothing."""
UNFINISHED: Final = "unfinished"
"""In place of a closing message: the turn was cut, or the agent reported a crash after its closing message."""


class StreamStateMachine:
    """Opens and closes session, turns and what is in them, as `TRANSITIONS` has it."""

    def __init__(self, emitter: Emitter, context: StreamContext, masks: Masks) -> None:
        self._emitter = emitter
        self._context = context
        used_ids: set[str] = set()
        self.version = VersionAssembler(emitter, context)
        self.session = SessionAssembler(emitter, context, self.version)
        self.turns = TurnAssembler(emitter)
        self.main = AgentScope(emitter, context, masks, used_ids)
        self.subagents = SubagentAssembler(emitter, context, masks, used_ids)
        self.interactions = InteractionAssembler(
            emitter, show_approvals=context.show_approvals, show_requests=context.show_requests
        )
        self.costs = CostTally(context.prices, context.model)
        self.state = StreamState.IDLE
        self._transitions = TRANSITIONS[StreamState.IDLE]
        self.structured_output: Any = None
        """The parsed structured output of the last turn that had one."""
        self._outcome: Outcome | Literal["unfinished"] | None = None
        """The closing message of the last turn; None while the agent works."""
        self._deferred_failure: facts.Failure | None = None
        """The failure of the last turn. It becomes a recoverable error if the run continues."""
        self._turn_cost: CostRecord | None = None
        """The cost of the turn that was settled last."""

    def move(self, received: StreamInput) -> bool:
        """Make the transition for this input. Returns False, and emits nothing, if the input is ignored."""
        transition = self._transitions[received]
        if transition is None:
            return False
        effects, next_state = transition
        if effects:  # without effects the state stays, which is the usual case
            for effect in effects:
                self.EFFECTS[effect](self)
            self.state, self._transitions = next_state, TRANSITIONS[next_state]
        return True

    def hand_back(self, outcome: Outcome) -> None:
        """End the turn with the agent's closing message."""
        if not self.move(StreamInput.WORK):
            return
        closing = outcome
        if not self.main.messages.is_open and self._emitter.kinds <= _NO_ANSWER:
            agent = self._context.display_name or self._context.agent
            outcome = without_answer(closing, self.costs.output_of_turn, agent)
        if isinstance(outcome, facts.TurnDone | facts.TurnFailed):
            self.turns.stop_reason = outcome.stop_reason
        if isinstance(outcome, facts.TurnFailed) and outcome.failure.code == "CONTENT_FILTERED":
            self.turns.stop_reason = "filtered"
        self._accept(outcome)
        if isinstance(closing, facts.TurnDone) and closing.reports_failures:
            self._deferred_failure = None
        if isinstance(outcome, facts.TurnDone) and outcome.structured_output is not None:
            self.structured_output = outcome.structured_output
        if self._context.interactive:
            self.main.close()
            self._emit_deferred_failure()
        self.move(StreamInput.DELEGATE if self.subagents.any_open else StreamInput.HAND_BACK)

    def close_run(self, outcome: Outcome | None) -> None:
        """Replace the last closing message, or end the turn; None: the closing message does not count."""
        match self.state:
            case StreamState.ENDED:
                pass
            case StreamState.WORKING:
                if outcome is not None:
                    self.hand_back(outcome)
            case _:
                self._accept(outcome)

    def determine_verdict(self, ending: Ending) -> Verdict:
        """Return the verdict that the run would have if it ended now."""
        is_open = self.state is StreamState.WORKING or self._outcome == UNFINISHED
        message, program = self._closing_message, self.version.program
        return self.version.explain(
            determine_verdict(ending, message, turn_open=is_open, agent=program, limits=self._context.limits)
        )

    def end(self, ending: Ending) -> Verdict:
        """End the run: close what is open, emit the terminal event and `session_end`. Later calls emit nothing."""
        verdict = self.determine_verdict(ending)
        if self.move(StreamInput.END):
            if verdict.failure is not None:
                emit_terminal(self._emitter, self._context, verdict, ending, self._closing_message)
            self.session.end(self.turns.count, self.costs.total)
        return verdict

    def follow(self, context: StreamContext) -> None:
        """Continue with another agent or model: its names and its prices."""
        self._context = context
        self.version.follow(context)
        self._emitter.agent = context.agent
        self.costs.use_prices(context.prices, context.model)

    @property
    def _closing_message(self) -> Outcome | None:
        return None if isinstance(self._outcome, str) else self._outcome

    def _accept(self, outcome: Outcome | None) -> None:
        self._outcome = UNFINISHED if outcome is None else outcome
        self._deferred_failure = None
        if outcome is not None:
            context = self._context
            verdict = determine_verdict(Ending(), outcome, turn_open=False, agent=context.agent, limits=context.limits)
            self._deferred_failure = verdict.failure

    # -- effects

    def _start(self) -> None:
        self.session.start()

    def _open(self) -> None:
        self._emitter.kinds.clear()
        self.turns.open()

    def _hold(self) -> None:
        self.turns.hold(self._turn_cost)

    def _close(self) -> None:
        self.turns.close(self._turn_cost)

    def _release(self) -> None:
        self._count_cost(None)  # tokens that were reported after the turn was handed back
        self.turns.release(self._turn_cost)

    def _renew(self) -> None:
        self._outcome = None
        self._emit_deferred_failure()

    def _emit_deferred_failure(self) -> None:
        failure, self._deferred_failure = self._deferred_failure, None
        if failure is not None:
            self._emitter.emit(ErrorEvent, failure.code, failure.message, True)

    def _settle(self) -> None:
        message = self._closing_message
        self._close_content("the turn ended")
        self._count_cost(message.cost if message is not None else None)

    def _cut(self) -> None:
        if self.state is StreamState.WORKING:
            self._outcome = UNFINISHED
        self.subagents.close()
        self._close_content("the run ended")
        if self.state is not StreamState.HELD:  # else `_release` counts it
            self._count_cost(None)

    def _close_content(self, reason: str) -> None:
        self.main.close()
        self.interactions.close(reason)

    def _count_cost(self, cost: CostRecord | None) -> None:
        self._turn_cost = self.costs.end_turn(sanitize_cost(cost))
        if self._turn_cost is not None and not self.costs.has_cumulative_cost:
            self._emitter.emit(CostEvent, self.costs.total)

    EFFECTS: ClassVar[Mapping[StreamEffect, Callable[["StreamStateMachine"], None]]] = {
        StreamEffect.START: _start,
        StreamEffect.RENEW: _renew,
        StreamEffect.OPEN: _open,
        StreamEffect.SETTLE: _settle,
        StreamEffect.CUT: _cut,
        StreamEffect.HOLD: _hold,
        StreamEffect.CLOSE: _close,
        StreamEffect.RELEASE: _release,
    }
    """The method for each effect."""
