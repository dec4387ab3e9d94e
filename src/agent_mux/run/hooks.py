"""Hooks that a run calls from its events, instead of its agent.

A tool waits for the decision of hooks if the agent asks for approval; nothing else waits for a hook. Handlers run in
threads. An action for which the agent did not ask cannot be denied and becomes a warning. See docs/spec/run-api.md,
section 7.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux.assembler import OpenInteraction
from agent_mux.events import AgentEvent
from agent_mux.run.hook_triggers import HookTrigger, HookTriggerMapper
from agent_mux.run.interaction import approval_text
from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction
from agent_mux.sdk.hooks import (
    ANY_AGENT,
    CALLED_FROM_EVENTS,
    GUARDED_HOOK_TYPES,
    HookCall,
    HookDecision,
    HookOutcome,
    HookType,
)

if TYPE_CHECKING:
    from agent_mux.loopback.hooks import FunctionHooks

DRAIN = 30.0
"""Seconds after the end of a run for calling the hooks that are still due."""
MAX_QUEUED_CALLS = 10_000
"""Limit of calls that wait for slow handlers; further calls are dropped with a warning."""


@dataclass(eq=False)
class _ToolDecision:
    """The decision of the hooks about one tool call."""

    call: HookCall
    done: anyio.Event = field(default_factory=anyio.Event)
    decision: HookDecision = field(default_factory=HookDecision)
    is_approval_requested: bool = False
    """Whether the agent asked for approval, so that a denial is effective."""


class HookHandler(Protocol):
    """A registered hook, as far as a run depends on it."""

    @property
    def enabled(self) -> bool:
        """Whether the hook is called at all."""
        ...

    @property
    def agent(self) -> str:
        """Registered name of the agent that it is for, or `ANY_AGENT`."""
        ...

    @property
    def is_policy(self) -> bool:
        """Whether it only decides, without side effects, so that a failure means deny."""
        ...

    @property
    def can_decide(self) -> bool:
        """Whether it may deny a tool call."""
        ...

    def applies_to(self, call: HookCall) -> bool:
        """Return whether the hook is registered for this call."""
        ...


HandlerT = TypeVar("HandlerT", bound=HookHandler)
Dispatch = Callable[[HookCall, Iterable[HandlerT]], HookOutcome]
"""Calls handlers in order and joins their decisions; blocking."""


class RunHooks:
    """The hooks of one run."""

    def __init__(  # noqa: PLR0913, PLR0917  # all of them are required
        self,
        registrations: Sequence[HandlerT],
        dispatch: Dispatch[HandlerT],
        types: frozenset[HookType],
        agent: str,
        cwd: str,
        prompt: str,
        functions: "FunctionHooks | None" = None,
    ) -> None:
        """Select the registrations of this agent.

        Args:
            registrations: All registered hooks, in the order in which they are called.
            dispatch: Calls hooks; blocking, so it runs in a worker thread.
            types: The hook types that the run calls; its agent calls the others itself.
            agent: Registered name of the agent.
            cwd: Working directory of the run.
            prompt: The first prompt.
            functions: Functions of the caller that the run calls, before the registered hooks.
        """
        self.types = types
        self._functions = functions
        self._dispatch: Dispatch[Any] = dispatch
        self._registrations = [one for one in registrations if one.enabled and one.agent in (ANY_AGENT, agent)]
        self._agent, self._cwd = agent, cwd
        self.notes: list[str] = []
        """Warnings for the beginning of the run."""
        self._mapper = HookTriggerMapper(agent, cwd, prompt)
        self._warn: Callable[[str], None] = lambda _: None
        self._tools: dict[str, _ToolDecision] = {}
        self._queue: list[Callable[[], Awaitable[None]]] = []
        self._wake = anyio.Event()
        self._is_closed = False
        self._is_overflowing = False
        self._scope: anyio.CancelScope | None = None  # needs an event loop; a service plans in a thread
        self._deadline = math.inf
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def can_deny_tools(self) -> bool:
        """Whether a hook may deny tools, so that the agent has to ask for approval of every action."""
        if self._functions is not None and GUARDED_HOOK_TYPES & self._functions.types:
            return True
        return "pre_tool_use" in self.types and any(one.can_decide for one in self._registrations)

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which the agent's own hooks know which types the run calls."""
        return {CALLED_FROM_EVENTS: f"{self._agent}:{','.join(sorted(self.types))}"}

    def report_to(self, warn: Callable[[str], None]) -> None:
        """Send warnings, about failing handlers too, to `warn`."""
        self._warn = warn
        for note in self.notes:
            warn(note)

    # -- events

    def observe(self, events: Sequence[AgentEvent]) -> None:
        """Map published events to hook calls, without waiting."""
        for event in events:
            for trigger in self._mapper.triggers(event):
                self._handle_trigger(trigger)

    def observe_prompt(self, text: str) -> None:
        """Call the hooks for another prompt that was sent to the agent."""
        self._handle_trigger(self._mapper.prompt_trigger(text))

    def _handle_trigger(self, trigger: HookTrigger) -> None:
        call, call_id = trigger.call, trigger.call.tool_call_id
        if call.hook_type == "pre_tool_use" and call_id is not None:
            if call_id not in self._tools:
                self._start_decision(call_id, call)
            return
        tool = None
        if call.hook_type == "post_tool_use" and call_id is not None:
            tool = self._tools.pop(call_id, None)
        self._enqueue(lambda: self._call_after_decision(call, tool, is_error=trigger.is_error))

    def _start_decision(self, call_id: str, call: HookCall) -> _ToolDecision:
        tool = self._tools[call_id] = _ToolDecision(call)
        if self._tasks is None:
            tool.done.set()
        else:
            self._tasks.start_soon(self._decide, tool)
        return tool

    async def _decide(self, tool: _ToolDecision) -> None:
        try:
            tool.decision = await self._call_hooks(tool.call)
        finally:
            tool.done.set()

    async def _call_after_decision(self, call: HookCall, tool: _ToolDecision | None, *, is_error: bool) -> None:
        if tool is not None:
            await tool.done.wait()
            if tool.decision.behavior == "deny" and not tool.is_approval_requested and not is_error:
                reason = f": {tool.decision.reason}" if tool.decision.reason else ""
                self._warn(f"the agent used {call.tool_name} without asking, though a hook denies it{reason}")
        await self._call_hooks(call)

    # -- approvals

    async def decide(self, request: OpenInteraction) -> AnyAction | None:
        """Return the hooks' answer to a request; None if they have no opinion."""
        asked = request.asked
        if not isinstance(asked, facts.ApprovalRequested):
            return None
        call = self._permission_call(asked)
        decisions = [await self._decide_tool(asked, call)]
        decisions.append(await self._call_hooks(_with_type(call, "permission_request")))
        decisions.append((await self._run_handlers(_with_type(call, "pre_tool_use"), only_policies=True)).decision)
        return _action_for(request.request_id, decisions)

    async def _decide_tool(self, asked: facts.ApprovalRequested, call: HookCall) -> HookDecision:
        if asked.call_id is None:
            return await self._call_hooks(_with_type(call, "pre_tool_use"))
        call_id = asked.call_id
        tool = self._tools.get(call_id) or self._start_decision(call_id, _with_type(call, "pre_tool_use"))
        tool.is_approval_requested = True
        await tool.done.wait()
        return tool.decision

    def _permission_call(self, asked: facts.ApprovalRequested) -> HookCall:
        known = self._tools.get(asked.call_id or "")
        given = None if known is None else known.call.tool_input
        if given is None and isinstance(asked.tool_input, Mapping):
            given = asked.tool_input
        if given is None and asked.command is not None:
            given = {"command": asked.command}
        return HookCall(
            agent=self._agent,
            hook_type="permission_request",
            session_id=self._mapper.session_id,
            cwd=self._cwd,
            tool_call_id=asked.call_id,
            tool_name=asked.tool_name,
            tool_input=given,
            command=asked.command,
            paths=asked.paths,
            diff=asked.diff,
            message=approval_text(asked.action, asked.detail),
        )

    # -- handlers

    async def _call_hooks(self, call: HookCall) -> HookDecision:
        outcome = await self._run_handlers(call)
        if self._functions is not None and call.hook_type in self._functions:
            from agent_mux.loopback.hooks import join_outcomes  # noqa: PLC0415  # most runs have no functions

            outcome = join_outcomes(await self._functions.call(call), outcome)
        for warning in outcome.warnings:
            self._warn(warning)
        return outcome.decision

    async def _run_handlers(self, call: HookCall, *, only_policies: bool = False) -> HookOutcome:
        handlers = [one for one in self._registrations if one.applies_to(call) and (one.is_policy or not only_policies)]
        if not handlers or call.hook_type not in self.types:
            return HookOutcome(HookDecision())
        return await to_thread.run_sync(self._dispatch, call, handlers, abandon_on_cancel=True)

    # -- the queue of calls

    def _enqueue(self, work: Callable[[], Awaitable[None]]) -> None:
        if len(self._queue) < MAX_QUEUED_CALLS:
            self._queue.append(work)
        elif not self._is_overflowing:
            self._is_overflowing = True
            self._warn(f"hooks are too slow: more than {MAX_QUEUED_CALLS} calls wait, and further calls are dropped")
        self._wake.set()

    async def run_calls(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Call the handlers one after the other, until the run is over and no call is left."""
        with anyio.CancelScope(deadline=self._deadline) as self._scope:
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    task_status.started()
                    await self._run_queue()
            finally:
                self._tasks = None  # a cancelled run reports events until its agent has ended

    async def _run_queue(self) -> None:
        while self._queue or not self._is_closed:
            if not self._queue:
                self._wake = anyio.Event()
                await self._wake.wait()
                continue
            await self._queue.pop(0)()
            self._is_overflowing = self._is_overflowing and bool(self._queue)

    def close(self) -> None:
        """Accept no more calls; `run_calls` returns after the remaining ones, within DRAIN seconds."""
        self._is_closed = True
        self._deadline = anyio.current_time() + DRAIN
        if self._scope is not None:
            self._scope.deadline = self._deadline
        self._wake.set()


def _with_type(call: HookCall, hook_type: HookType) -> HookCall:
    return replace(call, hook_type=hook_type)


def _action_for(request_id: str, decisions: Sequence[HookDecision]) -> AnyAction | None:
    for decision in decisions:
        if decision.behavior == "deny":
            return DenyAction(request_id, decision.reason or "denied by a hook")
        if decision.modified_input is not None:
            return DenyAction(request_id, "a hook changed the input of this tool, which only hooks of the agent can do")
    behaviors = {decision.behavior for decision in decisions}
    return ApproveAction(request_id) if "allow" in behaviors and "ask" not in behaviors else None


class ExecutableRun(Protocol):
    """A run that `execute_with_hooks` can carry out."""

    async def execute(self) -> None:
        """Carry out the run to its end."""
        ...


async def execute_with_hooks(run: ExecutableRun, hooks: RunHooks) -> None:
    """Carry out a run, calling its hooks during the run and for a limited time after it."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(hooks.run_calls)
        try:
            await run.execute()
        finally:
            hooks.close()
