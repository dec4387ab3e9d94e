"""Who answers what an agent waits for: the policy, the approval mode, a callback, or nobody yet. Run API, section 2."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Literal

from agent_mux.assembler import OpenInteraction
from agent_mux.run.interaction import InteractionChannel, describe, to_action
from agent_mux.run.listeners import Listeners
from agent_mux.run.rulings import overdue, ruled
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.sdk.options import RunOptions

Decision = AnyAction | Literal["ask"] | None
"""An answer; that the callback has to be asked for one; or None: nobody is there to answer yet."""


class Answers:
    """Sees each new request once, and answers it if the options say how."""

    def __init__(self, run_id: str, options: RunOptions, channel: InteractionChannel, listeners: Listeners) -> None:
        self._run_id = run_id
        self._options = options
        self._channel = channel
        self._listeners = listeners
        self._seen: set[str] = set()

    def decide(self, pending: tuple[OpenInteraction, ...]) -> list[tuple[OpenInteraction, "Decision"]]:
        """The requests that are new, and what to do about each."""
        new = [request for request in pending if request.interaction_id not in self._seen]
        decided = []
        for request in new:
            self._seen.add(request.interaction_id)
            self._announce(request)
            decided.append((request, self._decide(request)))
        return decided

    def _announce(self, request: OpenInteraction) -> None:
        interaction = describe(request, self._run_id)
        for listener in self._channel.listeners():
            self._listeners.guard(listener, interaction)

    def _decide(self, request: OpenInteraction) -> "Decision":
        mode, policy = self._options.approval_mode, self._options.policy
        is_approval = request.kind == "approval"
        ruling = None if policy is None else ruled(policy, self._options.working_directory(), request)
        if ruling is not None:
            return ruling
        if is_approval and mode == "deny":
            return DenyAction(request.request_id, "denied: this run has approval mode deny")
        if self._responder(request) is not None:
            return "ask"
        if is_approval and mode == "yolo":
            return ApproveAction(request.request_id)
        return DenyAction(request.request_id, "nobody is there to answer") if mode != "prompt" else None

    def _responder(self, request: OpenInteraction) -> Callable[[PendingInteraction], Any] | None:
        options = self._options
        return options.on_approval_request if request.kind == "approval" else options.on_input_required

    def overdue(self, request: OpenInteraction) -> AnyAction:
        """What becomes of a request that nobody answered in time."""
        return overdue(self._options.policy, request, self._options.answer_within)

    async def ask(self, request: OpenInteraction) -> AnyAction | None:
        """What the callback says. One that raises denies: the agent must not wait for ever."""
        responder = self._responder(request)
        if responder is None:
            return None
        try:
            response = responder(describe(request, self._run_id))
            if isawaitable(response):
                response = await response
            return None if response is None else to_action(request, response)
        except Exception as error:  # noqa: BLE001  # a callback of the consumer's may raise anything
            self._listeners.warn(f"the callback for {request.interaction_id} failed, so it is denied: {error!r}")
            return DenyAction(request.request_id, "the callback that should decide failed")
