"""Our side of a conversation with the headless runtime: handshake, prompts one after the other, and when to hang up.

    us                                     copilot
    connect                       ->
                                  <-       its answer
    session.create                ->                        (or .resume; a fork is made first, then resumed)
                                  <-       the session
    what needs no permission      ->
    session.send                  ->
                                  <-       a message id, then user.message ... assistant.idle, session.idle
    session.send, or end of input ->

The end of our input ends the process at once, whatever it does: it must not come before `session.idle`, which waits for
commands and sub-agents in the background.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Failure, Ignored, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.copilot.failures import code_of
from agent_mux_adapters.copilot.requests import DECISION, Requests
from agent_mux_adapters.copilot.settings import (
    extended,
    permission_request,
    prompt_params,
    session_params,
    with_images,
)

PROTOCOL = 3
OPENING = frozenset({"session.create", "session.resume"})
_HANDSHAKE = OPENING | {"connect", "sessions.fork"}


class Conversation(PromptQueue):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient, requests: Requests) -> None:
        super().__init__("copilot", interactive=context.interactive)
        self._context = with_images(extended(context))
        self._rpc = rpc
        self._requests = requests
        self._silent = context.prompt is None
        self._session_id: str | None = None
        self._first = True
        self._sent = 0
        """Prompts that have no answer yet."""
        self._accepted: set[str] = set()
        """Messages that Copilot took and did not show to the model yet."""
        self._shown: set[str] = set()
        self._working = False
        """The main agent is in a turn."""
        self._at_rest = True
        """Nothing goes on in the background."""
        self._forks: dict[str, str] = {}
        """Session -> the one it was forked from."""
        self._interrupt_due = False
        self._stopping = False

    # -- what a consumer wants

    def start(self) -> tuple[Step, ...]:
        """The process runs."""
        if self._silent:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask("connect", {}),)

    def steer(self, said: str) -> tuple[Step, ...]:
        """A message for the turn that runs. While the model only talks it is taken up after what it says."""
        if self._session_id is None or not self._is_busy or self._closed:
            return self.send(said)
        self._sent += 1
        return (self._ask("session.send", {"sessionId": self._session_id, "prompt": said, "mode": "immediate"}),)

    def interrupt(self) -> tuple[Step, ...]:
        """Stop the turn that runs, or is about to."""
        if not self._is_busy and not self._prompts:
            return (Note("nothing to interrupt: copilot waits for a prompt"),)
        self._interrupt_due = self._stopping = True
        return self._stop()

    def cancel(self) -> tuple[Step, ...]:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = self._stopping = True
        return self.interrupt() if self._is_busy else self.next()

    # -- what the runtime answers

    def answered(self, asked: PendingRequest, result: Any) -> tuple[Step, ...]:  # noqa: PLR0911  # a table
        """One of our requests succeeded."""
        kind, said = f"response:{asked.method}", mapping(result)
        if asked.method in OPENING:
            return self._opened(asked, said)
        if asked.method == "sessions.fork":
            self._forks[text(said.get("sessionId"))] = text(mapping(asked.params).get("sessionId"))
        if self._silent:
            return (Ignored(kind, "the events tell what comes of it"),)
        match asked.method:
            case "connect":
                return *self._greeted(said), self._open()
            case "sessions.fork":
                return Ignored(kind, "the session is resumed next"), self._resume(text(said.get("sessionId")))
            case "session.send":
                self._sent = max(self._sent - 1, 0)
                message = text(said.get("messageId"))
                if message and message not in self._shown:
                    self._accepted.add(message)
                return Ignored(kind, "the events tell what comes of it"), *self.next()
            case "sessions.delete":
                return Ignored(kind, "nothing of the session is left"), *self._end_input()
        return (Ignored(kind, "the events tell what comes of it"),)

    def refused(self, asked: PendingRequest, error: RpcError) -> tuple[Step, ...]:
        """One of our requests failed."""
        message = error.message
        if asked.method in _HANDSHAKE:
            return TurnFailed(Failure(code_of(message), message)), *self._end_input()
        if asked.method == "session.send":
            self._sent = max(self._sent - 1, 0)
            return TurnFailed(Failure(code_of(message), message)), *self.next()
        if asked.method == DECISION:
            return (Note(f"copilot did not take the decision: {message}", "warn"),)
        note = Note(f"copilot refused {asked.method}: {message}", "warn")
        return (note, *self._end_input()) if asked.method == "sessions.delete" else (note, *self.next())

    # -- what the session tells

    def prompted(self, data: Mapping[str, Any]) -> tuple[Step, ...]:
        """`user.message` of the main agent: the model is shown a message."""
        message = text(data.get("messageId"))
        self._shown.add(message)
        self._accepted.discard(message)
        return self.works()

    def works(self) -> tuple[Step, ...]:
        """The main agent does something."""
        self._working, self._at_rest = True, False
        return self._stop()

    def failed(self, data: Mapping[str, Any]) -> tuple[Step, ...]:
        """`session.error`: a message may have been refused before the model was shown it."""
        self._accepted.discard(text(data.get("originatingMessageId")))
        return ()

    def handed_back(self) -> tuple[Step, ...]:
        """`assistant.idle`."""
        self._working, self._interrupt_due = False, False
        return self.next()

    def rests(self) -> tuple[Step, ...]:
        """`session.idle`: whatever was accepted is done."""
        self._working, self._at_rest = False, True
        self._accepted.clear()
        return self.next()

    # -- inside

    @property
    def _is_busy(self) -> bool:
        return self._working or bool(self._sent) or bool(self._accepted)

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def _greeted(self, said: Mapping[str, Any]) -> tuple[Step, ...]:
        version = said.get("protocolVersion")
        if version == PROTOCOL:
            return (Ignored("response:connect", "the handshake goes on"),)
        return (Note(f"copilot speaks version {version} of its protocol; we know version {PROTOCOL}", "warn"),)

    def _open(self) -> WriteStdin:
        context = self._context
        if context.fork_session_id is not None:
            return self._ask("sessions.fork", {"sessionId": context.fork_session_id})
        if context.session_id is not None:
            return self._resume(context.session_id)
        return self._ask("session.create", session_params(context))

    def _resume(self, session_id: str) -> WriteStdin:
        return self._ask("session.resume", {"sessionId": session_id, **session_params(self._context)})

    def _opened(self, asked: PendingRequest, said: Mapping[str, Any]) -> tuple[Step, ...]:
        session_id = text(said.get("sessionId"))
        if not session_id:
            return self.refused(asked, RpcError(0, "copilot opened no session"))
        forked_from = self._forks.get(session_id)
        known = SessionKnown(
            session_id,
            resumed=asked.method == "session.resume" and forked_from is None,
            forked_from=forked_from,
            model=text(mapping(said.get("modelState")).get("modelId")) or None,
        )
        if self._silent:
            return (known,)
        self._session_id = self._requests.session_id = session_id
        return known, self._ask(*permission_request(self._context, session_id)), *self.next()

    def next(self) -> tuple[Effect, ...]:
        """The next prompt, or the end of our input, if it is time for one of them."""
        if self._silent or self._closed or self._session_id is None or self._is_busy:
            return ()
        if self._prompts:
            is_first, self._first = self._first, False
            self._sent += 1
            self._at_rest, self._stopping = False, self._interrupt_due
            said = self._prompts.popleft()
            return (self._ask("session.send", prompt_params(self._context, self._session_id, said, is_first=is_first)),)
        return self._hang_up() if self._closing and (self._at_rest or self._stopping) else ()

    def _stop(self) -> tuple[Effect, ...]:
        """An abort that comes before the turn has begun would stop nothing."""
        if self._silent or not self._interrupt_due or not self._working or self._session_id is None:
            return ()
        self._interrupt_due = False
        return (self._ask("session.abort", {"sessionId": self._session_id}),)

    def _hang_up(self) -> tuple[Effect, ...]:
        if self._context.no_session and self._session_id is not None:
            self._closed = True
            return (self._ask("sessions.delete", {"sessionId": self._session_id}),)
        return self._end_input()

    def _end_input(self) -> tuple[Effect, ...]:
        if self._silent:
            return ()
        self._closed = True
        return (CloseStdin(),)
