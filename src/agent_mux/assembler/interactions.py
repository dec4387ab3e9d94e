"""Approvals and questions: asked once, settled once. §18, §25.4."""

from typing import Literal

import msgspec

from agent_mux.assembler.emitter import Emitter
from agent_mux.events.run import ApprovalDeniedEvent, ApprovalGrantedEvent, ApprovalRequestEvent, InputRequiredEvent
from agent_mux.sdk import facts


class OpenInteraction(msgspec.Struct, frozen=True, kw_only=True):
    """Something the agent waits for."""

    interaction_id: str
    request_id: str
    """The codec's own key."""
    kind: Literal["approval", "input"]
    asked: facts.ApprovalAsked | facts.InputAsked
    created_at: int
    """Milliseconds since the epoch."""


class Interactions:
    """The open requests of a run, in the order they came."""

    def __init__(self, emitter: Emitter, *, show_approvals: bool, show_requests: bool) -> None:
        self._emitter = emitter
        self._show_approvals = show_approvals
        self._show_requests = show_requests and show_approvals
        self._open: dict[str, OpenInteraction] = {}

    @property
    def open(self) -> tuple[OpenInteraction, ...]:
        """What the agent waits for now."""
        return tuple(self._open.values())

    def is_open(self, request_id: str) -> bool:
        """The agent still waits for this."""
        return request_id in self._open

    def ask_approval(self, fact: facts.ApprovalAsked) -> None:
        """The agent asks for permission."""
        if fact.request_id in self._open:
            return
        asked = self._remember("approval", fact, fact.request_id)
        if self._show_requests:
            self._emitter.emit(
                ApprovalRequestEvent,
                asked.interaction_id, fact.action, fact.detail, fact.risk, fact.tool_name,
            )  # fmt: skip

    def ask_input(self, fact: facts.InputAsked) -> None:
        """The agent asks a question."""
        if fact.request_id in self._open:
            return
        asked = self._remember("input", fact, fact.request_id)
        self._emitter.emit(InputRequiredEvent, asked.interaction_id, fact.question, fact.source, fact.context)

    def settle(self, request_id: str, *, granted: bool, reason: str | None = None) -> OpenInteraction | None:
        """A request is over. Returns it, or None when nothing was open under this key."""
        asked = self._open.pop(request_id, None)
        if asked is None or asked.kind != "approval" or not self._show_approvals:
            return asked
        if not granted:
            self._emitter.emit(ApprovalDeniedEvent, asked.interaction_id, reason)
        elif self._show_requests:
            self._emitter.emit(ApprovalGrantedEvent, asked.interaction_id)
        return asked

    def close(self, why: str) -> None:
        """Nobody will answer any more."""
        for request_id in list(self._open):
            self.settle(request_id, granted=False, reason=why)

    def _remember(
        self, kind: Literal["approval", "input"], fact: facts.ApprovalAsked | facts.InputAsked, request_id: str
    ) -> OpenInteraction:
        asked = self._open[request_id] = OpenInteraction(
            interaction_id=self._emitter.new_id(),
            request_id=request_id,
            kind=kind,
            asked=fact,
            created_at=self._emitter.now,
        )
        return asked
