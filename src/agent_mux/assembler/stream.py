"""The assembler of one run: converts any sequence of facts to a conforming event stream."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.assembler.costs import non_negative
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.interactions import DeniedApproval, OpenInteraction
from agent_mux.assembler.masks import PIECES, Masks
from agent_mux.assembler.notices import NoticeAssembler
from agent_mux.assembler.outcome import Ending, Outcome, Verdict
from agent_mux.assembler.state_machine import StreamStateMachine
from agent_mux.assembler.transitions import StreamInput, StreamState
from agent_mux.events import AgentEvent
from agent_mux.events.base import CostRecord, QuotaWindow
from agent_mux.events.run import RetryEvent, StreamFallbackEvent
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
# Aliases for hot paths: before Python 3.12, accessing an enum member costs as much as a function call.
_MENTION, _NOTICE, _WORK = StreamInput.MENTION, StreamInput.NOTICE, StreamInput.WORK
_NOTICED, _WORKING, _ENDED = StreamState.NOTICED, StreamState.WORKING, StreamState.ENDED
_CLOSING_MESSAGES = get_args(Outcome)
_MESSAGE_FACTS = frozenset({facts.TextDelta, facts.WholeText, facts.ThinkingDelta, facts.WholeThinking})


class RunAttempt(PydanticCompatible, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A failed attempt of a run, which another one followed."""

    agent: str
    """Registered name of the agent that was tried."""
    reason: str
    """Why it failed: the message of the error."""
    model: str | None = None
    """The model that the agent reported, else the requested one."""
    session_id: str | None = None
    """The agent's own session id; None if it reported none."""
    cost: CostRecord | None = None
    """The cost of this attempt alone; None when the agent reported neither costs nor tokens."""
    quota: tuple[QuotaWindow, ...] = ()
    """The provider's quota, as last reported in this attempt."""


