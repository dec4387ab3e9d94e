"""The core of a run, which the parts of the runner share: its records, what follows from each, and its stop."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio

from agent_mux._util.sanitize import sanitize_unicode
from agent_mux.assembler import Cause
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, TurnStartEvent
from agent_mux.journal.records import Control, Kind, encode
from agent_mux.run.base import StateMachine
from agent_mux.run.budget import Budget
from agent_mux.run.effects import EffectPerformer, Reply
from agent_mux.run.plan import RunPlan
from agent_mux.run.recorder import RunRecorder
from agent_mux.sdk.codec import (
    AnswerAction,
    AnyAction,
    ApproveAction,
    Delivery,
    DenyAction,
    Refuse,
    Send,
    SetApprovalMode,
    SetModel,
    Steer,
)
from agent_mux.sdk.options import RunOptions

if TYPE_CHECKING:
    from agent_mux.run.policy import PolicyMonitor

_NEEDS_STDIN = (Send, Steer, ApproveAction, DenyAction, AnswerAction, SetModel, SetApprovalMode)
"""Actions that are sent to the agent's standard input."""


def asks_first(options: RunOptions) -> bool:
    """Return whether the agent was started so that it asks, in another mode than its plan mode."""
    asks = options.approval_mode in {"prompt", "deny"} or options.policy is not None
    return options.approval_mode != "plan" and (asks or options.on_approval_request is not None)


