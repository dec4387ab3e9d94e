"""Approval and question events: each interaction is requested once and resolved once.

See docs/spec/events.md, sections 18 and 25.4.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.shown_requests import cut_diff, cut_input
from agent_mux.events.run import ApprovalDeniedEvent, ApprovalGrantedEvent, ApprovalRequestEvent, InputRequiredEvent
from agent_mux.sdk import facts


class OpenInteraction(msgspec.Struct, frozen=True, kw_only=True):
    """An approval or question that the agent waits for."""

    interaction_id: str
    """ULID of the interaction, which its events carry."""
    request_id: str
    """The codec's key of the request."""
    kind: Literal["approval", "input"]
    asked: facts.ApprovalRequested | facts.InputRequested
    """The agent's request."""
    created_at: int
    """Milliseconds since the epoch, when the agent asked."""


MAX_DENIED = 100  # denied approvals that are kept


class DeniedApproval(NamedTuple):
    """An approval that was denied."""

    interaction_id: str
    request: facts.ApprovalRequested
    reason: str | None


class InteractionAssembler:
    """Emits the interaction events of a run and keeps the open interactions in order."""

    def __init__(self, emitter: Emitter, *, show_approvals: bool, show_requests: bool) -> None:
        self._emitter = emitter
        self._show_approvals = show_approvals
        self._show_requests = show_requests and show_approvals
        self._open: dict[str, OpenInteraction] = {}
        self.count: Callable[[], int] = self._open.__len__
        """Returns the number of open interactions."""
        self.denied: list[DeniedApproval] = []
        """The first denied approvals, whether or not events show them."""

    def show_all(self) -> None:
        """Emit requests and decisions from now on."""
        self._show_approvals = self._show_requests = True

    @property
    def open(self) -> tuple[OpenInteraction, ...]:
        """The interactions that the agent waits for, oldest first."""
        return tuple(self._open.values())

    def is_open(self, request_id: str) -> bool:
        """Return whether the agent waits for an answer to this request."""
        return request_id in self._open

    def open_approval(self, fact: facts.ApprovalRequested) -> None:
        """Open an approval, unless its key is open already."""
        if fact.request_id in self._open:
            return
        interaction = self._add("approval", fact, fact.request_id)
        if self._show_requests:
            self._emitter.emit(
                ApprovalRequestEvent,
                interaction.interaction_id, fact.action, fact.detail, fact.risk, fact.tool_name, fact.call_id,
                fact.command, list(fact.paths), cut_input(fact.tool_input), cut_diff(fact.diff),
            )  # fmt: skip

    def open_question(self, fact: facts.InputRequested) -> None:
        """Open a question, unless its key is open already."""
        if fact.request_id in self._open:
            return
        interaction = self._add("input", fact, fact.request_id)
        self._emitter.emit(InputRequiredEvent, interaction.interaction_id, fact.question, fact.source, fact.context)

    def resolve(self, request_id: str, *, granted: bool, reason: str | None = None) -> OpenInteraction | None:
        """Close a request and emit the decision on an approval. Returns it, or None when no request has this key."""
        interaction = self._open.pop(request_id, None)
        if interaction is None or not isinstance(interaction.asked, facts.ApprovalRequested):
            return interaction
        if not granted and len(self.denied) < MAX_DENIED:
            self.denied.append(DeniedApproval(interaction.interaction_id, interaction.asked, reason))
        if not self._show_approvals:
            return interaction
        if not granted:
            self._emitter.emit(ApprovalDeniedEvent, interaction.interaction_id, reason)
        elif self._show_requests:
            self._emitter.emit(ApprovalGrantedEvent, interaction.interaction_id)
        return interaction

    def close(self, reason: str) -> None:
        """Close all open requests; approvals are denied for this reason."""
        for request_id in list(self._open):
            self.resolve(request_id, granted=False, reason=reason)

    def _add(
        self, kind: Literal["approval", "input"], fact: facts.ApprovalRequested | facts.InputRequested, request_id: str
    ) -> OpenInteraction:
        interaction = self._open[request_id] = OpenInteraction(
            interaction_id=self._emitter.new_id(),
            request_id=request_id,
            kind=kind,
            asked=fact,
            created_at=self._emitter.now,
        )
        return interaction
