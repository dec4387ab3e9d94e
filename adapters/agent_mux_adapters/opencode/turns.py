"""The turns of the main session: when one begins, what ends it, and how it ended.

A turn is over when `session.status` says `idle`. That is said once too early where a model call failed or was stopped:
then the session is not done with the answer yet, and will say it again.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.adapter import Step
from agent_mux.facts import (
    Fact,
    Failure,
    Ignored,
    Note,
    RateLimited,
    Retrying,
    Trouble,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnStopped,
)
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.opencode.conversation import Conversation
from agent_mux_adapters.opencode.failures import code_of, failure_of, is_abort, is_overflow
from agent_mux_adapters.opencode.requests import Requests
from agent_mux_adapters.opencode.thread import Message, Thread
from agent_mux_adapters.opencode.threads import Threads
from agent_mux_adapters.opencode.wire import delay_until

_KIND = "session.status"
MOST_RETRIES = 5
"""OpenCode's own limit; it does not tell."""
_UNFINISHED = ("", "tool-calls")
_USELESS_COMPACTIONS = 2
"""So many times in a row the context is too long, each time after it was compacted: that goes on for ever."""


class Turns:
    """What is known of the turn that runs."""

    def __init__(self, threads: Threads, requests: Requests, conversation: Conversation) -> None:
        self._threads = threads
        self._requests = requests
        self._conversation = conversation
        self.is_running = False
        self._error: Any = None
        """Told, and nothing came after it yet."""
        self._rested_early = False
        self._overflows = 0
        self._given_up: Failure | None = None

    def status(self, thread: Thread, status: Mapping[str, Any], event_id: str) -> tuple[Step, ...] | None:
        """`session.status`."""
        match status.get("type"):
            case "busy":
                return self._busy(thread)
            case "retry":
                return *self._begin(thread), *_retrying(status, event_id)
            case "idle":
                return self._idle(thread)
        return None

    def failed(self, error: Any) -> tuple[Step, ...]:
        """`session.error`: the turn ends with it, unless the session goes on."""
        if not self.is_running and self._conversation.expects_turn:  # it will not even begin
            return TurnFailed(failure_of(error)), *self._conversation.turn_over()
        if not self.is_running:
            return (Ignored("session.error", "about no turn"),)
        self._error = error
        if not is_overflow(error):
            return (Ignored("session.error", "told when the turn ends, or goes on"),)
        thread = self._threads.main
        self._overflows = 1 if thread is None or thread.progressed else self._overflows + 1
        if thread is not None:
            thread.progressed = False
        if self._overflows < _USELESS_COMPACTIONS or self._conversation.is_silent:
            return (Ignored("session.error", "the context is compacted, or the turn ends"),)
        self._given_up = failure_of(error)
        why = "opencode compacts its context again and again, and it stays too long: the turn is stopped"
        return Note(why, "warn"), *self._conversation.give_up()

    def _busy(self, thread: Thread) -> tuple[Step, ...]:
        facts: tuple[Fact, ...] = self._begin(thread)
        if self._error is not None:
            failure, self._error = failure_of(self._error), None
            facts = (*facts, Trouble(failure.code, failure.message))
        return *(facts or (Ignored(_KIND, "it works already"),)), *self._conversation.running()

    def _begin(self, thread: Thread) -> tuple[Fact, ...]:
        if self.is_running:
            return ()
        self.is_running, self._rested_early, self._error = True, False, None
        self._overflows, self._given_up = 0, None
        thread.message = None
        return (TurnBegin(),)

    def _idle(self, thread: Thread) -> tuple[Step, ...]:
        if not self.is_running:
            return (Ignored(_KIND, "it rests already"),)
        message = thread.message
        is_open = message is not None and not message.is_complete
        if is_open and self._error is not None and not self._rested_early:
            self._rested_early = True
            return (Ignored(_KIND, "it is not done with the answer yet"),)
        self.is_running = False
        closing = self._closing(message)
        self._threads.turn_over()
        thread.prose.abandon()
        return *self._requests.turn_over(), *closing, *self._conversation.turn_over()

    def _closing(self, message: Message | None) -> tuple[Fact, ...]:
        cost = self._threads.spent_in_turn.record
        error = message.error if message is not None and message.error is not None else self._error
        if self._given_up is not None:
            return (TurnFailed(self._given_up, cost),)
        if error is not None:
            return (TurnStopped(cost) if is_abort(error) else TurnFailed(failure_of(error), cost),)
        if self._conversation.was_stopped and (message is None or message.finish in _UNFINISHED):
            return (TurnStopped(cost),)
        structured = message.structured if message is not None else None
        cut = message is not None and message.finish == "length"
        notes = (Note("the answer was cut off at the model's limit of output tokens", "warn"),) if cut else ()
        return *notes, TurnDone(cost, structured)


def _retrying(status: Mapping[str, Any], event_id: str) -> tuple[Fact, ...]:
    """A model call is to be repeated."""
    reason = text(status.get("message")) or text(mapping(status.get("action")).get("message")) or "no reason given"
    delay = delay_until(whole(status.get("next")), event_id)
    limited = (RateLimited(delay),) if code_of(reason) == "RATE_LIMITED" else ()
    return *limited, Retrying(whole(status.get("attempt")), MOST_RETRIES, reason, delay)