class RunCore:
    """The state of one run, and the only way in which anything happens to it: `record`."""

    def __init__(self, plan: RunPlan) -> None:
        """Prepare the run. Nothing is created on the machine."""
        self.plan = plan
        """The plan of the current attempt: that of the run, or one of its fallbacks."""
        self.state = StateMachine()
        self.recorder = RunRecorder(plan)
        self.normalizer = self.recorder.normalizer
        """The normalizer, for reading the state of the stream."""
        self.agent = EffectPerformer(plan, self.recorder.record_sent, self._report_lost_input)
        """The agent's process."""
        self.begun = anyio.Event()
        """Set when the agent has its first prompt, or the run is over."""
        self.done = anyio.Event()
        """Set when the run is over."""
        self.stopping = anyio.Event()
        """Set when the run is being ended."""
        self.stop_control: Control | None = None
        """Why the run is being ended."""
        self.has_slot = False
        """Whether the run has left the queue of its client."""
        self.on_requests: Callable[[], None] = lambda: None
        """Called after a record while requests of the agent are pending."""
        self.approval_mode = plan.options.approval_mode
        """The approval mode of the run now."""
        self.is_asking = plan.protocol.two_way and asks_first(plan.options)
        """Whether the agent asks before it acts, so that agent-mux decides about what it asks for."""
        self._has_reported_loss = False
        self._observe_events()

    def _observe_events(self) -> None:
        plan, observe = self.plan, self.recorder.add_observer
        limits = plan.header.stream.limits
        self._budget = Budget(plan.options, agent_counts_turns=plan.spawn.counts_turns, limits=limits)
        if self._budget.is_set:
            observe(self._enforce_budget)
        if any(one.hooks is not None for one in (plan, *plan.fallbacks)):
            observe(self._call_hooks)
        if plan.options.policy is not None:
            from agent_mux.run.policy import PolicyMonitor  # noqa: PLC0415  # most runs have none

            monitor = PolicyMonitor(plan.options.policy, plan.cwd)
            observe(lambda events: self._check_policy(monitor, events))

    def require_active(self) -> None:
        """Raise RUN_NOT_ACTIVE if the run is over."""
        if self.state.is_over or self.done.is_set():
            over = f"run {self.plan.run_id} is over ({self.state.state}); start a new one"
            raise AgentMuxError("RUN_NOT_ACTIVE", over)

    # -- records

    def record(self, kind: Kind, payload: bytes) -> Reply:
        """Record something, perform the effects that the codec requests, and publish the events.

        Returns what the codec states about an action.
        """
        recorder = self.recorder
        events, effects = recorder.record(kind, payload)
        reply = self.agent.perform(effects) if effects else None
        if events:
            if self.state.state == "interrupted" and any(isinstance(event, TurnStartEvent) for event in events):
                self.state.move("running")  # a queued prompt begins a turn
            recorder.publish(events)
        if self.normalizer.has_pending() and kind is not Kind.EXIT:
            self.on_requests()
        return reply

    def control(self, control: Control) -> None:
        """Record something that agent-mux does to the run."""
        self.record(Kind.CONTROL, encode(control))

    def record_action(self, action: AnyAction) -> Reply:
        """Record an action, even if the agent takes no more input: the codec may close a request all the same."""
        return self.record(Kind.ACTION, encode(sanitize_unicode(action)))

    def deliver(self, action: AnyAction) -> Delivery | Refuse:
        """Send an action to the agent. Returns its delivery or its refusal; no other task runs meanwhile."""
        if isinstance(action, _NEEDS_STDIN) and not self.agent.takes_input:
            closed = f"{self.plan.adapter.agent} takes no more input: this run was closed, or the agent is exiting"
            return Refuse("STDIN_NOT_AVAILABLE", closed)
        default = self._default_delivery(action)
        reply = self.record_action(action)
        if isinstance(reply, Refuse):
            return reply
        if isinstance(action, Send | Steer):
            if self.plan.hooks is not None:
                self.plan.hooks.observe_prompt(action.text)
            if self.state.state == "interrupted":
                self.state.move("running")
        return reply or default

    def _default_delivery(self, action: AnyAction) -> Delivery:
        is_busy = self.normalizer.is_busy
        if isinstance(action, Steer) and is_busy:
            return "merged"
        is_waiting = self.state.state == "paused" or (is_busy and isinstance(action, Send))
        return "queued" if is_waiting else "applied"

    def stop(self, cause: Cause, message: str = "") -> bool:
        """Stop the run; only the first cause counts. Returns False if the run is over or stopping."""
        if self.stopping.is_set() or self.state.is_over:
            return False
        self.stop_control = Control(cause, message)
        if self.has_slot:
            self.record_stop()
        self.stopping.set()
        return True

    def record_stop(self) -> None:
        """Record the cause of the stop.

        A waiting run does so when it is its turn to end, because many waiting runs would otherwise create files at
        once.
        """
        assert self.stop_control is not None  # noqa: S101  # set by `stop`
        self.recorder.begin()
        self.recorder.log.write("stopping", cause=self.stop_control.what, reason=self.stop_control.message or None)
        self.control(self.stop_control)

    # -- what follows from events

    def follow(self, plan: RunPlan) -> None:
        """Continue the run with one of its fallbacks, whose attempt begins with the next record."""
        self.plan = plan
        self.recorder.follow(plan)
        self._budget.follow_agent(counts_turns=plan.spawn.counts_turns)

    def _call_hooks(self, events: Sequence[AgentEvent]) -> None:
        if self.plan.hooks is not None:
            self.plan.hooks.observe(events)

    def _enforce_budget(self, events: Sequence[AgentEvent]) -> None:
        exceeded = self._budget.observe(events)
        if exceeded is not None:
            self.stop(exceeded.cause, exceeded.message)
        warning = self._budget.take_warning()
        if warning is not None:
            self.recorder.note(warning)

    def _check_policy(self, monitor: "PolicyMonitor", events: Sequence[AgentEvent]) -> None:
        for warning in monitor.observe(events):
            self.recorder.note(warning)

    def warn_of_hooks(self, message: str) -> None:
        """Report a warning about hooks. The last hooks are called after the last event, so theirs go to the log."""
        if self.state.is_over:
            self.recorder.log.write("hook_warning", level=logging.WARNING, reason=message)
        else:
            self.recorder.note(message)

    def _report_lost_input(self, data: bytes) -> None:
        """Report once that input was lost after its delivery had been confirmed."""
        if not self.stopping.is_set() and not self._has_reported_loss:
            self._has_reported_loss = True
            self.recorder.note(
                f"{self.plan.adapter.agent} no longer reads its input: the last {len(data)} bytes are lost"
            )
