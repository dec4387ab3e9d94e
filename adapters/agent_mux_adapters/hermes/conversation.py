"""What we say to the gateway: a session is opened and made ready, then one prompt after the other.

What is sent while a turn runs is kept for the next one. The gateway has a queue of its own, but by default it
interrupts the turn that runs; and it takes a prompt for queued until it has said that it is idle again.
"""

from collections.abc import Mapping
from typing import Any, Literal

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Fact, Ignored, ImageTaken, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.failures import failure_of, session_failure
from agent_mux_adapters.hermes.reports import Reports
from agent_mux_adapters.hermes.setup import Setup, mime_type_of, opening_request, prompts_in
from agent_mux_adapters.hermes.steering import Steering

OPENING = frozenset({"session.create", "session.resume", "session.branch"})


class Conversation(PromptQueue):
    """Our side of one run; in a transcript of another client, only what is known of it."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient) -> None:
        super().__init__("hermes", interactive=context.interactive)
        self._context = context
        self._rpc = rpc
        self._silent = context.prompt is None
        self.session: str | None = None
        """The live session."""
        self._setup = Setup(context)
        self._known: SessionKnown | None = None
        self._is_forking = False
        """Another client opened a session only to fork it."""
        self._turn: Literal["none", "asked", "running", "settling"] = "none"
        self._steering = Steering()
        self.reports = Reports()
        self._interrupt_due = False
        self._stopping = False

    # -- what a consumer wants

    def start(self) -> tuple[Step, ...]:
        """The process runs."""
        if self._silent:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask(*opening_request(self._context)),)

    def steer(self, said: str) -> tuple[Step, ...]:
        """A message for the turn that runs; without one it is a prompt."""
        if self._turn not in ("asked", "running"):
            return self.send(said)
        self._steering.wanted(said)
        return self._catch_up()

    def interrupt(self) -> tuple[Step, ...]:
        """Stop the turn that runs, or is about to."""
        if self._turn in ("none", "settling") and not self._prompts:
            return (Note("nothing to interrupt: hermes waits for a prompt"),)
        self._interrupt_due = self._stopping = True
        return self._catch_up()

    def cancel(self) -> tuple[Step, ...]:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = self._stopping = True
        return self.interrupt() if self._turn in ("asked", "running") else self.next()

    # -- what the gateway answers

    def answered(self, asked: PendingRequest, result: Any) -> tuple[Step, ...]:
        """One of our requests succeeded."""
        fields = mapping(result)
        match asked.method:
            case "session.create" | "session.resume" | "session.branch":
                return self._opened(asked, fields)
            case "session.steer" if fields.get("status") == "queued":
                self._steering.accepted()
            case "session.steer":
                return Note("hermes did not take the message into the turn", "warn"), *self._steer_failed()
            case "session.delete" | "session.close" if self._closed:
                return Ignored(_response(asked), "we are leaving"), *self._forget_session(asked)
        return self._said_of(asked, fields), *self._go_on(asked)

    def refused(self, asked: PendingRequest, error: RpcError) -> tuple[Step, ...]:
        """One of our requests failed."""
        if asked.method in OPENING:
            return TurnFailed(session_failure(error.code, error.message)), *self._hang_up()
        if asked.method == "prompt.submit":
            self.turn_over()
            return TurnFailed(failure_of(error.message)), *self.idle()
        note = Note(f"hermes refused {asked.method}: {error.message}", "warn")
        if asked.method == "session.steer":
            return note, *self._steer_failed()
        if asked.method in ("session.close", "session.delete") and self._closed:
            return note, *self._hang_up()
        return note, *self._go_on(asked)

    # -- what the gateway tells

    def info(self, session: str, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        """`session.info`: the agent is built, or something of it changed."""
        known = self._setup.seen(session, payload)
        if self.session is None and self._silent and known.session_id:
            self.session = session  # a transcript that begins later
        if session != self.session:
            return ()
        facts = self._name(known)
        if self._turn == "settling" and payload.get("running") is False:
            return *facts, *self.idle()
        return *facts, *self.next()

    def turn_started(self) -> tuple[Step, ...]:
        """A turn begins: ours, or one that reports what was done in the background."""
        if self._turn != "asked":
            self.reports.begun()
        self._turn = "running"
        return *self._name(self._setup.known), *self._catch_up()

    def turn_over(self) -> None:
        """The closing message was seen; Hermes is not idle yet."""
        self._turn, self._interrupt_due = "settling", False
        self._prompts.extendleft(reversed(self._steering.undelivered()))

    def failed(self) -> tuple[Effect, ...]:
        """`error`: Hermes could not do something. Says nothing more where no turn had begun."""
        if self.session is None or not self._setup.is_built(self.session):
            return self._hang_up()
        was_asked = self._turn == "asked"
        self.turn_over()
        return self.idle() if was_asked else ()

    def idle(self) -> tuple[Effect, ...]:
        """Hermes takes prompts again."""
        self._turn = "none"
        return self.next()

    def tool_ended(self) -> None:
        """Messages for the turn are put behind the results of tools."""
        self._steering.delivered()

    def overheard(self, method: str) -> None:
        """Another client asks something."""
        self._is_forking = self._is_forking or method == "session.branch"

    # -- inside

    def _opened(self, asked: PendingRequest, fields: Mapping[str, Any]) -> tuple[Step, ...]:
        session = text(fields.get("session_id"))
        if not session:
            return TurnFailed(failure_of("hermes opened no session")), *self._hang_up()
        if asked.method == "session.resume" and self._context.fork_session_id is not None and not self._silent:
            self._setup.prior_turns = prompts_in(fields)
            branch = self._ask("session.branch", {"session_id": session})
            return Ignored(_response(asked), "the session that is forked"), branch
        self.session = session
        known = self._setup.opened(asked.method, fields, mapping(asked.params))
        if self._silent and asked.method == "session.resume":
            return (Ignored(_response(asked), "the session is told when it is used"),)  # it may be for a fork
        self._is_forking = False
        steps: tuple[Step, ...] = (*self._name(known), *self._setup_steps(), *self.next())
        return steps or (Ignored(_response(asked), "opened before"),)

    def _name(self, known: SessionKnown) -> tuple[Fact, ...]:
        if self._known == known or not known.session_id or self._is_forking:
            return ()
        self._known = known
        return (known,)

    def _setup_steps(self) -> tuple[Effect, ...]:
        if self._silent or self.session is None:
            return ()
        return tuple(self._ask(method, params) for method, params in self._setup.early(self.session))

    def _said_of(self, asked: PendingRequest, fields: Mapping[str, Any]) -> Fact:
        match asked.method:
            case "image.attach" | "image.attach_bytes":
                return ImageTaken(mime_type_of(text(fields.get("name"))))
            case "config.set" if text(fields.get("warning")):
                return Note(text(fields["warning"]), "warn")
        return Ignored(_response(asked), "the events tell what comes of it")

    def _go_on(self, asked: PendingRequest) -> tuple[Step, ...]:
        self._setup.done(asked.method)
        return self.next()

    def _steer_failed(self) -> tuple[Step, ...]:
        said = self._steering.refused()
        return self.send(said) if said and not self._silent and not self._closed else ()

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def next(self) -> tuple[Effect, ...]:
        """What makes the session ready, the next prompt, or the end, if it is time for one of them."""
        if self._silent or self._closed or self.session is None or self._turn != "none":
            return ()
        if not self._setup.is_ready(self.session):
            request = self._setup.next(self.session)
            return (self._ask(*request),) if request is not None else ()
        if self._prompts:
            self._turn, self._stopping = "asked", self._interrupt_due
            return (self._ask("prompt.submit", {"session_id": self.session, "text": self._prompts.popleft()}),)
        is_over = self._closing and (self._stopping or not self.reports)
        return self._leave() if is_over else ()

    def _leave(self) -> tuple[Effect, ...]:
        if not self._context.no_session or self.session is None:
            return self._hang_up()
        self._closed = True
        return (self._ask("session.close", {"session_id": self.session}),)

    def _forget_session(self, asked: PendingRequest) -> tuple[Effect, ...]:
        stored = self._known.session_id if self._known is not None and asked.method == "session.close" else ""
        return (self._ask("session.delete", {"session_id": stored}),) if stored else self._hang_up()

    def _hang_up(self) -> tuple[Effect, ...]:
        if self._silent:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _catch_up(self) -> tuple[Effect, ...]:
        """Say what had to wait for the turn to run."""
        if self._silent or self.session is None or self._turn != "running":
            return ()
        there = {"session_id": self.session}
        effects = [self._ask("session.steer", {**there, "text": said}) for said in self._steering.to_say()]
        if self._interrupt_due:
            self._interrupt_due = False
            effects.append(self._ask("session.interrupt", there))
        return tuple(effects)


def _response(asked: PendingRequest) -> str:
    return f"response:{asked.method}"
