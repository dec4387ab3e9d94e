"""Our side of the app-server protocol: the handshake, one prompt after the other, and when to end its input.

    us                                     app-server
    initialize                    ->
                                  <-       its result
    initialized, thread/start     ->
                                  <-       the thread
    turn/start                    ->
                                  <-       its result, turn/started ... turn/completed
    turn/start, or end of input   ->

The end of input terminates the process at once, even in mid turn: it must wait until no turn runs.
"""

from typing import Any, Literal

from msgspec.structs import replace

from agent_mux.sdk.codec import Accept, CloseStdin, CodecContext, CodecOutput, Effect, WriteStdin
from agent_mux.sdk.facts import Fact, Failure, Ignored, Note, SessionKnown, TurnFailed
from agent_mux.sdk.options import ApprovalMode
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters.codex.outcome import error_code_of, session_error_code_of
from agent_mux_adapters.codex.requests import (
    collaboration,
    initialize_params,
    permission_overrides,
    thread_request,
    turn_params,
)


class CodexTurns(PromptQueue):
    """The turns of a run: prompts, steering messages and interruptions. An observed run sends nothing."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient) -> None:
        super().__init__("codex", interactive=context.interactive)
        self._context = context
        self._rpc = rpc
        self._is_observed = context.prompt is None
        """Whether another client runs the app-server and we only read its transcript."""
        self._thread_id: str | None = None
        self._model: str | None = None
        self._overrides: dict[str, Any] = {}
        """Changes of the settings of the thread, which the next turn brings into effect."""
        self._turn: Literal["none", "asked", "running"] = "none"
        self._turn_id: str | None = None
        self._finished_turns: set[str] = set()
        self._to_steer: list[str] = []
        """Messages for the turn, to be sent when it runs."""
        self._unanswered_steers = 0
        self._interrupt_due = False
        """Whether to interrupt the turn as soon as it runs."""
        self._stopping = False
        """Whether the current turn was interrupted: then sub-agents are not waited for."""
        self._busy_subagents: set[str] = set()
        self._is_first = True
        """Whether the next prompt is the first one."""

    # -- actions of the consumer

    def start(self) -> tuple[CodecOutput, ...]:
        """Queue the prompt and begin the handshake."""
        if self._is_observed:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask("initialize", initialize_params()),)

    def steer(self, text: str) -> tuple[CodecOutput, ...]:
        """Send a message into the running turn; without a turn, send it as a prompt."""
        if self._turn == "none":
            return self.send(text)
        self._to_steer.append(text)
        return self._send_deferred()

    def set_model(self, model: str) -> tuple[CodecOutput, ...]:
        """Use another model from the next turn on."""
        self._context = replace(self._context, model=model)
        self._overrides |= {"model": model}
        return self._from_next_turn()

    def set_approval_mode(self, mode: ApprovalMode) -> tuple[CodecOutput, ...]:
        """Use another approval policy, sandbox and collaboration mode from the next turn on."""
        self._context = replace(self._context, approval_mode=mode)
        self._overrides |= permission_overrides(self._context)
        if mode != "plan":
            self._overrides |= collaboration("default", self._context, self._context.model or self._model)
        return self._from_next_turn()

    def _from_next_turn(self) -> tuple[CodecOutput, ...]:
        return () if self._turn == "none" else (Accept("queued"),)

    def interrupt(self) -> tuple[CodecOutput, ...]:
        """Interrupt the turn that runs or is about to run."""
        if self._turn == "none" and not self._prompts:
            return (Note("nothing to interrupt: codex waits for a prompt"),)
        self._interrupt_due = self._stopping = True
        return self._send_deferred()

    def cancel(self) -> tuple[CodecOutput, ...]:
        """Drop the queued prompts and interrupt the turn, because the run is aborted."""
        self._prompts.clear()
        self._closing = self._stopping = True
        return self.interrupt() if self._turn != "none" else self.next()

    # -- responses of the app-server

    def answered(self, asked: PendingRequest) -> tuple[CodecOutput, ...]:
        """Handle the result of one of our requests, except `thread/*`."""
        kind = f"response:{asked.method}"
        match asked.method:
            case "initialize" if not self._is_observed:
                method, params = thread_request(self._context)
                initialized = WriteStdin(self._rpc.notify("initialized"))
                return Ignored(kind, "the handshake continues"), initialized, self._ask(method, params)
            case "turn/steer":
                self._unanswered_steers -= 1
                return Ignored(kind, "the message is in the turn"), *self.next()
        return (Ignored(kind, "notifications report the outcome"),)

    def refused(self, asked: PendingRequest, error: RpcError) -> tuple[CodecOutput, ...]:
        """Handle the error response to one of our requests."""
        message = error.message
        match asked.method:
            case "initialize":
                return TurnFailed(Failure(error_code_of(message), message)), *self._end_input()
            case "thread/start" | "thread/resume" | "thread/fork":
                return TurnFailed(Failure(session_error_code_of(message), message)), *self._end_input()
            case "turn/start":
                return TurnFailed(Failure(error_code_of(message), message)), *self.turn_over(None)
            case "turn/steer":
                return self._steer_refused(asked, message)
        return (Note(f"codex refused {asked.method}: {message}", "warn"),)

    def opened(self, known: SessionKnown) -> tuple[CodecOutput, ...]:
        """Record the thread that was opened, and send the first prompt."""
        self._thread_id, self._model = known.session_id, known.model
        return known, *self.next()

    # -- notifications of the app-server

    def turn_started(self, turn_id: str) -> tuple[CodecOutput, ...]:
        """Handle `turn/started` and send what waits for it.

        The result of `turn/start` has the turn's id before, but Codex takes no requests for the turn until now.
        """
        if turn_id in self._finished_turns:
            return ()
        self._turn, self._turn_id = "running", turn_id
        return self._send_deferred()

    def turn_over(self, turn_id: str | None) -> tuple[Effect, ...]:
        """Handle the end of a turn. `turn_id`: None when the turn could not begin."""
        if turn_id is not None:
            if turn_id in self._finished_turns or (self._turn_id is not None and turn_id != self._turn_id):
                return ()
            self._finished_turns.add(turn_id)
        self._turn, self._turn_id, self._interrupt_due = "none", None, False
        self._prompts.extendleft(reversed(self._to_steer))
        self._to_steer.clear()
        return self.next()

    def set_subagent_busy(self, thread_id: str, *, busy: bool) -> tuple[Effect, ...]:
        """Record whether a sub-agent works. The input stays open while one does."""
        if busy:
            self._busy_subagents.add(thread_id)
            return ()
        self._busy_subagents.discard(thread_id)
        return self.next()

    def next(self) -> tuple[Effect, ...]:
        """Return the next prompt or the end of input, when it is time for one of them."""
        if self._is_observed or self._closed or self._thread_id is None or self._turn != "none":
            return ()
        if self._prompts:
            with_images, self._is_first = self._is_first, False
            self._turn, self._stopping = "asked", self._interrupt_due
            text = self._prompts.popleft()
            params = turn_params(
                self._context, self._thread_id, text, with_images=with_images, model=self._context.model or self._model
            )
            overrides, self._overrides = self._overrides, {}
            return (self._ask("turn/start", {**overrides, **params}),)
        is_waiting = bool(self._unanswered_steers) or (bool(self._busy_subagents) and not self._stopping)
        return self._end_input() if self._closing and not is_waiting else ()

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def _end_input(self) -> tuple[Effect, ...]:
        if self._is_observed or self._closed:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _send_deferred(self) -> tuple[Effect, ...]:
        """Send the steering messages and the interruption that waited for the turn to run."""
        if self._is_observed or self._turn_id is None or self._thread_id is None:
            return ()
        turn = {"threadId": self._thread_id}
        effects: list[Effect] = []
        for text in self._to_steer:
            self._unanswered_steers += 1
            message = {"expectedTurnId": self._turn_id, "input": [{"type": "text", "text": text}]}
            effects.append(self._ask("turn/steer", {**turn, **message}))
        self._to_steer.clear()
        if self._interrupt_due:
            self._interrupt_due = False
            effects.append(self._ask("turn/interrupt", {**turn, "turnId": self._turn_id}))
        return tuple(effects)

    def _steer_refused(self, asked: PendingRequest, message: str) -> tuple[CodecOutput, ...]:
        """Make a refused steering message the next prompt: the turn is over, or takes no messages."""
        self._unanswered_steers = max(self._unanswered_steers - 1, 0)
        facts: tuple[Fact, ...] = (Note(f"codex did not add the message to the turn: {message}", "warn"),)
        parts = asked.params.get("input") if isinstance(asked.params, dict) else None
        if not self._is_observed and isinstance(parts, list):
            self._prompts.appendleft(parts[0]["text"])
        return *facts, *self.next()
