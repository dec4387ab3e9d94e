"""Hooks of a run, called from its events: for what its agent does not call itself. Source: run API, section 7.

A decision about a tool is waited for where the agent asks first; nothing else waits for a hook. Handlers work in
threads. What the agent does without asking cannot be denied: that is told.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux.assembler import OpenInteraction
from agent_mux.events import AgentEvent
from agent_mux.run.hook_triggers import HookTrigger, HookTriggerMapper
from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction
from agent_mux.sdk.hooks import ANY_AGENT, CALLED_FROM_EVENTS, HookCall, HookDecision, HookOutcome, HookType

DRAIN = 30.0
"""Seconds after the end of a run that hooks have for what they were not called for yet."""
MOST_WAITING = 10_000
"""Calls that wait for slow handlers: after that they are left out, which is told."""


@dataclass(eq=False)
class _Judged:
    """A tool call that the hooks are asked about."""

    call: HookCall
    done: anyio.Event = field(default_factory=anyio.Event)
    decision: HookDecision = field(default_factory=HookDecision)
    was_asked: bool = False
    """The agent waits for a yes: a no counts."""


class HookHandler(Protocol):
    """A registered hook, as far as a run knows it."""

    @property
    def enabled(self) -> bool:
        """Whether the hook is called at all."""
        ...

    @property
    def agent(self) -> str:
        """Registered name of the agent it is for, or `ANY_AGENT`."""
        ...

    @property
    def is_policy(self) -> bool:
        """Whether it only decides, without side effects, and a failure means deny."""
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

    def __init__(  # noqa: PLR0913, PLR0917  # what a run has to know of its hooks
        self,
        registrations: Sequence[HandlerT],
        dispatch: Dispatch[HandlerT],
        types: frozenset[HookType],
        agent: str,
        cwd: str,
        prompt: str,
    ) -> None:
        """Select the registrations of this agent.

        Args:
            registrations: All registered hooks, in the order in which they are called.
            dispatch: Calls hooks; blocking, so it runs in a worker thread.
            types: The hook types that the run calls; its agent calls the others itself.
            agent: Registered name of the agent.
            cwd: Working directory of the run.
            prompt: The first prompt.
        """
        self.types = types
        self._dispatch: Dispatch[Any] = dispatch
        self._registrations = [one for one in registrations if one.enabled and one.agent in (ANY_AGENT, agent)]
        self._agent, self._cwd = agent, cwd
        self.notes: list[str] = []
        """To be told at the beginning."""
        self._occurrences = HookTriggerMapper(agent, cwd, prompt)
        self._warn: Callable[[str], None] = lambda _: None
        self._tools: dict[str, _Judged] = {}
        self._waiting: list[Callable[[], Awaitable[None]]] = []
        self._wake = anyio.Event()
        self._is_closed = False
        self._is_full = False
        self._scope = anyio.CancelScope()
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def can_deny_tools(self) -> bool:
        """Somebody may say no to a tool, and only here: the agent has to ask for everything."""
        return "pre_tool_use" in self.types and any(one.can_decide for one in self._registrations)

    @property
    def environment(self) -> dict[str, str]:
        """For the agent: what it would call by itself is called from here."""
        return {CALLED_FROM_EVENTS: f"{self._agent}:{','.join(sorted(self.types))}"}

    def tell(self, warn: Callable[[str], None]) -> None:
        """Who hears of handlers that fail."""
        self._warn = warn
        for note in self.notes:
            warn(note)

    # -- what happens

    def observe(self, events: Sequence[AgentEvent]) -> None:
        """These were published. Does not wait."""
        for event in events:
            for occurrence in self._occurrences.observe(event):
                self._take(occurrence)

    def prompted(self, text: str) -> None:
        """The agent was sent another prompt."""
        self._take(self._occurrences.prompt(text))

    def _take(self, occurrence: HookTrigger) -> None:
        call, number = occurrence.call, occurrence.call.tool_call_id
        if call.hook_type == "pre_tool_use" and number is not None:
            if number not in self._tools:
                self._judge(number, call)
            return
        judged = None
        if call.hook_type == "post_tool_use" and number is not None:
            judged = self._tools.pop(number, None)
        self._later(lambda: self._observe(call, judged, is_error=occurrence.is_error))

    def _judge(self, number: str, call: HookCall) -> _Judged:
        judged = self._tools[number] = _Judged(call)
        if self._tasks is None:
            judged.done.set()
        else:
            self._tasks.start_soon(self._decide, judged)
        return judged

    async def _decide(self, judged: _Judged) -> None:
        try:
            judged.decision = await self._ask(judged.call)
        finally:
            judged.done.set()

    async def _observe(self, call: HookCall, judged: _Judged | None, *, is_error: bool) -> None:
        if judged is not None:
            await judged.done.wait()
            if judged.decision.behavior == "deny" and not judged.was_asked and not is_error:
                reason = f": {judged.decision.reason}" if judged.decision.reason else ""
                self._warn(f"the agent used {call.tool_name} without asking, though a hook denies it{reason}")
        await self._ask(call)

    # -- what waits for a decision

    async def decide(self, request: OpenInteraction) -> AnyAction | None:
        """What the hooks say to a request; None: they have no opinion."""
        asked = request.asked
        if not isinstance(asked, facts.ApprovalAsked):
            return None
        call = self._call_of(asked)
        decisions = [await self._about_tool(asked, call)]
        decisions.append(await self._ask(_as(call, "permission_request")))
        decisions.append((await self._run(_as(call, "pre_tool_use"), only_policies=True)).decision)
        return _action(request.request_id, decisions)

    async def _about_tool(self, asked: facts.ApprovalAsked, call: HookCall) -> HookDecision:
        if asked.call_id is None:
            return await self._ask(_as(call, "pre_tool_use"))
        number = asked.call_id
        judged = self._tools.get(number) or self._judge(number, _as(call, "pre_tool_use"))
        judged.was_asked = True
        await judged.done.wait()
        return judged.decision

    def _call_of(self, asked: facts.ApprovalAsked) -> HookCall:
        known = self._tools.get(asked.call_id or "")
        given = None if known is None else known.call.tool_input
        if given is None and asked.command is not None:
            given = {"command": asked.command}
        return HookCall(
            agent=self._agent,
            hook_type="permission_request",
            session_id=self._occurrences.session_id,
            cwd=self._cwd,
            tool_call_id=asked.call_id,
            tool_name=asked.tool_name,
            tool_input=given,
            command=asked.command,
            paths=asked.paths,
            message=f"{asked.action}: {asked.detail}" if asked.detail else asked.action,
        )

    # -- handlers

    async def _ask(self, call: HookCall) -> HookDecision:
        if call.hook_type not in self.types:
            return HookDecision()
        outcome = await self._run(call)
        for warning in outcome.warnings:
            self._warn(warning)
        return outcome.decision

    async def _run(self, call: HookCall, *, only_policies: bool = False) -> HookOutcome:
        several = [one for one in self._registrations if one.applies_to(call) and (one.is_policy or not only_policies)]
        if not several or call.hook_type not in self.types:
            return HookOutcome(HookDecision())
        return await to_thread.run_sync(self._dispatch, call, several, abandon_on_cancel=True)

    # -- the work

    def _later(self, work: Callable[[], Awaitable[None]]) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(work)
        elif not self._is_full:
            self._is_full = True
            self._warn(f"hooks are too slow: more than {MOST_WAITING} calls wait, and the next ones are left out")
        self._wake.set()

    async def work(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Call the handlers, one after the other, until the run is over and everybody was called."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                task_status.started()
                while self._waiting or not self._is_closed:
                    if not self._waiting:
                        self._wake = anyio.Event()
                        await self._wake.wait()
                        continue
                    await self._waiting.pop(0)()
                    self._is_full = self._is_full and bool(self._waiting)
            self._tasks = None

    def close(self) -> None:
        """Nothing happens any more; `work` ends soon."""
        self._is_closed = True
        self._scope.deadline = anyio.current_time() + DRAIN
        self._wake.set()


def _as(call: HookCall, hook_type: HookType) -> HookCall:
    return replace(call, hook_type=hook_type)


def _action(request_id: str, decisions: Sequence[HookDecision]) -> AnyAction | None:
    for decision in decisions:
        if decision.behavior == "deny":
            return DenyAction(request_id, decision.reason or "denied by a hook")
        if decision.modified_input is not None:
            return DenyAction(
                request_id, "a hook wants another input for this tool, which only hooks of the agent can give"
            )
    said = {decision.behavior for decision in decisions}
    return ApproveAction(request_id) if "allow" in said and "ask" not in said else None


class ExecutableRun(Protocol):
    """A run that can be carried out."""

    async def execute(self) -> None:
        """To its end."""
        ...


async def execute_with_hooks(run: ExecutableRun, hooks: RunHooks) -> None:
    """Carry out a run, and call its hooks meanwhile, and for a while after it."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(hooks.work)
        try:
            await run.execute()
        finally:
            hooks.close()