class StreamAssembler:
    """Receives facts and emits events. The caller sets `now` (ms since the epoch) before each fact.

    The assembler is deterministic: the same context, times and facts yield the same events, byte for byte.
    """

    def __init__(self, context: StreamContext, masks: Masks | None = None) -> None:
        """Create the assembler of a run. `masks`: what hides secrets in its texts; None: nothing does."""
        self.masks = Masks() if masks is None else masks
        self._context = context
        self._emitter = Emitter(context.run_id, context.agent, context.max_text_bytes)
        self._machine = machine = StreamStateMachine(self._emitter, context, self.masks)
        self._session = machine.session
        self._turns = machine.turns
        self._main = machine.main
        self._subagents = machine.subagents
        self._interactions = machine.interactions
        self._costs = machine.costs
        self._notices = NoticeAssembler(self._emitter, machine.costs)
        self._move = machine.move
        self._fallbacks: set[str] = set()
        self._attempts: list[RunAttempt] = []
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
    def quota(self) -> tuple[QuotaWindow, ...]:
        """The windows of the provider's quota, as last reported."""
        return self._notices.quota.windows

    @property
    def attempts(self) -> tuple[RunAttempt, ...]:
        """The attempts that failed and were followed by another one."""
        return tuple(self._attempts)

    @property
    def agent_version(self) -> str | None:
        """The version of the agent's program; None while it is unknown."""
        return self._machine.version.version

    @property
    def structured_output(self) -> Any:
        """The parsed structured output of the last turn that had one."""
        return self._machine.structured_output

    @property
    def model_calls(self) -> int | None:
        """The number of model calls, from steps or from their tokens; None if the agent reports neither."""
        return max(self._turns.step_count, self._costs.call_count) or None

    @property
    def denied(self) -> Sequence[DeniedApproval]:
        """The approvals that were denied, at most the first 100."""
        return self._interactions.denied

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
        return self._turns.count + (self._machine.state is StreamState.HELD)

    @property
    def in_turn(self) -> bool:
        """Whether the agent works: it did something after its last closing message."""
        return self._machine.state is _WORKING

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

    def use_model(self, model: str) -> None:
        """Price what follows as this model, and report it as the model of the session."""
        self._session.model = self._costs.model = model

    def show_requests(self) -> None:
        """Emit requests and decisions from now on, because the approval mode of the run has changed."""
        self._machine.interactions.show_all()
        self._machine.main.tools.expect_approvals()

    def pause(self) -> None:
        """Emit `paused`, unless the run is paused."""
        if not self._is_ended:
            self._session.pause()

    def resume(self) -> None:
        """Emit `resumed`, if the run is paused."""
        if not self._is_ended:
            self._session.resume()

    def restart(self, retry: facts.Retrying, following: StreamContext | None = None) -> None:
        """Close everything and emit `retry`: a new process answers the prompt again, in a new turn.

        `following`: the settings of the next attempt if another agent or model makes it.
        """
        self._main.abandon(f"abandoned: the run is tried again ({retry.reason})")
        if not self._move(StreamInput.RESTART):
            return
        self._attempts.append(
            RunAttempt(
                agent=self._context.agent,
                model=self.model or self._context.model,
                session_id=self.session_id,
                reason=retry.reason,
                cost=self._costs.begin_attempt(),
                quota=self.quota,
            )
        )
        self._session.forget()
        if following is None:
            self._emit_retry(retry)
            return
        self._emit_retry(retry, following.agent, following.model)
        if following.agent != self._context.agent:
            self._notices.quota.clear()
        self._context = following
        self._machine.follow(following)

    def determine_verdict(self, ending: Ending) -> Verdict:
        """Return the verdict that the run would have if it ended now."""
        return self._machine.determine_verdict(ending)

    def end(self, ending: Ending) -> Verdict:
        """End the run: close what is open, emit the terminal event and `session_end`. Only diagnostics may follow."""
        return self._machine.end(ending)

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
            **{kind: self._after(_NOTICE, handle) for kind, handle in in_turn.items()},
            **{kind: self._after(_MENTION, handle) for kind, handle in in_session.items()},
            **self._notices.anywhere(),
            facts.SessionKnown: self._identify_session,
            facts.AgentVersion: self._learn_version,
            facts.CheckpointSaved: self._after(_NOTICE, self._session.save_checkpoint),
            facts.TurnBegin: self._after(_WORK, lambda _: None),
            **dict.fromkeys(_CLOSING_MESSAGES, self._machine.hand_back),
            facts.RunClosed: lambda fact: self._machine.close_run(fact.outcome),
            facts.StepBegin: self._after(_WORK, self._begin_step),
            facts.StepDone: self._end_step,
            facts.SubagentBegin: self._begin_subagent,
            facts.SubagentDone: self._end_subagent,
            facts.InSubagent: self._subagents.receive,
            facts.PluginLoaded: self._load,
            facts.SkillLoaded: self._load,
            facts.AgentdocRead: self._load,
            facts.ApprovalRequested: self._after(_WORK, self._open_approval),
            facts.InputRequested: self._after(_WORK, self._open_question),
            facts.RequestResolved: self._resolve_request,
            facts.Retrying: self._after(_WORK, self._retry),
        }
        whole = [kind for kind in handlers if kind not in PIECES]
        handlers |= {kind: self.masks.applied(handlers[kind]) for kind in whole}
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

    def _after(self, needed: StreamInput, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a handler that makes the transition first, and ignores the fact if the transition is."""
        move = self._move

        def handle_after(fact: Any) -> None:
            if move(needed):
                handle(fact)

        return handle_after

    def _receive_content(self, fact: Any) -> None:
        if self._has_no_effect(fact) or not self._move(_WORK):
            return
        step_type, capability = _STEP_TYPES[fact.__class__]
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
        if self._machine.state is _ENDED:
            return
        if fact.__class__ is facts.ToolDone and self._main.tools.is_new(fact.call_id):
            self._move(_NOTICE)  # the result of a call that the agent never announced
        self._main.receive(fact)

    @property
    def _is_ended(self) -> bool:
        return self._machine.state is _ENDED

    # -- session and steps

    def _identify_session(self, fact: facts.SessionKnown) -> None:
        if not self._is_ended:
            self._session.identify(fact)
            self._costs.model = self._session.model or self._costs.model

    def _learn_version(self, fact: facts.AgentVersion) -> None:
        if not self._is_ended:
            self._machine.version.learn(fact)

    def _load(self, fact: facts.PluginLoaded | facts.SkillLoaded | facts.AgentdocRead) -> None:
        # These events belong before the first turn; later repetitions contain nothing new.
        if self._machine.state is StreamState.IDLE and not self._turns.count:
            self._session.load(fact)

    def _begin_step(self, fact: facts.StepBegin) -> None:
        self._main.messages.close()
        self._turns.schedule_step()
        if fact.step_type is not None:
            self._turns.begin_step_if_due(fact.step_type)

    def _end_step(self, _: facts.StepDone) -> None:
        if self._machine.state is _WORKING or self._machine.state is _NOTICED:
            self._main.messages.close()
            self._turns.end_step()

    # -- sub-agents

    def _begin_subagent(self, fact: facts.SubagentBegin) -> None:
        if self._subagents.is_new(fact.subagent_id) and self._move(_WORK):
            self._turns.begin_step_if_due("tool_use")
            self._subagents.begin(fact)

    def _end_subagent(self, fact: facts.SubagentDone) -> None:
        if self._subagents.is_open(fact.subagent_id):
            self._subagents.end(fact)
            if not self._subagents.any_open:
                self._move(StreamInput.REPORT)

    # -- requests, retries, fallbacks

    def _open_approval(self, fact: facts.ApprovalRequested) -> None:
        if fact.tool_input is None and fact.call_id is not None:
            fact = replace(fact, tool_input=self._main.tools.input_of(fact.call_id))
        self._flush()
        self._interactions.open_approval(fact)

    def _open_question(self, fact: facts.InputRequested) -> None:
        self._flush()
        self._interactions.open_question(fact)

    def _flush(self) -> None:
        self._main.flush()
        self._subagents.flush()

    def _resolve_request(self, fact: facts.RequestResolved) -> None:
        interaction = self._interactions.resolve(fact.request_id, granted=fact.granted, reason=fact.reason)
        if interaction is None or not fact.granted:
            return
        request = interaction.asked
        if isinstance(request, facts.ApprovalRequested) and request.call_id:
            self._main.tools.permit(request.call_id)

    def _retry(self, fact: facts.Retrying) -> None:
        self._main.abandon(f"abandoned: the model call is repeated ({fact.reason})")
        self._emit_retry(fact)

    def _emit_retry(self, fact: facts.Retrying, *following: str | None) -> None:
        attempt, max_attempts = max(fact.attempt, 1), non_negative(fact.max_attempts)
        self._emitter.emit(RetryEvent, attempt, max_attempts, fact.reason, non_negative(fact.delay_ms), *following)

    def _fall_back(self, capability: str) -> None:
        if capability not in self._fallbacks and not self._context.buffered:
            self._fallbacks.add(capability)
            agent = self._context.display_name or self._context.agent
            reason = f"{agent} delivers {capability.replace('_', ' ')} whole in this mode"
            self._emitter.emit(StreamFallbackEvent, capability, reason)
