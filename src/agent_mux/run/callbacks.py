"""Answers from the consumer's callbacks, for local runs and for those of a service.

A refused answer is reported, the callback is asked once more, and then the request is declined. See
docs/spec/run-api.md, section 3.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

from agent_mux.assembler import OpenInteraction
from agent_mux.errors import AgentMuxError
from agent_mux.run.interaction import InteractionChannel, describe, to_action
from agent_mux.run.readers import Listeners
from agent_mux.sdk.codec import AnyAction, DenyAction, Refuse
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.sdk.options import RunOptions

ASKS_PER_REQUEST = 2
"""How often a callback is asked about one request: again only if its first answer is refused."""
CORRECTABLE = frozenset({"VALIDATION_ERROR", "CAPABILITY_ERROR"})
"""Error codes of refusals after which another answer may be accepted."""


@dataclass(frozen=True, kw_only=True)
class InteractionPort:
    """What answering the requests of a run needs from the run."""

    run_id: str
    pending: Callable[[], tuple[OpenInteraction, ...]]
    """Returns the pending requests."""
    deliver: Callable[[AnyAction], Awaitable[Refuse | None]]
    """Sends an answer. Returns its refusal, None if it was delivered or is not needed any more."""
    note: Callable[[str], None]
    """Publishes a warning as an event of the run."""
    listeners: Listeners
    channel: InteractionChannel
    known: set[str] = field(default_factory=set)
    """Ids of the requests that were new before."""

    def is_pending(self, request: OpenInteraction) -> bool:
        """Return whether the agent still waits for an answer."""
        return request in self.pending()

    def new_requests(self) -> Iterator[OpenInteraction]:
        """Yield each request once, also those that arrive meanwhile, after calling the `on_pending` callbacks."""
        while request := next((one for one in self.pending() if one.interaction_id not in self.known), None):
            self.known.add(request.interaction_id)
            interaction = describe(request, self.run_id)
            for listener in self.channel.listeners():
                self.listeners.call_safely(listener, interaction)
            yield request

    def report(self, request: OpenInteraction, refusal: Refuse, consequence: str) -> None:
        """Publish that an answer was refused."""
        self.note(f"the answer to {request.interaction_id} was refused: {refusal.message}; {consequence}")


class CallbackResponder:
    """Asks the callbacks of a run's options about its requests."""

    def __init__(self, options: RunOptions, port: InteractionPort) -> None:
        self._options = options
        self._port = port

    def callback_for(self, request: OpenInteraction) -> Callable[[PendingInteraction], Any] | None:
        """Return the callback for this kind of request; None if the options have none."""
        options = self._options
        return options.on_approval_request if request.kind == "approval" else options.on_input_required

    async def ask(self, request: OpenInteraction) -> None:
        """Ask the callback and deliver its answer. A callback that returns None leaves the request open.

        A callback that raises denies the request, so that the agent does not wait for ever.
        """
        callback, port = self.callback_for(request), self._port
        if callback is None:
            return
        for remaining in reversed(range(ASKS_PER_REQUEST)):
            try:
                answer = await self._call(callback, request)
            except Exception as error:  # noqa: BLE001  # a callback of the consumer may raise anything
                port.note(f"the callback for {request.interaction_id} failed; the request is denied: {error!r}")
                await self._decline(request, "the callback that decides failed")
                return
            if answer is None or not port.is_pending(request):
                return
            refusal = answer if isinstance(answer, Refuse) else await port.deliver(answer)
            if refusal is None:
                return
            is_last = not remaining or refusal.code not in CORRECTABLE
            port.report(request, refusal, "the request is declined" if is_last else "the callback is asked again")
            if is_last:
                break
        await self._decline(request, "the answers to this request were refused")

    async def _call(
        self, callback: Callable[[PendingInteraction], Any], request: OpenInteraction
    ) -> AnyAction | Refuse | None:
        """Return the callback's answer, or its refusal if it does not fit the kind of request."""
        response = callback(describe(request, self._port.run_id))
        if isawaitable(response):
            response = await response
        try:
            return None if response is None else to_action(request, response)
        except AgentMuxError as error:
            return Refuse("VALIDATION_ERROR", error.message)

    async def _decline(self, request: OpenInteraction, reason: str) -> None:
        if self._port.is_pending(request):
            refusal = await self._port.deliver(DenyAction(request.request_id, reason))
            if refusal is not None:
                self._port.report(request, refusal, "the request stays open")
