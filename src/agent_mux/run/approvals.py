"""Answers to what an agent asks for: from the policy, the approval mode, hooks, a callback, or later from the consumer.

An answer that the agent's codec refuses is reported, and the request is declined if no callback can be asked again. See
docs/spec/run-api.md, sections 2 and 3.
"""

from typing import Literal

import anyio
import anyio.abc

from agent_mux.assembler import OpenInteraction
from agent_mux.run.audience import NOBODY, Audience
from agent_mux.run.callbacks import CallbackResponder, InteractionPort
from agent_mux.run.core import RunCore
from agent_mux.run.interaction import InteractionChannel
from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction, Refuse

Decision = AnyAction | Literal["ask"] | None
"""An answer; "ask": call the callback; None: the consumer answers later."""
ONLY_PLANS = "denied: this run only plans; finish with the plan as the answer"
"""The reason of denials in approval mode `plan`, when no callback decides."""


class InteractionResponder:
    """Answers the requests of one run, if the options determine the answer."""

    def __init__(self, core: RunCore, channel: InteractionChannel) -> None:
        self._core = core
        self._options = core.plan.options
        self._port = InteractionPort(
            run_id=core.plan.run_id,
            pending=lambda: core.normalizer.pending,
            deliver=self._deliver_soon,
            note=self._note,
            fail=self._fail,
            listeners=core.recorder.listeners,
            channel=channel,
        )
        self._callbacks = CallbackResponder(self._options, self._port)
        self._audience = Audience(self._port, core.recorder.window, core.recorder.log)
        self._is_deciding = False
        self._tasks: anyio.abc.TaskGroup | None = None
        core.on_requests = self.decide_new_requests

    def begin_attempt(self, tasks: anyio.abc.TaskGroup) -> None:
        """Set the task group in which callbacks and hooks are awaited."""
        self._tasks = tasks

    def decide_new_requests(self) -> None:
        """Decide once about each new request. A call during another one leaves the new requests to that one.

        The requests of a run that is being ended need no decision: they are closed with it.
        """
        if self._is_deciding or self._core.stopping.is_set():
            return
        self._is_deciding = True
        try:
            for request in self._port.new_requests():
                self._handle(request)
        finally:
            self._is_deciding = False

    def _handle(self, request: OpenInteraction) -> None:
        decision, tasks = self._decide(request), self._tasks
        if tasks is not None and self._is_for_hooks(request, decision):
            tasks.start_soon(self._ask_hooks, request, decision)
        elif decision == "ask":
            if tasks is not None:
                tasks.start_soon(self._callbacks.ask, request)
        elif decision is not None:
            self._answer(request, decision)
        else:
            self._leave_pending(request)
        if tasks is not None and self._options.answer_within and self._port.is_pending(request):
            tasks.start_soon(self._answer_when_overdue, request, self._options.answer_within)

    def _decide(self, request: OpenInteraction) -> Decision:
        asked = request.asked
        if isinstance(asked, facts.ApprovalRequested):
            ruling = self._rule_on(request, asked.tool_name)
            if ruling is not None:
                return ruling
        if self._callbacks.callback_for(request) is not None:
            return "ask"
        return self._decide_by_mode(request)

    def _rule_on(self, request: OpenInteraction, tool: str | None) -> AnyAction | None:
        """Return the answer of what takes precedence over callbacks: named tools, the policy, the mode `deny`."""
        options = self._options
        if tool in options.disallowed_tools:
            return DenyAction(request.request_id, f"denied: this run may not use the tool {tool}")
        if options.policy is not None:
            from agent_mux.run.policy import apply_policy  # noqa: PLC0415  # most runs have no policy

            ruling = apply_policy(options.policy, options.working_directory(), request)
            if ruling is not None:
                return ruling
        if tool in options.allowed_tools and self._core.approval_mode != "plan":
            return ApproveAction(request.request_id)
        if self._core.approval_mode == "deny":
            return DenyAction(request.request_id, "denied: this run has approval mode deny")
        return None

    def _decide_by_mode(self, request: OpenInteraction) -> Decision:
        mode, is_approval = self._core.approval_mode, request.kind == "approval"
        if mode == "prompt":
            return None
        if is_approval and mode == "yolo":
            return ApproveAction(request.request_id)
        return DenyAction(request.request_id, ONLY_PLANS if is_approval else "this run has no callback for requests")

    def _is_for_hooks(self, request: OpenInteraction, decision: Decision) -> bool:
        """Return whether hooks decide too. They can turn an approval into a denial, but not the reverse."""
        return self._core.plan.hooks is not None and request.kind == "approval" and not isinstance(decision, DenyAction)

    async def _ask_hooks(self, request: OpenInteraction, otherwise: Decision) -> None:
        hooks = self._core.plan.hooks
        assert hooks is not None  # noqa: S101  # only called with hooks
        decision: Decision = await hooks.decide(request) or otherwise
        if decision == "ask":
            await self._callbacks.ask(request)
        elif decision is not None:
            self._answer(request, decision)
        else:
            self._leave_pending(request)

    def _leave_pending(self, request: OpenInteraction) -> None:
        """Leave a request to the consumer, or to the deadline; decline it if there is neither."""
        if not self._port.is_pending(request):
            return
        if not self._has_deadline() and not self._audience.is_present(request):
            self._audience.report_declined(request)
            self._answer(request, DenyAction(request.request_id, NOBODY))
        elif self._tasks is not None:
            self._tasks.start_soon(self._audience.warn_if_unseen, request)

    def _has_deadline(self) -> bool:
        """Return whether the caller set how long requests wait, or that they are approved after a while."""
        options = self._options
        is_allowed = options.policy is not None and options.policy.on_timeout == "allow"
        return bool(options.approval_timeout) or (is_allowed and bool(options.answer_within))

    async def _answer_when_overdue(self, request: OpenInteraction, seconds: float) -> None:
        await anyio.sleep(seconds)
        from agent_mux.run.policy import answer_overdue  # noqa: PLC0415  # few requests are overdue

        self._answer(request, answer_overdue(self._options.policy, request, seconds))

    def _answer(self, request: OpenInteraction, action: AnyAction) -> None:
        """Deliver an answer that no callback gave. If it is refused, decline the request."""
        if not self._port.is_pending(request):
            return
        refusal = self._deliver(action)
        if refusal is None:
            return
        if isinstance(action, DenyAction):
            self._port.report(request, refusal, "the request stays open")
        else:
            self._port.report(request, refusal, "the request is declined")
            self._answer(request, DenyAction(request.request_id, "the answer to this request was refused"))

    def _deliver(self, action: AnyAction) -> Refuse | None:
        if isinstance(action, DenyAction) and not self._core.agent.takes_input:
            reply = self._core.record_action(action)
        else:
            reply = self._core.deliver(action)
        return reply if isinstance(reply, Refuse) else None

    async def _deliver_soon(self, action: AnyAction) -> Refuse | None:
        return self._deliver(action)

    # The requests of a run that is being ended are withdrawn, so reports about them are left out.

    def _note(self, message: str) -> None:
        if not self._core.stopping.is_set():
            self._core.recorder.note(message)

    def _fail(self, message: str) -> None:
        if not self._core.stopping.is_set():
            self._core.recorder.report_error("VALIDATION_ERROR", message)
