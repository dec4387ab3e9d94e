"""What an agent waits for, and the answers. Source: run API, section 3 (interaction channel)."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_mux.assembler import OpenInteraction
from agent_mux.errors import AgentMuxError
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
)


def describe(open_: OpenInteraction, run_id: str) -> PendingInteraction:
    """The public view of an open request."""
    asked = open_.asked
    detail: ApprovalDetail | InputDetail
    if isinstance(asked, facts.ApprovalAsked):
        detail = ApprovalDetail(
            asked.action, asked.detail, asked.tool_name, asked.risk, asked.command, asked.paths, asked.call_id
        )
        description = f"{asked.action}: {asked.detail}" if asked.detail else asked.action
    else:
        detail = InputDetail(asked.question, asked.context, asked.options, asked.source)
        description = asked.question
    return PendingInteraction(open_.interaction_id, open_.kind, run_id, description, detail, open_.created_at)


def to_action(open_: OpenInteraction, response: Response) -> AnyAction:
    """The action that carries a response. Raises VALIDATION_ERROR for a response of the wrong kind."""
    match open_.kind, response:
        case _, Deny(reason):
            return DenyAction(open_.request_id, reason)
        case "approval", Approve(always):
            return ApproveAction(open_.request_id, always)
        case "input", Text(text):
            return AnswerAction(open_.request_id, text)
        case "input", Choice(option):
            return AnswerAction(open_.request_id, _label(open_, option))
    wanted = "Approve or Deny" if open_.kind == "approval" else "Text, Choice or Deny"
    raise AgentMuxError(
        "VALIDATION_ERROR",
        f"{type(response).__name__} does not answer the {open_.kind} {open_.interaction_id}; use {wanted}",
    )


def _label(open_: OpenInteraction, option: str | int) -> str:
    options = open_.asked.options if isinstance(open_.asked, facts.InputAsked) else ()
    if isinstance(option, str):
        return option
    if 0 <= option < len(options):
        return options[option]
    raise AgentMuxError(
        "VALIDATION_ERROR",
        f"the question {open_.interaction_id} has {len(options)} options; there is no number {option}",
    )


class InteractionChannel:
    """`run.interaction`: what the agent waits for, and a way to answer."""

    def __init__(
        self,
        run_id: str,
        pending: Callable[[], tuple[OpenInteraction, ...]],
        act: "Act",
        require_active: Callable[[], None],
    ) -> None:
        """`require_active` raises when the run is over."""
        self._run_id = run_id
        self._require_active = require_active
        self._open = pending
        self._act = act
        self._listeners: list[Callable[[PendingInteraction], Any]] = []

    @property
    def pending(self) -> list[PendingInteraction]:
        """What the agent waits for now, in the order it asked."""
        return [describe(open_, self._run_id) for open_ in self._open()]

    def on_pending(self, callback: Callable[[PendingInteraction], Any]) -> Callable[[], None]:
        """Call back for each new request. Returns the function that stops it."""
        self._listeners.append(callback)

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    def listeners(self) -> tuple[Callable[[PendingInteraction], Any], ...]:
        """Who wants to know."""
        return tuple(self._listeners)

    async def respond(self, interaction_id: str, response: Response) -> Delivery:
        """Answer a request.

        Raises INTERACTION_NOT_FOUND when it is unknown or was answered already, RUN_NOT_ACTIVE after the end.
        """
        for open_ in self._open():
            if open_.interaction_id == interaction_id:
                return await self._act(to_action(open_, response))
        self._require_active()
        raise AgentMuxError(
            "INTERACTION_NOT_FOUND",
            f"no interaction {interaction_id!r} is pending in run {self._run_id}; it may have been answered already",
        )

    async def approve_all(self) -> int:
        """Approve every pending approval; questions are left alone. Returns how many there were."""
        return await self._answer_all([open_ for open_ in self._open() if open_.kind == "approval"], Approve())

    async def deny_all(self, reason: str | None = None) -> int:
        """Refuse everything that is pending, questions included. Returns how many there were."""
        return await self._answer_all(list(self._open()), Deny(reason))

    async def _answer_all(self, requests: list[OpenInteraction], response: Response) -> int:
        for open_ in requests:
            await self._act(to_action(open_, response))
        return len(requests)


Act = Callable[[AnyAction], Awaitable[Delivery]]
