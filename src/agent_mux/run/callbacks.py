"""Answers from the consumer's callbacks, for local runs and for those of a service.

A value that is not an answer is an error of the run, which names the callback. An answer that the agent refuses is a
warning. After either, the callback is asked once more, and then the request is declined. See docs/spec/run-api.md,
sections 2.5 and 3.6.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec

from agent_mux._util.logs import LOGGER
from agent_mux.assembler import OpenInteraction
from agent_mux.errors import AgentMuxError
from agent_mux.run.handlers import shown
from agent_mux.run.interaction import RESPONSES, InteractionChannel, describe, to_action
from agent_mux.run.readers import Listeners
from agent_mux.sdk.codec import AnyAction, DenyAction, Refuse
from agent_mux.sdk.interactions import Approve, Choice, Defer, Deny, PendingInteraction, Text
from agent_mux.sdk.options import RunOptions

ASKS_PER_REQUEST = 2
"""How often a callback is asked about one request: again only if its first answer is refused."""
CORRECTABLE = frozenset({"VALIDATION_ERROR", "CAPABILITY_ERROR"})
"""Error codes of refusals after which another answer may be accepted."""

OPTION_OF = {"approval": "on_approval_request", "input": "on_input_required"}
"""The option for the callback of each kind of request."""
_RESPONSE_TYPES: dict[str, tuple[type, ...]] = {"approval": (Approve, Deny, bool), "input": (Text, Choice, Deny)}


class InteractionPort(msgspec.Struct, frozen=True, kw_only=True):
    """What answering the requests of a run needs from the run."""

    run_id: str
    pending: Callable[[], tuple[OpenInteraction, ...]]
    """Returns the pending requests."""
    deliver: Callable[[AnyAction], Awaitable[Refuse | None]]
    """Sends an answer. Returns its refusal, None if it was delivered or is not needed any more."""
    note: Callable[[str], None]
    """Publishes a warning as an event of the run."""
    fail: Callable[[str], None]
    """Publishes a recoverable error as an event of the run."""
    listeners: Listeners
    channel: InteractionChannel
    known: set[str] = set()
    """Ids of the requests that were new before."""

    def is_pending(self, request: OpenInteraction) -> bool:
        """Return whether the agent still waits for an answer."""
        return request in self.pending()

    def new_requests(self) -> Iterator[OpenInteraction]:
        """Yield each request once, also those that arrive meanwhile, after calling the `on_pending` callbacks."""
        while request := next((one for one in self.pending() if one.interaction_id not in self.known), None):
            self.known.add(request.interaction_id)
            interaction = describe(request, self.run_id)
            if self.channel.listeners():
                self.channel.seen.add(request.interaction_id)
            for listener in (*self.channel.listeners(), *self.channel.observers()):
                self.listeners.call_safely(listener, interaction)
            yield request

    def report(self, request: OpenInteraction, refusal: Refuse, consequence: str, *, by: str = "") -> None:
        """Publish that an answer was refused; `by` is the callback that gave it."""
        whose = f"the answer of {by}" if by else "the answer"
        self.note(f"{whose} to {request.interaction_id} was refused: {refusal.message}; {consequence}")


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
        """Ask the callback and deliver its answer; `Defer` leaves the request open.

        A callback that raises denies the request, so that the agent does not wait for ever.
        """
        callback, port = self.callback_for(request), self._port
        if callback is None:
            return
        name = f"the callback {_name_of(callback)} ({OPTION_OF[request.kind]})"
        for remaining in reversed(range(ASKS_PER_REQUEST)):
            try:
                response = callback(describe(request, port.run_id))
                response = await response if isawaitable(response) else response
            except Exception as error:
                logging.getLogger(LOGGER).exception("run %s: %s raised", port.run_id, name)
                port.fail(f"{name} raised {error!r} for {request.interaction_id}; the request is denied")
                await self._decline(request, "the callback that decides failed")
                return
            if isinstance(response, Defer) or not port.is_pending(request):
                return
            consequence = "the callback is asked again" if remaining else "the request is declined"
            if not isinstance(response, _RESPONSE_TYPES[request.kind]):
                expected = f"return {RESPONSES[request.kind]}, or Defer() to answer later"
                given = f"{name} returned {shown(response)} for {request.interaction_id}; {expected}"
                logging.getLogger(LOGGER).error("run %s: %s; %s", port.run_id, given, consequence)
                port.fail(f"{given}; {consequence}")
                continue
            refusal = await self._deliver(request, response)
            if refusal is None:
                return
            is_final = refusal.code not in CORRECTABLE
            port.report(request, refusal, "the request is declined" if is_final else consequence, by=name)
            if is_final:
                break
        await self._decline(request, "the answers to this request were refused")

    async def _deliver(self, request: OpenInteraction, response: Any) -> Refuse | None:
        try:
            action = to_action(request, response)
        except AgentMuxError as error:
            return Refuse("VALIDATION_ERROR", error.message)
        return await self._port.deliver(action)

    async def _decline(self, request: OpenInteraction, reason: str) -> None:
        if self._port.is_pending(request):
            refusal = await self._port.deliver(DenyAction(request.request_id, reason))
            if refusal is not None:
                self._port.report(request, refusal, "the request stays open")


def _name_of(callback: Any) -> str:
    while isinstance(callback, partial):
        callback = callback.func
    return getattr(callback, "__qualname__", None) or type(callback).__qualname__
