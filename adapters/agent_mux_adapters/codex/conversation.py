"""Our side of a conversation with the app-server: handshake, prompts one after the other, and when to hang up.

    us                                     app-server
    initialize                    ->
                                  <-       its answer
    initialized, thread/start     ->
                                  <-       the thread
    turn/start                    ->
                                  <-       its answer, turn/started ... turn/completed
    turn/start, or end of input   ->

The end of our input ends the process at once, whatever it does: it must not come in mid turn.
"""

from typing import Any, Literal

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Fact, Failure, Ignored, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters.codex.failures import code_of, session_code_of
from agent_mux_adapters.codex.settings import initialize_params, thread_request, turn_params


class Conversation(PromptQueue):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient) -> None:
        super().__init__("codex", interactive=context.interactive)
        self._context = context
        self._rpc = rpc
        self._silent = context.prompt is None
        self._thread_id: str | None = None
        self._turn: Literal["none", "asked", "running"] = "none"
        self._turn_id: str | None = None
        self._over: set[str] = set()
        self._to_steer: list[str] = []
        self._steering = 0
        self._interrupt_due = False
        self._stopping = False
        self._inside: set[str] = set()
        self._first = True

    # -- what a consumer wants

    def start(self) -> tuple[Step, ...]:
        """The process runs."""
        if self._silent:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask("initialize", initialize_params()),)

    def steer(self, text: str) -> tuple[Step, ...]:
        """A message for the turn that runs; without one it is a prompt."""
        if self._turn == "none":
            return self.send(text)
        self._to_steer.append(text)
        return self._catch_up()

    def interrupt(self) -> tuple[Step, ...]:
        """Stop the turn that runs, or is about to."""
        if self._turn == "none" and not self._prompts:
            return (Note("nothing to interrupt: codex waits for a prompt"),)
        self._interrupt_due = self._stopping = True
        return self._catch_up()

    def cancel(self) -> tuple[Step, ...]:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = self._stopping = True
        return self.interrupt() if self._turn != "none" else self.next()

    # -- what the app-server answers

    def answered(self, asked: PendingRequest) -> tuple[Step, ...]:
        """One of our requests succeeded, `thread/*` apart."""
        kind = f"response:{asked.method}"
        match asked.method:
            case "initialize" if not self._silent:
                method, params = thread_request(self._context)
                return Ignored(kind, "the handshake goes on"), self._hello(), self._ask(method, params)
            case "turn/steer":
                self._steering -= 1
                return Ignored(kind, "the message is in the turn"), *self.next()
        return (Ignored(kind, "the notifications tell what comes of it"),)

    def refused(self, asked: PendingRequest, error: RpcError) -> tuple[Step, ...]:
        """One of our requests failed."""
        message = error.message
        match asked.method:
            case "initialize":
                return TurnFailed(Failure(code_of(message), message)), *self._hang_up()
            case "thread/start" | "thread/resume" | "thread/fork":
                return TurnFailed(Failure(session_code_of(message), message)), *self._hang_up()
            case "turn/start":
                return TurnFailed(Failure(code_of(message), message)), *self.turn_over(None)
            case "turn/steer":
                return self._steer_again(asked, message)
        return (Note(f"codex refused {asked.method}: {message}", "warn"),)

    def opened(self, known: SessionKnown) -> tuple[Step, ...]:
        """The thread is there."""
        self._thread_id = known.session_id
        return known, *self.next()

    # -- what the app-server tells

    def turn_started(self, turn_id: str) -> tuple[Step, ...]:
        """The turn runs. Its id was known from the answer to `turn/start`, but it takes no orders before this."""
        if turn_id in self._over:
            return ()
        self._turn, self._turn_id = "running", turn_id
        return self._catch_up()

    def turn_over(self, turn_id: str | None) -> tuple[Effect, ...]:
        """A turn ended, or could not begin (None)."""
        if turn_id is not None:
            if turn_id in self._over or (self._turn_id is not None and turn_id != self._turn_id):
                return ()
            self._over.add(turn_id)
        self._turn, self._turn_id, self._interrupt_due = "none", None, False
        self._prompts.extendleft(reversed(self._to_steer))
        self._to_steer.clear()
        return self.next()

    def inside(self, thread_id: str, *, busy: bool) -> tuple[Effect, ...]:
        """A sub-agent works, or is done: we do not hang up on it."""
        if busy:
            self._inside.add(thread_id)
            return ()
        self._inside.discard(thread_id)
        return self.next()

    # -- inside

    def _hello(self) -> WriteStdin:
        return WriteStdin(self._rpc.notify("initialized"))

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def next(self) -> tuple[Effect, ...]:
        """The next prompt, or the end of our input, if it is time for one of them."""
        if self._silent or self._closed or self._thread_id is None or self._turn != "none":
            return ()
        if self._prompts:
            with_images, self._first = self._first, False
            self._turn, self._stopping = "asked", self._interrupt_due
            text = self._prompts.popleft()
            return (
                self._ask("turn/start", turn_params(self._context, self._thread_id, text, with_images=with_images)),
            )
        is_waited_for = bool(self._steering) or (bool(self._inside) and not self._stopping)
        return self._hang_up() if self._closing and not is_waited_for else ()

    def _hang_up(self) -> tuple[Effect, ...]:
        if self._silent or self._closed:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _catch_up(self) -> tuple[Effect, ...]:
        """Say what had to wait for the turn to run."""
        if self._silent or self._turn_id is None or self._thread_id is None:
            return ()
        turn = {"threadId": self._thread_id}
        effects: list[Effect] = []
        for text in self._to_steer:
            self._steering += 1
            message = {"expectedTurnId": self._turn_id, "input": [{"type": "text", "text": text}]}
            effects.append(self._ask("turn/steer", {**turn, **message}))
        self._to_steer.clear()
        if self._interrupt_due:
            self._interrupt_due = False
            effects.append(self._ask("turn/interrupt", {**turn, "turnId": self._turn_id}))
        return tuple(effects)

    def _steer_again(self, asked: PendingRequest, message: str) -> tuple[Step, ...]:
        """The turn was over, or takes no messages: what was to be said in it is the next prompt."""
        self._steering = max(self._steering - 1, 0)
        facts: tuple[Fact, ...] = (Note(f"codex did not take the message into the turn: {message}", "warn"),)
        parts = asked.params.get("input") if isinstance(asked.params, dict) else None
        if not self._silent and isinstance(parts, list):
            self._prompts.appendleft(parts[0]["text"])
        return *facts, *self.next()
