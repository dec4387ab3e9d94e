"""The assembler of one run: converts any sequence of facts to a conforming event stream."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.assembler.costs import CostTally, non_negative, sanitize_cost
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.interactions import InteractionAssembler, OpenInteraction
from agent_mux.assembler.lifecycle import SessionAssembler, TurnAssembler
from agent_mux.assembler.notices import NoticeAssembler
from agent_mux.assembler.outcome import Ending, Outcome, Verdict, determine_verdict, emit_terminal
from agent_mux.assembler.scopes import AgentScope, SubagentAssembler
from agent_mux.events import AgentEvent
from agent_mux.events.base import CostEvent
from agent_mux.events.run import ErrorEvent, PausedEvent, ResumedEvent, RetryEvent, StreamFallbackEvent
from agent_mux.sdk import facts

_STEP_TYPES: dict[type, tuple[str, str]] = {
    # fact -> (step type, the capability that falls back when the fact comes whole)
    facts.TextDelta: ("generation", ""),
    facts.WholeText: ("generation", "text"),
    facts.ThinkingDelta: ("thinking", ""),
    facts.WholeThinking: ("thinking", "thinking"),
    facts.ToolBegin: ("tool_use", ""),
    facts.ToolReady: ("tool_use", "tool_calls"),
    facts.McpBegin: ("tool_use", ""),
    facts.SubagentBegin: ("tool_use", ""),
}
_MESSAGE_FACTS = frozenset({facts.TextDelta, facts.WholeText, facts.ThinkingDelta, facts.WholeThinking})


class StreamAssembler:
    """Receives facts and emits events. The caller sets `now` (ms since the epoch) before each fact.

    The assembler is deterministic: the same context, times and facts yield the same events, byte for byte.
    """

    def __init__(self, context: StreamContext) -> None:
        self._context = context
        self._emitter = Emitter(context.run_id, context.agent)
        used_ids: set[str] = set()
        self._main = AgentScope(self._emitter, context, used_ids)
        self._subagents = SubagentAssembler(self._emitter, context, used_ids)
        self._interactions = InteractionAssembler(
            self._emitter, show_approvals=context.show_approvals, show_requests=context.show_requests
        )
        self._turns = TurnAssembler(self._emitter)
        self._costs = CostTally(context.prices, context.model)
        self._session = SessionAssembler(self._emitter, context)
        self._notices = NoticeAssembler(self._emitter, self._costs)
        self._outcome: Outcome | None = None
        """The closing message of the last turn; None while the agent works."""
        self._deferred_failure: facts.Failure | None = None
        """The failure of the last turn. It becomes a recoverable error if the run continues."""
        self._fallbacks: set[str] = set()
        self._structured: Any = None
        self._working = False
        """Whether the agent did something after its last closing message."""
        self._retracted = False
        """Whether the agent reported a crash after its closing message, which then does not count."""
        self._paused = False
        self._ended = False
        self._handlers = self._make_handlers()

    # -- interface

    @property
    def now(self) -> int:
        """The current time in milliseconds since the epoch."""
        return self._emitter.now

    @now.setter
    def now(self, value: int) -> None:
        self._emitter.now = max(value, self._emitter.now)

    @property
    def handlers(self) -> Mapping[type, Callable[[Any], None]]:
        """The function that receives each class of fact, for callers with many facts; contains every class."""
        return self._handlers

    @property
    def session_id(self) -> str | None:
        """The agent's own session id; None until the agent reports it."""
        return self._session.id

    @property
    def model(self) -> str | None:
        """The model that the agent reports; None until it reports one."""
        return self._session.model

    @property
    def structured_output(self) -> Any:
        """The parsed structured output of the last turn that had one."""
        return self._structured

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """The interactions that the agent waits for, oldest first."""
        return self._interactions.open

    @property
    def has_pending(self) -> Callable[[], int]:
        """A function that returns whether `pending` has any, for callers that ask often."""
        return self._interactions.count

    @property
    def turns_ended(self) -> int:
        """The number of turns that the agent has closed."""
        return self._turns.count + self._turns.is_held

    @property
    def in_turn(self) -> bool:
        """Whether the agent works: it did something after its last closing message."""
        return self._working

    def show_raw(self, raw: str | None) -> None:
        """Set the native line that the next events carry in `raw` (debug mode)."""
        self._emitter.raw = raw

    def drain(self) -> list[AgentEvent]:
        """Return the events since the last call."""
        events, self._emitter.out = self._emitter.out, []
        return events

    def receive(self, fact: facts.Fact) -> None:
        """Process one fact; ignore an object of another class."""
        handler = self._handlers.get(fact.__class__)
        if handler is not None:
            handler(fact)

    def pause(self) -> None:
        """Emit `paused`, unless the run is paused."""
        if not self._paused:
            self._emit_control(PausedEvent)
            self._paused = True

    def resume(self) -> None:
        """Emit `resumed`, if the run is paused."""
        if self._paused:
            self._emit_control(ResumedEvent)
            self._paused = False

    def restart(self, retry: facts.Retrying) -> None:
        """Close everything and emit `retry`: a new process answers the prompt again, in a new turn."""
        self._session.start()
        self._main.abandon(f"abandoned: the run is tried again ({retry.reason})")
        self._subagents.close()
        self._close_turn(None)
        self._emit_deferred_failure()
        self._emit_retry(retry)
        self._working, self._retracted, self._outcome = False, False, None

    def determine_verdict(self, ending: Ending) -> Verdict:
        """Return the verdict that the run would have if it ended now."""
        agent = self._context.display_name or self._context.agent
        return determine_verdict(ending, self._outcome, turn_open=self._working or self._retracted, agent=agent)

    def end(self, ending: Ending) -> Verdict:
        """End the run: close what is open, emit the terminal event and `session_end`. Only diagnostics may follow."""
        verdict = self.determine_verdict(ending)
        if self._ended:
            return verdict
        self._session.start()
        if self._subagents.any_open and not self._turns.has_started_event:
            self._turns.open()
        self._subagents.close()
        self._close_turn(None)
        if verdict.failure is not None:
            emit_terminal(self._emitter, self._context, verdict, ending, self._outcome)
        self._session.end(self._turns.count, self._costs.total)
        self._ended = True
        return verdict

    # -- dispatch

    def _make_handlers(self) -> dict[type, Callable[[Any], None]]:
        content = (facts.TextDelta, facts.WholeText, facts.ThinkingDelta, facts.WholeThinking,
                   facts.ToolBegin, facts.ToolReady, facts.McpBegin)  # fmt: skip
        closing = (facts.TextEnd, facts.ThinkingEnd, facts.ToolOutput, facts.ToolDone, facts.McpDone,
                   facts.CommandBegan, facts.CommandOutput, facts.CommandEnded, facts.FileTouched)  # fmt: skip
        in_turn, in_session = self._notices.in_turn(), self._notices.in_session()
        handlers: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys(content, self._receive_content),
            **dict.fromkeys(closing, self._receive_closing),
            **{kind: self._in_turn(handle, self._open_turn_for_notice) for kind, handle in in_turn.items()},
            **{kind: self._in_session(handle) for kind, handle in in_session.items()},
            **self._notices.anywhere(),
            facts.SessionKnown: self._identify_session,
            facts.CheckpointSaved: self._in_turn(self._session.save_checkpoint, self._open_turn_for_notice),
            facts.TurnBegin: self._begin_turn,
            facts.TurnDone: self._end_turn,
            facts.TurnFailed: self._end_turn,
            facts.TurnStopped: self._end_turn,
            facts.TurnLimitHit: self._end_turn,
            facts.RunClosed: self._end_run,
            facts.StepBegin: self._begin_step,
            facts.StepDone: self._end_step,
            facts.SubagentBegin: self._begin_subagent,
            facts.SubagentDone: self._end_subagent,
            facts.InSubagent: self._receive_in_subagent,
            facts.PluginLoaded: self._load,
            facts.SkillLoaded: self._load,
            facts.AgentdocRead: self._load,
            facts.ApprovalRequested: self._in_turn(self._interactions.open_approval, self._open_turn),
            facts.InputRequested: self._in_turn(self._interactions.open_question, self._open_turn),
            facts.RequestResolved: self._resolve_request,
            facts.Retrying: self._retry,
        }
        handlers[facts.TextDelta] = self._fragment_handler(self._main.messages.append_text)
        handlers[facts.ThinkingDelta] = self._fragment_handler(self._main.messages.append_thinking)
        handlers[facts.ToolInput] = self._add_tool_input
        return handlers

    def _fragment_handler(self, append: Callable[[str], bool]) -> Callable[[Any], None]:
        # The hot path: while a message or thinking block is open, a fragment opens, closes and implies nothing.
        def handle(fact: facts.TextDelta | facts.ThinkingDelta) -> None:
            if not append(fact.text):
                self._receive_content(fact)

        return handle

    def _add_tool_input(self, fact: facts.ToolInput) -> None:
        self._main.tools.add_input(fact.call_id, fact.delta)  # ignored unless the call is open, so in a turn

    def _receive_content(self, fact: Any) -> None:
        if self._ended or self._has_no_effect(fact):
            return
        step_type, capability = _STEP_TYPES[fact.__class__]
        self._open_turn()
        self._turns.begin_step_if_due(step_type)
        if capability and capability not in self._context.streams:
            self._fall_back(capability)
        self._main.receive(fact)

    def _has_no_effect(self, fact: Any) -> bool:
        kind, tools = fact.__class__, self._main.tools
        if kind in _MESSAGE_FACTS:
            return not fact.text
        completes_open_call = kind is facts.ToolReady and tools.is_open(fact.call_id)
        return not (completes_open_call or tools.is_new(fact.call_id))

    def _receive_closing(self, fact: Any) -> None:
        if self._ended:
            return
        if isinstance(fact, facts.ToolDone) and self._main.tools.is_new(fact.call_id):
            self._open_turn_for_notice()  # the result of a call that the agent never announced
        self._main.receive(fact)

    def _in_turn(self, handle: Callable[[Any], None], open_turn: Callable[[], None]) -> Callable[[Any], None]:
        def handle_in_turn(fact: Any) -> None:
            if not self._ended:
                open_turn()
                handle(fact)

        return handle_in_turn

    def _in_session(self, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        def handle_in_session(fact: Any) -> None:
            if not self._ended:
                self._session.start()
                handle(fact)

        return handle_in_session

    # -- session

    def _identify_session(self, fact: facts.SessionKnown) -> None:
        if not self._ended:
            self._session.identify(fact)
            self._costs.model = self._session.model or self._costs.model

    def _load(self, fact: facts.PluginLoaded | facts.SkillLoaded | facts.AgentdocRead) -> None:
        # These events belong before the first turn; later repetitions contain nothing new.
        if not (self._ended or self._turns.count or self._turns.has_started_event):
            self._session.load(fact)

    # -- turns and steps

    def _open_turn(self) -> None:
        """Open a turn because the agent works, which invalidates its last closing message."""
        if not self._working:
            self._working = True
            self._retracted = False
            self._outcome = None
            self._session.start()
            self._release_turn()
            self._emit_deferred_failure()
        self._open_turn_for_notice()

    def _open_turn_for_notice(self) -> None:
        """Open a turn for an event that needs one but is no work; the last closing message stays valid."""
        if not self._turns.is_open:
            self._session.start()
            self._release_turn()
            self._turns.open()

    def _release_turn(self) -> None:
        # A turn that was held for its sub-agents ends when the next turn begins.
        if self._turns.is_held:
            self._turns.close()

    def _begin_turn(self, _: facts.TurnBegin) -> None:
        if not self._ended:
            self._open_turn()

    def _end_turn(self, fact: Outcome) -> None:
        if self._ended:
            return
        self._open_turn()
        self._working = False
        self._outcome = fact
        if isinstance(fact, facts.TurnDone) and fact.structured_output is not None:
            self._structured = fact.structured_output
        self._deferred_failure = self._failure_of(fact)
        if self._context.interactive:
            self._main.close()
            self._emit_deferred_failure()
        self._close_turn(fact)

    def _end_run(self, fact: facts.RunClosed) -> None:
        if self._ended:
            return
        if not self._working:
            self._outcome = fact.outcome
            self._retracted = fact.outcome is None
            self._deferred_failure = self._failure_of(fact.outcome) if fact.outcome is not None else None
        elif fact.outcome is not None:
            self._end_turn(fact.outcome)

    def _failure_of(self, fact: Outcome) -> facts.Failure | None:
        return determine_verdict(Ending(), fact, turn_open=False, agent=self._context.agent).failure

    def _close_turn(self, fact: Outcome | None) -> None:
        self._main.close()
        self._interactions.close("the turn ended" if fact is not None else "the run ended")
        cost_of_turn = self._costs.end_turn(sanitize_cost(fact.cost) if fact is not None else None)
        if cost_of_turn is not None and not self._costs.has_cumulative_cost:
            self._emitter.emit(CostEvent, self._costs.total)
        if fact is not None and self._subagents.any_open:
            self._turns.hold(cost_of_turn)
        else:
            self._turns.close(cost_of_turn)

    def _emit_deferred_failure(self) -> None:
        # The run continues after a turn that failed, so the failure was recoverable.
        failure, self._deferred_failure = self._deferred_failure, None
        if failure is not None:
            self._emitter.emit(ErrorEvent, failure.code, failure.message, True)

    def _begin_step(self, fact: facts.StepBegin) -> None:
        if not self._ended:
            self._open_turn()
            self._main.messages.close()
            self._turns.schedule_step()
            if fact.step_type is not None:
                self._turns.begin_step_if_due(fact.step_type)

    def _end_step(self, _: facts.StepDone) -> None:
        if self._turns.is_open:
            self._main.messages.close()
            self._turns.end_step()

    # -- sub-agents

    def _begin_subagent(self, fact: facts.SubagentBegin) -> None:
        if self._ended or not self._subagents.is_new(fact.subagent_id):
            return
        self._open_turn()
        self._turns.begin_step_if_due("tool_use")
        self._subagents.begin(fact)

    def _end_subagent(self, fact: facts.SubagentDone) -> None:
        if self._ended or not self._subagents.is_open(fact.subagent_id):
            return
        if not self._turns.has_started_event:
            self._open_turn_for_notice()
        self._subagents.end(fact)
        if not self._subagents.any_open:
            self._release_turn()

    def _receive_in_subagent(self, fact: facts.InSubagent) -> None:
        if not self._ended:
            self._subagents.receive(fact)

    # -- interactions, retries, fallbacks, controls

    def _resolve_request(self, fact: facts.RequestResolved) -> None:
        interaction = self._interactions.resolve(fact.request_id, granted=fact.granted, reason=fact.reason)
        if interaction is None or not fact.granted:
            return
        request = interaction.asked
        if isinstance(request, facts.ApprovalRequested) and request.call_id:
            self._main.tools.permit(request.call_id)

    def _retry(self, fact: facts.Retrying) -> None:
        if self._ended:
            return
        self._open_turn()
        self._main.abandon(f"abandoned: the model call is repeated ({fact.reason})")
        self._emit_retry(fact)

    def _emit_retry(self, fact: facts.Retrying) -> None:
        attempt, max_attempts = max(fact.attempt, 1), non_negative(fact.max_attempts)
        self._emitter.emit(RetryEvent, attempt, max_attempts, fact.reason, non_negative(fact.delay_ms))

    def _fall_back(self, capability: str) -> None:
        if capability not in self._fallbacks and not self._context.buffered:
            self._fallbacks.add(capability)
            agent = self._context.display_name or self._context.agent
            reason = f"{agent} delivers {capability.replace('_', ' ')} whole in this mode"
            self._emitter.emit(StreamFallbackEvent, capability, reason)

    def _emit_control(self, kind: Any) -> None:
        if not self._ended:
            self._session.start()
            self._emitter.emit(kind)
