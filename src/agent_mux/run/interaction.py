"""Pending approvals and questions, and their answers. See docs/spec/run-api.md, section 3 (interaction channel)."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_mux.assembler import OpenInteraction, cut_diff, cut_input
from agent_mux.errors import AgentMuxError
from agent_mux.run.handlers import check_handler
from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, AnyAction, ApproveAction, Delivery, DenyAction
from agent_mux.sdk.interactions import (
    ApprovalDetail,
    Approve,
    Choice,
    Deny,
    InputDetail,
    PendingInteraction,
    Response,
    Text,
    approval_subject,
)

RESPONSES = {"approval": "Approve, Deny, True or False", "input": "Text, Choice or Deny"}
"""The responses that each kind of request accepts, for error messages."""
SendAction = Callable[[AnyAction], Awaitable[Delivery]]
"""Sends an action to the agent, and returns how it was delivered."""


def describe(request: OpenInteraction, run_id: str) -> PendingInteraction:
    """Return the public view of a pending request."""
    asked = request.asked
    detail: ApprovalDetail | InputDetail
    if isinstance(asked, facts.ApprovalRequested):
        detail = ApprovalDetail(
            asked.action, asked.detail, asked.tool_name, asked.risk, asked.command, asked.paths, asked.call_id,
            cut_input(asked.tool_input), cut_diff(asked.diff),
        )  # fmt: skip
        description = approval_text(asked.action, asked.detail)
    else:
        detail = InputDetail(asked.question, asked.context, asked.options, asked.source)
        description = asked.question
    return PendingInteraction(request.interaction_id, request.kind, run_id, description, detail, request.created_at)


def approval_text(action: str, detail: str) -> str:
    """Return what an approval is about, as one sentence, without the diff that the detail of some agents has."""
    subject = approval_subject(detail)
    return f"{action}: {subject}" if subject else action


def to_action(request: OpenInteraction, response: Response) -> AnyAction:
    """Return the action for a response.

    Raises VALIDATION_ERROR if the request does not accept this kind of response.
    """
    match request.kind, response:
        case _, Deny(reason):
            return DenyAction(request.request_id, reason)
        case "approval", Approve(always):
            return ApproveAction(request.request_id, always)
        case "approval", True:
            return ApproveAction(request.request_id)
        case "approval", False:
            return DenyAction(request.request_id)
        case "input", Text(text):
            return AnswerAction(request.request_id, text)
        case "input", Choice(option):
            return AnswerAction(request.request_id, _label(request, option))
    given = repr(response) if response is None or isinstance(response, bool) else type(response).__name__
    raise AgentMuxError(
        "VALIDATION_ERROR",
        f"{given} does not answer the {request.kind} {request.interaction_id}; use {RESPONSES[request.kind]}",
    )


def _label(request: OpenInteraction, option: str | int) -> str:
    options = request.asked.options if isinstance(request.asked, facts.InputRequested) else ()
    if isinstance(option, str):
        return option
    if 0 <= option < len(options):
        return options[option]
    raise AgentMuxError(
        "VALIDATION_ERROR",
        f"the question {request.interaction_id} has {len(options)} options; number {option} does not exist",
    )


class InteractionChannel:
    """`run.interaction`: the pending approvals and questions, and methods to answer them."""

    def __init__(
        self,
        run_id: str,
        pending: Callable[[], tuple[OpenInteraction, ...]],
        act: SendAction,
        require_active: Callable[[], None],
    ) -> None:
        """Create the channel of one run.

        Args:
            run_id: ULID of the run.
            pending: Returns the pending requests.
            act: Sends an action to the agent.
            require_active: Raises RUN_NOT_ACTIVE if the run is over.
        """
        self._run_id = run_id
        self._require_active = require_active
        self._pending = pending
        self._act = act
        self._listeners: list[Callable[[PendingInteraction], Any]] = []
        self._observers: list[Callable[[PendingInteraction], Any]] = []
        self.is_polled = False
        """Whether somebody has read `pending`, and can do so again."""
        self.is_kept_open = False
        """Whether requests stay pending although nobody is there to answer them."""
        self.seen: set[str] = set()
        """Ids of the requests that somebody has got from this channel."""

    @property
    def pending(self) -> list[PendingInteraction]:
        """The pending requests, in the order in which the agent asked."""
        self.is_polled = True
        self.mark_seen()
        return self.peek()

    def peek(self) -> list[PendingInteraction]:
        """Return the pending requests for an internal use: nobody who could answer them sees them."""
        return [describe(request, self._run_id) for request in self._pending()]

    def mark_seen(self) -> None:
        """Remember that somebody has got the pending requests."""
        self.seen.update(request.interaction_id for request in self._pending())

    def keep_open(self) -> None:
        """Leave requests pending although nobody is there to answer: somebody will connect to the run later."""
        self.is_kept_open = True

    def on_pending(self, callback: Callable[[PendingInteraction], Any]) -> Callable[[], None]:
        """Call `callback` with each new request. Returns a function that stops this."""
        self._listeners.append(check_handler(callback, "a callback of on_pending"))

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    def observe(self, callback: Callable[[PendingInteraction], Any]) -> None:
        """Call `callback` with each new request; nobody who could answer sees it by that."""
        self._observers.append(callback)

    def observers(self) -> tuple[Callable[[PendingInteraction], Any], ...]:
        """Return the callbacks of those who cannot answer."""
        return tuple(self._observers)

    def listeners(self) -> tuple[Callable[[PendingInteraction], Any], ...]:
        """Return the callbacks for new requests."""
        return tuple(self._listeners)

    async def respond(self, interaction_id: str, response: Response) -> Delivery:
        """Answer a request.

        Raises INTERACTION_NOT_FOUND if the request is unknown or was answered before, RUN_NOT_ACTIVE after the end.
        """
        for request in self._pending():
            if request.interaction_id == interaction_id:
                return await self._act(to_action(request, response))
        self._require_active()
        raise AgentMuxError(
            "INTERACTION_NOT_FOUND",
            f"no interaction {interaction_id!r} is pending in run {self._run_id}; it may have been answered already",
        )

    async def approve_all(self) -> int:
        """Approve every pending approval, but no question. Returns how many there were.

        A refused answer does not prevent the others; the first refusal is raised after them.
        """
        return await self._answer_all([request for request in self._pending() if request.kind == "approval"], Approve())

    async def deny_all(self, reason: str | None = None) -> int:
        """Deny every pending request, including questions. Returns and raises as `approve_all` does."""
        return await self._answer_all(list(self._pending()), Deny(reason))

    async def _answer_all(self, requests: list[OpenInteraction], response: Response) -> int:
        first: AgentMuxError | None = None
        for request in requests:
            try:
                await self._act(to_action(request, response))
            except AgentMuxError as error:
                first = first or error
        if first is not None:
            raise first
        return len(requests)
