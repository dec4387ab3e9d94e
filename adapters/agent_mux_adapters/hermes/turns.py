"""Our side of a run over the gateway: opening the session, then one prompt after the other, then leaving.

A prompt that is sent while a turn runs is kept for the next turn. The gateway has a queue of its own, but by default it
interrupts the running turn, and it queues each prompt that arrives before it has reported that it is idle again.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Effect, WriteStdin
from agent_mux.sdk.facts import Fact, Ignored, ImageAccepted, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.outcome import failure_of, session_failure
from agent_mux_adapters.hermes.session_setup import SessionSetup, count_prompts, mime_type_of, opening_request
from agent_mux_adapters.hermes.subagents import BackgroundWork

_OPENING_METHODS = frozenset({"session.create", "session.resume", "session.branch"})


class HermesSteering:
    """Steering messages that may not have reached the model.

    Hermes appends them to the result of the next tool call, and drops them when there is none. It reports when it has
    accepted one, but not when one reached the model: a tool call that ends afterwards is the evidence.
    """

    def __init__(self) -> None:
        self._queued: list[str] = []
        self._sent: deque[str] = deque()
        self._accepted: list[str] = []

    def queue(self, message: str) -> None:
        """Queue a message of the consumer."""
        self._queued.append(message)

    def take_queued(self) -> list[str]:
        """Return the queued messages, which now count as sent."""
        messages, self._queued = self._queued, []
        self._sent.extend(messages)
        return messages

    def accepted(self) -> None:
        """Note that Hermes accepted the message that was sent first."""
        if self._sent:
            self._accepted.append(self._sent.popleft())

    def refused(self) -> str | None:
        """Return the message that was sent first and that Hermes refused."""
        return self._sent.popleft() if self._sent else None

    def tool_ended(self) -> None:
        """Note that the accepted messages reached the model with the result of a tool call."""
        self._accepted.clear()

    def take_undelivered(self) -> list[str]:
        """Return the messages that never reached the model in this turn, to be sent as prompts."""
        undelivered = [*self._accepted, *self._sent, *self._queued]
        self._accepted.clear()
        self._sent.clear()
        self._queued.clear()
        return undelivered


class HermesTurns(PromptQueue):
    """The session, the turn that is open, and the prompts that wait.

    In a transcript of another client it only tracks the session and writes nothing.
    """

    def __init__(self, context: CodecContext, rpc: JsonRpcClient) -> None:
        super().__init__("hermes", interactive=context.interactive)
        self._context = context
        self._rpc = rpc
        self._is_observed = context.prompt is None
        self.session: str | None = None
        """The id of the live session; None before it is opened."""
        self._setup = SessionSetup(context)
        self._reported: SessionKnown | None = None
        self._is_forking = False
        """Whether another client opened a session only to fork it."""
        self._turn: Literal["none", "requested", "running", "settling"] = "none"
        """`settling`: the closing message has arrived, but Hermes is not idle yet."""
        self._steering = HermesSteering()
        self.background = BackgroundWork()
        self._is_interrupt_due = False
        self._is_stopping = False
        """Whether the run may end without the reports of its background work."""

    # -- actions of the consumer

    def start(self) -> tuple[CodecOutput, ...]:
        """Open the session and queue the run's first prompt."""
        if self._is_observed:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask(*opening_request(self._context)),)

    def steer(self, message: str) -> tuple[CodecOutput, ...]:
        """Send a message into the running turn; without a turn it is a prompt."""
        if self._turn not in ("requested", "running"):
            return self.send(message)
        self._steering.queue(message)
        return self._write_to_turn()

    def interrupt(self) -> tuple[CodecOutput, ...]:
        """Stop the turn that runs or is about to."""
        if self._turn in ("none", "settling") and not self._prompts:
            return (Note("nothing to interrupt: hermes waits for a prompt"),)
        self._is_interrupt_due = self._is_stopping = True
        return self._write_to_turn()

    def cancel(self) -> tuple[CodecOutput, ...]:
        """Drop the prompts that wait, stop the turn, and leave."""
        self._prompts.clear()
        self._closing = self._is_stopping = True
        return self.interrupt() if self._turn in ("requested", "running") else self.next()

    # -- responses of the gateway

    def response(self, asked: PendingRequest, result: Any) -> tuple[CodecOutput, ...]:
        """Read the result of one of our requests."""
        fields = mapping(result)
        match asked.method:
            case "session.create" | "session.resume" | "session.branch":
                return self._opened(asked, fields)
            case "session.steer" if fields.get("status") == "queued":
                self._steering.accepted()
            case "session.steer":
                return Note("hermes did not accept the message into the turn", "warn"), *self._steer_refused()
            case "session.delete" | "session.close" if self._closed:
                return Ignored(_response_kind(asked), "the run is ending"), *self._delete_session(asked)
        return self._response_fact(asked, fields), *self._continue(asked)

    def error_response(self, asked: PendingRequest, error: RpcError) -> tuple[CodecOutput, ...]:
        """Read the error that one of our requests ended with."""
        if asked.method in _OPENING_METHODS:
            return TurnFailed(session_failure(error.code, error.message)), *self._hang_up()
        if asked.method == "prompt.submit":
            self.turn_ended()
            return TurnFailed(failure_of(error.message)), *self.idle()
        note = Note(f"hermes refused {asked.method}: {error.message}", "warn")
        if asked.method == "session.steer":
            return note, *self._steer_refused()
        if asked.method in ("session.close", "session.delete") and self._closed:
            return note, *self._hang_up()
        return note, *self._continue(asked)

    # -- events of the gateway

    def session_info(self, session: str, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Read `session.info`: the agent is built, or a property of the session changed."""
        known = self._setup.info(session, payload)
        if self.session is None and self._is_observed and known.session_id:
            self.session = session  # a transcript that begins after the session was opened
        if session != self.session:
            return ()
        facts = self._report(known)
        if self._turn == "settling" and payload.get("running") is False:
            return *facts, *self.idle()
        return *facts, *self.next()

    def turn_started(self) -> tuple[CodecOutput, ...]:
        """Note that a turn began: for our prompt, or to report background work."""
        if self._turn != "requested":
            self.background.turn_started()
        self._turn = "running"
        return *self._report(self._setup.known), *self._write_to_turn()

    def turn_ended(self) -> None:
        """Note that the closing message has arrived; Hermes is not idle yet."""
        self._turn, self._is_interrupt_due = "settling", False
        self._prompts.extendleft(reversed(self._steering.take_undelivered()))

    def failed(self) -> tuple[Effect, ...]:
        """Read `error`: Hermes could not do something. Where no turn had begun, it reports nothing further."""
        if self.session is None or not self._setup.is_built(self.session):
            return self._hang_up()
        was_requested = self._turn == "requested"
        self.turn_ended()
        return self.idle() if was_requested else ()

    def idle(self) -> tuple[Effect, ...]:
        """Note that Hermes accepts prompts again."""
        self._turn = "none"
        return self.next()

    def tool_ended(self) -> None:
        """Note the end of a tool call, which delivers steering messages."""
        self._steering.tool_ended()

    def request_observed(self, method: str) -> None:
        """Note a request of another client in a transcript."""
        self._is_forking = self._is_forking or method == "session.branch"

    # -- internals

    def _opened(self, asked: PendingRequest, fields: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        session = text(fields.get("session_id"))
        if not session:
            return TurnFailed(failure_of("hermes opened no session")), *self._hang_up()
        is_fork = self._context.fork_session_id is not None and not self._is_observed
        if asked.method == "session.resume" and is_fork:
            self._setup.prior_turns = count_prompts(fields)
            branch = self._ask("session.branch", {"session_id": session})
            return Ignored(_response_kind(asked), "the session that is forked"), branch
        self.session = session
        known = self._setup.opened(asked.method, fields, mapping(asked.params))
        if self._is_observed and asked.method == "session.resume":
            # It may be opened only for a fork.
            return (Ignored(_response_kind(asked), "the session is reported when it is used"),)
        self._is_forking = False
        steps: tuple[CodecOutput, ...] = (*self._report(known), *self._immediate_requests(), *self.next())
        return steps or (Ignored(_response_kind(asked), "already opened"),)

    def _report(self, known: SessionKnown) -> tuple[Fact, ...]:
        if self._reported == known or not known.session_id or self._is_forking:
            return ()
        self._reported = known
        return (known,)

    def _immediate_requests(self) -> tuple[Effect, ...]:
        if self._is_observed or self.session is None:
            return ()
        return tuple(self._ask(method, params) for method, params in self._setup.immediate_requests(self.session))

    def _response_fact(self, asked: PendingRequest, fields: Mapping[str, Any]) -> Fact:
        match asked.method:
            case "image.attach" | "image.attach_bytes":
                return ImageAccepted(mime_type_of(text(fields.get("name"))))
            case "config.set" if text(fields.get("warning")):
                return Note(text(fields["warning"]), "warn")
        return Ignored(_response_kind(asked), "the events report its effect")

    def _continue(self, asked: PendingRequest) -> tuple[CodecOutput, ...]:
        self._setup.done(asked.method)
        return self.next()

    def _steer_refused(self) -> tuple[CodecOutput, ...]:
        message = self._steering.refused()
        return self.send(message) if message and not self._is_observed and not self._closed else ()

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def next(self) -> tuple[Effect, ...]:
        """Return the next request of the setup, the next prompt, or the end of our input, if one of them is due."""
        if self._is_observed or self._closed or self.session is None or self._turn != "none":
            return ()
        if not self._setup.is_ready(self.session):
            request = self._setup.next_request(self.session)
            return (self._ask(*request),) if request is not None else ()
        if self._prompts:
            self._turn, self._is_stopping = "requested", self._is_interrupt_due
            return (self._ask("prompt.submit", {"session_id": self.session, "text": self._prompts.popleft()}),)
        may_leave = self._closing and (self._is_stopping or not self.background)
        return self._leave() if may_leave else ()

    def _leave(self) -> tuple[Effect, ...]:
        if not self._context.no_session or self.session is None:
            return self._hang_up()
        self._closed = True
        return (self._ask("session.close", {"session_id": self.session}),)

    def _delete_session(self, asked: PendingRequest) -> tuple[Effect, ...]:
        """Delete the stored session after it was closed; hang up after it was deleted."""
        is_close = asked.method == "session.close"
        stored = self._reported.session_id if self._reported is not None and is_close else ""
        return (self._ask("session.delete", {"session_id": stored}),) if stored else self._hang_up()

    def _hang_up(self) -> tuple[Effect, ...]:
        if self._is_observed:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _write_to_turn(self) -> tuple[Effect, ...]:
        """Send the steering messages and the interruption that had to wait for the turn to run."""
        if self._is_observed or self.session is None or self._turn != "running":
            return ()
        base = {"session_id": self.session}
        effects = [self._ask("session.steer", {**base, "text": message}) for message in self._steering.take_queued()]
        if self._is_interrupt_due:
            self._is_interrupt_due = False
            effects.append(self._ask("session.interrupt", base))
        return tuple(effects)


def _response_kind(asked: PendingRequest) -> str:
    return f"response:{asked.method}"
