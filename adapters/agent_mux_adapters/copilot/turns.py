"""Our side of the headless protocol: the handshake, one prompt after the other, and when to end the input.

    us                                     copilot
    connect                       ->
                                  <-       its result
    session.create                ->                        (or .resume; a fork is created first, then resumed)
                                  <-       the session
    session.permissions.*         ->
    session.send                  ->
                                  <-       a message id, then user.message ... assistant.idle, session.idle
    session.send, or end of input ->

The end of input terminates the process at once, even in mid turn: it must wait for `session.idle`, which waits for
commands and sub-agents in the background.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.codec import Accept, CloseStdin, CodecContext, CodecOutput, Effect, WriteStdin
from agent_mux.sdk.facts import Failure, Ignored, Note, SessionKnown, TurnFailed
from agent_mux.sdk.options import ApprovalMode
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND, JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text, version_fact
from agent_mux_adapters.copilot.approvals import DECISION, CopilotApprovals
from agent_mux_adapters.copilot.outcome import error_code_of
from agent_mux_adapters.copilot.requests import (
    PERMISSIONS,
    headless_context,
    permission_requests,
    prompt_params,
    session_params,
    with_images,
)

PROTOCOL_VERSION = 3
OPENING = frozenset({"session.create", "session.resume"})
_HANDSHAKE = OPENING | {"connect", "sessions.fork"}


class CopilotTurns(PromptQueue):
    """The turns of a run: prompts, steering messages and interruptions. An observed run sends nothing."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient, approvals: CopilotApprovals) -> None:
        super().__init__("copilot", interactive=context.interactive)
        self._context = with_images(headless_context(context))
        self._rpc = rpc
        self._approvals = approvals
        self._is_observed = context.prompt is None
        """Whether another client runs Copilot and we only read its transcript."""
        self._session_id: str | None = None
        self._is_first = True
        """Whether the next prompt is the first one."""
        self._unanswered = 0
        """How many messages were sent and have no response yet."""
        self._accepted: set[str] = set()
        """The messages that Copilot accepted and did not show to the model yet."""
        self._shown: set[str] = set()
        """The messages that the model got."""
        self._working = False
        """Whether the main agent is in a turn."""
        self._is_idle = True
        """Whether nothing runs, in the background either."""
        self._forks: dict[str, str] = {}
        """The origin of each fork."""
        self._interrupt_due = False
        """Whether to abort the turn as soon as it runs."""
        self._stopping = False
        """Whether the current turn was interrupted: then the background is not waited for."""

    # -- actions of the consumer

    def start(self) -> tuple[CodecOutput, ...]:
        """Queue the prompt and begin the handshake."""
        if self._is_observed:
            return ()
        self._queue(self._context.prompt or "")
        return (self._ask("connect", {}),)

    def steer(self, message: str) -> tuple[CodecOutput, ...]:
        """Send a message into the running turn. If the model calls no tool, it gets the message after its answer."""
        if self._session_id is None or not self._is_busy or self._closed:
            return self.send(message)
        self._unanswered += 1
        return (self._ask("session.send", {"sessionId": self._session_id, "prompt": message, "mode": "immediate"}),)

    def set_model(self, model: str) -> tuple[CodecOutput, ...]:
        """Use another model, which Copilot does between two model calls."""
        if self._session_id is None or self._is_observed or self._closed:
            return super().set_model(model)
        self._context = replace(self._context, model=model)
        return (self._ask("session.model.switchTo", {"sessionId": self._session_id, "modelId": model}),)

    def set_approval_mode(self, mode: ApprovalMode) -> tuple[CodecOutput, ...]:
        """Use another agent mode from the next prompt on. A session that allows everything does not begin to ask."""
        asks = mode in {"prompt", "deny"}
        if self._session_id is None or self._is_observed or self._closed or (asks and self._context.approves_all):
            return super().set_approval_mode(mode)
        self._context = replace(self._context, approval_mode=mode, leaves_plan=mode != "plan")
        return (Accept("queued"),) if self._is_busy else ()

    def interrupt(self) -> tuple[CodecOutput, ...]:
        """Abort the turn that runs or is about to run."""
        if not self._is_busy and not self._prompts:
            return (Note("nothing to interrupt: copilot waits for a prompt"),)
        self._interrupt_due = self._stopping = True
        return self._abort_if_due()

    def cancel(self) -> tuple[CodecOutput, ...]:
        """Drop the queued prompts and abort the turn, because the run is aborted."""
        self._prompts.clear()
        self._closing = self._stopping = True
        return self.interrupt() if self._is_busy else self.next()

    # -- responses of the runtime

    def answered(self, asked: PendingRequest, result: Any) -> tuple[CodecOutput, ...]:  # noqa: PLR0911  # a table
        """Handle the result of one of our requests."""
        kind, fields = f"response:{asked.method}", mapping(result)
        if asked.method in OPENING:
            return self._opened(asked, fields)
        if asked.method == "sessions.fork":
            self._forks[text(fields.get("sessionId"))] = text(mapping(asked.params).get("sessionId"))
        if self._is_observed:
            return (Ignored(kind, "events report the outcome"),)
        match asked.method:
            case "connect":
                return *version_fact(fields.get("version")), *self._connected(fields), self._open()
            case "sessions.fork":
                return Ignored(kind, "the session is resumed next"), self._resume(text(fields.get("sessionId")))
            case "session.send":
                self._unanswered = max(self._unanswered - 1, 0)
                message = text(fields.get("messageId"))
                if message and message not in self._shown:
                    self._accepted.add(message)
                return Ignored(kind, "events report the outcome"), *self.next()
            case "sessions.delete":
                return Ignored(kind, "the session is deleted"), *self._end_input()
        return (Ignored(kind, "events report the outcome"),)

    def refused(self, asked: PendingRequest, error: RpcError) -> tuple[CodecOutput, ...]:
        """Handle the error response to one of our requests."""
        message = error.message
        if asked.method == "connect" and error.code == METHOD_NOT_FOUND:
            without = Ignored("response:connect", "a release without this handshake")
            return (without,) if self._is_observed else (without, self._open())
        if asked.method in _HANDSHAKE:
            return TurnFailed(Failure(error_code_of(message), message)), *self._end_input()
        if asked.method == "session.send":
            self._unanswered = max(self._unanswered - 1, 0)
            return TurnFailed(Failure(error_code_of(message), message)), *self.next()
        if asked.method == DECISION:
            return (Note(f"copilot refused the decision: {message}", "warn"),)
        if asked.method.startswith(PERMISSIONS) and error.code == METHOD_NOT_FOUND:
            return Note(f"copilot has no {asked.method}: each of its requests is answered instead"), *self.next()
        note = Note(f"copilot refused {asked.method}: {message}", "warn")
        return (note, *self._end_input()) if asked.method == "sessions.delete" else (note, *self.next())

    # -- events of the main agent

    def message_shown(self, data: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Handle `user.message`: the model got a message."""
        message = text(data.get("messageId"))
        self._shown.add(message)
        self._accepted.discard(message)
        return self.model_call_started()

    def model_call_started(self) -> tuple[CodecOutput, ...]:
        """Handle `assistant.turn_start`: the main agent works, so a due interruption can be sent."""
        self._working, self._is_idle = True, False
        return self._abort_if_due()

    def failed(self, data: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Handle `session.error`, which can refuse a message before the model gets it."""
        self._accepted.discard(text(data.get("originatingMessageId")))
        return ()

    def turn_over(self) -> tuple[CodecOutput, ...]:
        """Handle `assistant.idle`: the main agent has ended its turn."""
        self._working, self._interrupt_due = False, False
        return self.next()

    def session_idle(self) -> tuple[CodecOutput, ...]:
        """Handle `session.idle`: all accepted messages are done, and nothing runs in the background."""
        self._working, self._is_idle = False, True
        self._accepted.clear()
        return self.next()

    # -- the session

    def _connected(self, fields: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        version = fields.get("protocolVersion")
        if version == PROTOCOL_VERSION:
            return (Ignored("response:connect", "the handshake continues"),)
        return (
            Note(
                f"copilot uses version {version} of its protocol; agent-mux supports version {PROTOCOL_VERSION}", "warn"
            ),
        )

    def _open(self) -> WriteStdin:
        context = self._context
        if context.fork_session_id is not None:
            return self._ask("sessions.fork", {"sessionId": context.fork_session_id})
        if context.session_id is not None:
            return self._resume(context.session_id)
        return self._ask("session.create", session_params(context))

    def _resume(self, session_id: str) -> WriteStdin:
        return self._ask("session.resume", {"sessionId": session_id, **session_params(self._context)})

    def _opened(self, asked: PendingRequest, fields: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        session_id = text(fields.get("sessionId"))
        if not session_id:
            return self.refused(asked, RpcError(0, "copilot opened no session"))
        forked_from = self._forks.get(session_id)
        known = SessionKnown(
            session_id,
            resumed=asked.method == "session.resume" and forked_from is None,
            forked_from=forked_from,
            model=text(mapping(fields.get("modelState")).get("modelId")) or None,
        )
        if self._is_observed:
            return (known,)
        self._session_id = self._approvals.session_id = session_id
        permissions = [self._ask(*request) for request in permission_requests(self._context, session_id)]
        return known, *permissions, *self.next()

    # -- prompts and the end of input

    def next(self) -> tuple[Effect, ...]:
        """Return the next prompt or the end of input, when it is time for one of them."""
        if self._is_observed or self._closed or self._session_id is None or self._is_busy:
            return ()
        if self._prompts:
            is_first, self._is_first = self._is_first, False
            self._unanswered += 1
            self._is_idle, self._stopping = False, self._interrupt_due
            params = prompt_params(self._context, self._session_id, self._prompts.popleft(), is_first=is_first)
            return (self._ask("session.send", params),)
        return self._leave() if self._closing and (self._is_idle or self._stopping) else ()

    @property
    def _is_busy(self) -> bool:
        return self._working or bool(self._unanswered) or bool(self._accepted)

    def _ask(self, method: str, params: dict[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, params))

    def _abort_if_due(self) -> tuple[Effect, ...]:
        """Send a due interruption once the turn has begun: before that it would have no effect."""
        if self._is_observed or not self._interrupt_due or not self._working or self._session_id is None:
            return ()
        self._interrupt_due = False
        return (self._ask("session.abort", {"sessionId": self._session_id}),)

    def _leave(self) -> tuple[Effect, ...]:
        """Delete the session if the run must not store one, else end the input."""
        if self._context.no_session and self._session_id is not None:
            self._closed = True
            return (self._ask("sessions.delete", {"sessionId": self._session_id}),)
        return self._end_input()

    def _end_input(self) -> tuple[Effect, ...]:
        if self._is_observed:
            return ()
        self._closed = True
        return (CloseStdin(),)
