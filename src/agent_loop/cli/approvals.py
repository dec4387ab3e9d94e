"""Who may do what: the `tool:gate` of this program, and what waits for an answer.

yolo: nobody is asked. prompt: whoever drives the program is asked before anything that does more than read. deny: that
is refused at once, with a reason that the model is told. Source: the agent protocol, `approvalMode`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_loop.cli.asking import approval_of, likeness_of
from agent_loop.cli.stream import ApprovalMode, EventStream
from agent_loop.errors import ToolError
from agent_loop.hooks import Hooks
from agent_loop.hooks.contexts import ToolGate
from agent_loop.tools.tool import ToolKind, kind_of, risk_of, shell_command_of
from agent_mux import facts
from agent_mux.assembler import OpenInteraction

HARMLESS: frozenset[ToolKind] = frozenset({"read", "ask"})
DENIED = "this run may not use tools that do more than read; go on without it"
REFUSED = "the person refused this call"
NOBODY = "nobody is there to give permission; go on without it"
NO_ANSWER = "nobody is there to answer"
STOPPED = "the turn was stopped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How something that was asked was settled."""

    granted: bool
    text: str = ""
    """The reason, or the answer."""
    always: bool = False


@dataclass(slots=True)
class _Waiting:
    settled: anyio.Event = field(default_factory=anyio.Event)
    verdict: Verdict = Verdict(False, STOPPED)  # frozen


Asker = Callable[[OpenInteraction], Awaitable[Verdict]]
"""Asks a person directly, where there is one at a terminal."""


class Approvals:
    """What is asked and answered in one conversation."""

    def __init__(
        self, stream: EventStream, mode: ApprovalMode, *, asks_everything: bool = False, asker: Asker | None = None
    ) -> None:
        self._stream = stream
        self._mode = mode
        self._asks_everything = asks_everything
        self._asker = asker
        self._one_at_a_time = anyio.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._allowed: set[tuple[str, str]] = set()
        self._asked = 0
        self._is_left = False

    def install(self, hooks: Hooks) -> None:
        """Be asked before each tool call."""
        if self._mode != "yolo":
            hooks.on("tool:gate", self.gate)

    # -- for the run

    async def gate(self, context: ToolGate) -> None:
        """Let it through, or not."""
        if context.block or context.result is not None or self._may_pass(context):
            return
        asked = self._announce(context)
        if self._mode == "deny":
            self._refuse(context, asked, DENIED)
            return
        verdict = await self._wait(asked, NOBODY)
        if not verdict.granted:
            context.block, context.reason = True, verdict.text or REFUSED
        elif verdict.always:
            self._allowed.add(likeness_of(context))

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """Ask whoever drives the program. Raises `ToolError` where nobody answers."""
        asked = facts.InputAsked(self._new_id(), question, None, options, "tool")
        verdict = await self._wait(asked, NO_ANSWER)
        if not verdict.granted:
            raise ToolError(f"the question was not answered: {verdict.text or NO_ANSWER}")
        return verdict.text

    # -- for whoever answers

    def settle(self, interaction_id: str, verdict: Verdict, kind: str | None = None) -> bool:
        """Answer it. False: nothing of this kind waits under this id."""
        for one in self._stream.pending:
            if one.interaction_id == interaction_id and kind in {None, one.kind}:
                waiting = self._waiting.get(one.request_id)
                if waiting is None or waiting.settled.is_set():
                    return False
                waiting.verdict = verdict
                waiting.settled.set()
                return True
        return False

    def leave(self) -> None:
        """Nobody answers any more, neither what waits nor what will be asked."""
        self._is_left = True
        for waiting in self._waiting.values():
            if not waiting.settled.is_set():
                waiting.verdict = Verdict(False, NOBODY)
                waiting.settled.set()

    # -- inside

    def _may_pass(self, context: ToolGate) -> bool:
        if self._mode == "yolo" or likeness_of(context) in self._allowed:
            return True
        tool = context.tool
        if tool is None:
            return True  # nothing will run: the model is told that there is no such tool
        kind: ToolKind = kind_of(tool)
        if self._asks_everything:
            return kind == "ask"
        return kind in HARMLESS or (kind == "other" and risk_of(tool) == "low")

    def _announce(self, context: ToolGate) -> facts.ApprovalAsked:
        """The call that waits is shown before the question about it."""
        call_id = self._stream.call_id_of(context.call_id)
        command = shell_command_of(context.tool, context.arguments) if context.tool is not None else None
        shell = facts.Shell(command) if command is not None else None
        self._stream.tell(facts.ToolReady(call_id, context.name, dict(context.arguments), shell))
        return approval_of(context, self._new_id(), call_id, command)

    def _refuse(self, context: ToolGate, asked: facts.ApprovalAsked, reason: str) -> None:
        self._stream.tell(asked, facts.RequestSettled(asked.request_id, granted=False, reason=reason))
        context.block, context.reason = True, reason

    async def _wait(self, asked: facts.ApprovalAsked | facts.InputAsked, nobody: str) -> Verdict:
        if self._is_left:
            verdict = Verdict(False, nobody)
            self._stream.tell(asked, _settled(asked, verdict))
            return verdict
        waiting = self._waiting[asked.request_id] = _Waiting()
        self._stream.tell(asked)
        try:
            if self._asker is not None:
                waiting.verdict = await self._ask_person(asked.request_id, self._asker)
            else:
                await waiting.settled.wait()
        finally:
            del self._waiting[asked.request_id]
            self._stream.tell(_settled(asked, waiting.verdict))
        return waiting.verdict

    async def _ask_person(self, request_id: str, asker: Asker) -> Verdict:
        async with self._one_at_a_time:
            for one in self._stream.pending:
                if one.request_id == request_id:
                    return await asker(one)
        return Verdict(False, STOPPED)

    def _new_id(self) -> str:
        self._asked += 1
        return str(self._asked)


def _settled(asked: Any, verdict: Verdict) -> facts.RequestSettled:
    reason = None if verdict.granted else verdict.text or None
    return facts.RequestSettled(asked.request_id, verdict.granted, reason)
