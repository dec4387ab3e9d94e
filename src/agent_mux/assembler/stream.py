"""The assembler itself: session, turns, steps, limits and the end. Lawful for any sequence of facts."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.assembler.costs import CostTally
from agent_mux.assembler.emitter import Emitter, StreamContext, possible, possible_cost
from agent_mux.assembler.interactions import Interactions, OpenInteraction
from agent_mux.assembler.notices import Notices
from agent_mux.assembler.outcome import Ending, Outcome, Verdict, emit_terminal, judge
from agent_mux.assembler.scopes import Scope, Subagents
from agent_mux.assembler.turns import Session, Turns
from agent_mux.events import AgentEvent
from agent_mux.events.base import CostEvent
from agent_mux.events.run import ErrorEvent, PausedEvent, ResumedEvent, RetryEvent, StreamFallbackEvent
from agent_mux.sdk import facts

_STEP_TYPES: dict[type, tuple[str, str]] = {
    # fact -> (step type, the capability that falls back when the fact comes whole)
    facts.TextDelta: ("generation", ""),
    facts.Text: ("generation", "text"),
    facts.ThinkingDelta: ("thinking", ""),
    facts.Thinking: ("thinking", "thinking"),
    facts.ToolBegin: ("tool_use", ""),
    facts.ToolReady: ("tool_use", "tool_calls"),
    facts.McpBegin: ("tool_use", ""),
    facts.SubagentBegin: ("tool_use", ""),
}
_PROSE = frozenset({facts.TextDelta, facts.Text, facts.ThinkingDelta, facts.Thinking})


class StreamAssembler:
    """Takes facts, gives events. `now` (ms since the epoch) is set by the caller before each fact.

    Pure: the same context, times and facts give the same events, byte for byte.
    """

    def __init__(self, context: StreamContext) -> None:
        self._context = context
        self._emitter = Emitter(context.run_id, context.agent)
        used_ids: set[str] = set()
        self._main = Scope(self._emitter, context, used_ids)
        self._subagents = Subagents(self._emitter, context, used_ids)
        self._interactions = Interactions(
            self._emitter, show_approvals=context.show_approvals, show_requests=context.show_requests
        )
        self._turns = Turns(self._emitter)
        self._costs = CostTally(context.prices, context.model)
        self._session = Session(self._emitter, context)
        self._notices = Notices(self._emitter, self._costs)
        self._outcome: Outcome | None = None
        self._unsaid: facts.Failure | None = None
        self._fallbacks: set[str] = set()
        self._structured: Any = None
        self._working = False
        """Something was done since the agent's last closing message."""
        self._took_back = False
        """It said that it crashed: its closing messages do not count."""
        self._paused = False
        self._ended = False
        self._handlers = self._make_handlers()

    # -- what the caller sees

    @property
    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._emitter.now

    @now.setter
    def now(self, value: int) -> None:
        self._emitter.now = max(value, self._emitter.now)

    @property
    def handlers(self) -> Mapping[type, Callable[[Any], None]]:
        """What `receive` does with each class of fact: for callers with many facts. Every class of `facts` is there."""
        return self._handlers

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, once it said one."""
        return self._session.id

    @property
    def model(self) -> str | None:
        """The model the agent says it uses."""
        return self._session.model

    @property
    def structured_output(self) -> Any:
        """The parsed answer of the last turn that had one."""
        return self._structured

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """What the agent waits for now."""
        return self._interactions.open

    @property
    def turns_ended(self) -> int:
        """How many turns the agent has closed."""
        return self._turns.count + self._turns.is_held

    @property
    def in_turn(self) -> bool:
        """The agent works: something was done since its last closing message."""
        return self._working

    def show_raw(self, raw: str | None) -> None:
        """Debug mode: the native line behind the events that follow."""
        self._emitter.raw = raw

    def drain(self) -> list[AgentEvent]:
        """The events since the last call."""
        events, self._emitter.out = self._emitter.out, []
        return events

    def receive(self, fact: facts.Fact) -> None:
        """Take one fact. A class that is not a fact says nothing."""
        handler = self._handlers.get(fact.__class__)
        if handler is not None:
            handler(fact)

    def pause(self) -> None:
        """The run was stopped and can go on."""
        if not self._paused:
            self._control(PausedEvent)
            self._paused = True

    def resume(self) -> None:
        """The run goes on."""
        if self._paused:
            self._control(ResumedEvent)
            self._paused = False

    def restart(self, retry: facts.Retrying) -> None:
        """The process is gone, and another one will answer the prompt, in a turn of its own."""
        self._session.start()
        self._main.abandon(f"abandoned: the run is tried again ({retry.reason})")
        self._subagents.close()
        self._close_turn(None)
        self._say_unsaid()
        self._tell_retry(retry)
        self._working, self._took_back, self._outcome = False, False, None

    def judge(self, ending: Ending) -> Verdict:
        """How the run would end, if that were its end."""
        agent = self._context.display_name or self._context.agent
        return judge(ending, self._outcome, turn_open=self._working or self._took_back, agent=agent)

    def end(self, ending: Ending) -> Verdict:
        """The run is over: close what is open, emit the terminal event and `session_end`. Only logs may follow."""
        verdict = self.judge(ending)
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
        content = (facts.TextDelta, facts.Text, facts.ThinkingDelta, facts.Thinking,
                   facts.ToolBegin, facts.ToolReady, facts.McpBegin)  # fmt: skip
        closing = (facts.TextEnd, facts.ThinkingEnd, facts.ToolOutput, facts.ToolDone, facts.McpDone,
                   facts.CommandBegan, facts.CommandOutput, facts.CommandEnded, facts.FileTouched)  # fmt: skip
        notices = self._notices
        handlers: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys(content, self._content),
            **dict.fromkeys(closing, self._closing),
            **{kind: self._in_turn(tell, self._open_turn_for_notice) for kind, tell in notices.in_turn().items()},
            **{kind: self._in_session(tell) for kind, tell in notices.in_session().items()},
            **notices.anywhere(),
            facts.SessionKnown: self._session_known,
            facts.CheckpointSaved: self._in_turn(self._session.checkpoint, self._open_turn_for_notice),
            facts.TurnBegin: self._turn_begin,
            facts.TurnDone: self._turn_closed,
            facts.TurnFailed: self._turn_closed,
            facts.TurnStopped: self._turn_closed,
            facts.TurnLimitHit: self._turn_closed,
            facts.RunClosed: self._run_closed,
            facts.StepBegin: self._step_begin,
            facts.StepDone: self._step_done,
            facts.SubagentBegin: self._subagent_begin,
            facts.SubagentDone: self._subagent_done,
            facts.InSubagent: self._in_subagent,
            facts.PluginLoaded: self._loaded,
            facts.SkillLoaded: self._loaded,
            facts.AgentdocRead: self._loaded,
            facts.ApprovalAsked: self._in_turn(self._interactions.ask_approval, self._open_turn),
            facts.InputAsked: self._in_turn(self._interactions.ask_input, self._open_turn),
            facts.RequestSettled: self._settled,
            facts.Retrying: self._retrying,
        }
        handlers[facts.TextDelta] = self._fragment(self._main.prose.go_on)
        handlers[facts.ThinkingDelta] = self._fragment(self._main.prose.think_on)
        handlers[facts.ToolInput] = self._tool_input
        return handlers

    def _fragment(self, go_on: Callable[[str], bool]) -> Callable[[Any], None]:
        # The hot path: in an open message, or thought, there is nothing to open, close or infer.
        def handle(fact: facts.TextDelta | facts.ThinkingDelta) -> None:
            if not go_on(fact.text):
                self._content(fact)

        return handle

    def _tool_input(self, fact: facts.ToolInput) -> None:
        self._main.tools.add_input(fact.call_id, fact.delta)  # no call is open where there is nothing to tell

    def _content(self, fact: Any) -> None:
        if self._ended or self._says_nothing(fact):
            return
        step_type, capability = _STEP_TYPES[fact.__class__]
        self._open_turn()
        self._turns.begin_step_if_due(step_type)
        if capability and capability not in self._context.streams:
            self._fall_back(capability)
        self._main.accept(fact)

    def _says_nothing(self, fact: Any) -> bool:
        kind, tools = fact.__class__, self._main.tools
        if kind in _PROSE:
            return not fact.text
        is_going_on = kind is facts.ToolReady and tools.is_open(fact.call_id)
        return not (is_going_on or tools.is_new(fact.call_id))

    def _closing(self, fact: Any) -> None:
        if self._ended:
            return
        if isinstance(fact, facts.ToolDone) and self._main.tools.is_new(fact.call_id):
            self._open_turn_for_notice()  # a result whose call was never told
        self._main.accept(fact)

    def _in_turn(self, tell: Callable[[Any], None], open_turn: Callable[[], None]) -> Callable[[Any], None]:
        def handle(fact: Any) -> None:
            if not self._ended:
                open_turn()
                tell(fact)

        return handle

    def _in_session(self, tell: Callable[[Any], None]) -> Callable[[Any], None]:
        def handle(fact: Any) -> None:
            if not self._ended:
                self._session.start()
                tell(fact)

        return handle

    # -- session

    def _session_known(self, fact: facts.SessionKnown) -> None:
        if not self._ended:
            self._session.known(fact)
            self._costs.model = self._session.model or self._costs.model

    def _loaded(self, fact: facts.PluginLoaded | facts.SkillLoaded | facts.AgentdocRead) -> None:
        # Initialization events belong before the first turn; later repetitions say nothing new.
        if not (self._ended or self._turns.count or self._turns.has_started_event):
            self._session.loaded(fact)

    # -- turns and steps

    def _open_turn(self) -> None:
        """Something is done: whatever the agent said of its last turn, it is at work again."""
        if not self._working:
            self._working = True
            self._took_back = False
            self._outcome = None
            self._session.start()
            self._release_turn()
            self._say_unsaid()
        self._open_turn_for_notice()

    def _open_turn_for_notice(self) -> None:
        """Something is mentioned that belongs into a turn: that alone does not contradict a closing message."""
        if not self._turns.is_open:
            self._session.start()
            self._release_turn()
            self._turns.open()

    def _release_turn(self) -> None:
        # A turn that was held open for its sub-agents ends when the next one begins.
        if self._turns.is_held:
            self._turns.close()

    def _turn_begin(self, _: facts.TurnBegin) -> None:
        if not self._ended:
            self._open_turn()

    def _turn_closed(self, fact: Outcome) -> None:
        if self._ended:
            return
        self._open_turn()
        self._working = False
        self._outcome = fact
        if isinstance(fact, facts.TurnDone) and fact.structured_output is not None:
            self._structured = fact.structured_output
        self._unsaid = self._failure_of(fact)
        if self._context.interactive:
            self._main.close()
            self._say_unsaid()
        self._close_turn(fact)

    def _run_closed(self, fact: facts.RunClosed) -> None:
        if self._ended:
            return
        if not self._working:
            self._outcome = fact.outcome
            self._took_back = fact.outcome is None
            self._unsaid = self._failure_of(fact.outcome) if fact.outcome is not None else None
        elif fact.outcome is not None:
            self._turn_closed(fact.outcome)

    def _failure_of(self, fact: Outcome) -> facts.Failure | None:
        return judge(Ending(), fact, turn_open=False, agent=self._context.agent).failure

    def _close_turn(self, fact: Outcome | None) -> None:
        self._main.close()
        self._interactions.close("the turn ended" if fact is not None else "the run ended")
        cost_of_turn = self._costs.of_turn(possible_cost(fact.cost) if fact is not None else None)
        if cost_of_turn is not None and not self._costs.is_told_by_agent:
            self._emitter.emit(CostEvent, self._costs.total)
        if fact is not None and self._subagents.any_open:
            self._turns.hold(cost_of_turn)
        else:
            self._turns.close(cost_of_turn)

    def _say_unsaid(self) -> None:
        # A turn failed and the run goes on after it: then the failure was recoverable.
        failure, self._unsaid = self._unsaid, None
        if failure is not None:
            self._emitter.emit(ErrorEvent, failure.code, failure.message, True)

    def _step_begin(self, fact: facts.StepBegin) -> None:
        if not self._ended:
            self._open_turn()
            self._main.prose.close()
            self._turns.step_due()
            if fact.step_type is not None:
                self._turns.begin_step_if_due(fact.step_type)

    def _step_done(self, _: facts.StepDone) -> None:
        if self._turns.is_open:
            self._main.prose.close()
            self._turns.end_step()

    # -- sub-agents

    def _subagent_begin(self, fact: facts.SubagentBegin) -> None:
        if self._ended or not self._subagents.is_new(fact.subagent_id):
            return
        self._open_turn()
        self._turns.begin_step_if_due("tool_use")
        self._subagents.begin(fact)

    def _subagent_done(self, fact: facts.SubagentDone) -> None:
        if self._ended or not self._subagents.is_open(fact.subagent_id):
            return
        if not self._turns.has_started_event:
            self._open_turn_for_notice()
        self._subagents.end(fact)
        if not self._subagents.any_open:
            self._release_turn()

    def _in_subagent(self, fact: facts.InSubagent) -> None:
        if not self._ended:
            self._subagents.accept(fact)

    # -- interaction, retries, fallbacks

    def _settled(self, fact: facts.RequestSettled) -> None:
        asked = self._interactions.settle(fact.request_id, granted=fact.granted, reason=fact.reason)
        if asked is not None and fact.granted and isinstance(asked.asked, facts.ApprovalAsked) and asked.asked.call_id:
            self._main.tools.permit(asked.asked.call_id)

    def _retrying(self, fact: facts.Retrying) -> None:
        if self._ended:
            return
        self._open_turn()
        self._main.abandon(f"abandoned: the model call is repeated ({fact.reason})")
        self._tell_retry(fact)

    def _tell_retry(self, fact: facts.Retrying) -> None:
        attempt, most, delay = max(fact.attempt, 1), possible(fact.max_attempts), possible(fact.delay_ms)
        self._emitter.emit(RetryEvent, attempt, most, fact.reason, delay)

    def _fall_back(self, capability: str) -> None:
        if capability not in self._fallbacks and not self._context.buffered:
            self._fallbacks.add(capability)
            agent = self._context.display_name or self._context.agent
            why = f"{agent} delivers {capability.replace('_', ' ')} whole in this mode"
            self._emitter.emit(StreamFallbackEvent, capability, why)

    def _control(self, kind: Any) -> None:
        if not self._ended:
            self._session.start()
            self._emitter.emit(kind)
