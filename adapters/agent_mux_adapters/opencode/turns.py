"""The session, its prompts and its turns: what is sent when, when a turn begins and ends, and how it ended.

    us                                       the bridge
                                        <-   server.connected
    GET /mcp, POST /session             ->
                                        <-   the responses
    POST /session/<id>/prompt_async     ->
                                        <-   its response, session.status busy ... idle
    the next prompt, or end of input    ->

The response to a prompt comes before the session starts its turn, so messages and interrupts wait until it is busy. A
turn is over when `session.status` is `idle`. After a model call that failed or was stopped, `idle` comes once too
early: the session has not completed the answer yet, and reports `idle` again.
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, unquote

from msgspec.structs import replace

from agent_mux.sdk.codec import Accept, CloseStdin, CodecContext, CodecOutput, Effect, Refuse, WriteStdin
from agent_mux.sdk.facts import (
    Fact,
    Failure,
    Ignored,
    Note,
    RateLimited,
    RecoverableError,
    Retrying,
    SessionKnown,
    TurnBegin,
    TurnFailed,
    TurnStopped,
)
from agent_mux.sdk.options import ApprovalMode
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.stop_reasons import answered
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text, version_fact, whole
from agent_mux_adapters.opencode.approvals import OpencodeApprovals
from agent_mux_adapters.opencode.messages import OpencodeMessage, OpencodeSession
from agent_mux_adapters.opencode.outcome import code_of, failure_of, is_abort, is_overflow
from agent_mux_adapters.opencode.requests import (
    OpencodeRequests,
    SentRequest,
    create_body,
    prompt_body,
    session_in,
)
from agent_mux_adapters.opencode.subagents import OpencodeSessions
from agent_mux_adapters.opencode.tools import McpToolNames
from agent_mux_adapters.opencode.wire import delay_until

_OK = range(200, 300)
_NOT_FOUND = 404
_SESSION_IDS = "ses"
"""Prefix of session ids; the server fails on an id without it."""
_KIND = "session.status"
MAX_RETRIES = 5
"""OpenCode's own limit, which it does not report."""
_UNFINISHED = ("", "tool-calls")
_MAX_USELESS_COMPACTIONS = 2
"""Compactions in a row after which the context is still too long; OpenCode itself would continue forever."""


class OpencodeConversation(PromptQueue):
    """Our side: the session, the waiting prompts, and the state of the turn. Sends nothing when it only observes."""

    def __init__(self, context: CodecContext, server_requests: OpencodeRequests, names: McpToolNames) -> None:
        super().__init__("opencode", interactive=context.interactive)
        self._context = context
        self._server_requests = server_requests
        self._names = names
        self.is_observer = context.prompt is None
        self.sees_requests = not self.is_observer
        """Whether the client's requests are known: our own ones, or those in a transcript of both sides."""
        self.session_id: str | None = None
        self._turn: Literal["none", "asked", "running"] = "none"
        self._unconfirmed_messages = 0
        """Number of messages that were sent into the running turn and are not in the session yet."""
        self._waiting_messages: list[str] = []
        self._interrupt_due = False
        self.was_stopped = False
        """Whether an abort was sent in this turn."""
        self._is_first_prompt = True
        self._initial_mode = context.approval_mode
        self._agent_name = "plan" if context.approval_mode == "plan" else None
        """The agent that the prompts are for; None: the default one."""

    @property
    def expects_turn(self) -> bool:
        """Whether a prompt was sent whose turn has not begun."""
        return self._turn == "asked"

    # -- actions of the consumer

    def start(self) -> tuple[CodecOutput, ...]:
        """Queue the first prompt; the first event shows when the server listens."""
        if not self.is_observer:
            self._queue(self._context.prompt or "")
        return ()

    def steer(self, text: str) -> tuple[CodecOutput, ...]:
        """Send a message into the running turn; without one it becomes a prompt."""
        if self._turn == "none":
            return self.send(text)
        self._waiting_messages.append(text)
        return self._send_waiting()

    def set_model(self, model: str) -> tuple[CodecOutput, ...]:
        """Send the next prompts with another model."""
        if "/" not in model or self.is_observer or self._closed:
            message = f"opencode names models as provider/model; got {model!r}"
            return (Refuse("VALIDATION_ERROR", message),)
        self._context = replace(self._context, model=model)
        return self._with_next_prompt()

    def set_approval_mode(self, mode: ApprovalMode) -> tuple[CodecOutput, ...]:
        """Send the next prompts to another agent. The rules of the session stay those of the start of the run."""
        starts_asking = self._initial_mode in {"prompt", "deny"} or self._context.asks_everything
        if self.is_observer or self._closed or (mode != "plan" and not starts_asking):
            return super().set_approval_mode(mode)
        self._agent_name = "plan" if mode == "plan" else "build"
        return self._with_next_prompt()

    def _with_next_prompt(self) -> tuple[CodecOutput, ...]:
        return () if self._turn == "none" else (Accept("queued"),)

    def interrupt(self) -> tuple[CodecOutput, ...]:
        """Stop the turn that runs or is about to start."""
        if self._turn == "none" and not self._prompts:
            return (Note("nothing to interrupt: opencode is waiting for a prompt"),)
        self._interrupt_due = True
        return self._send_waiting()

    def cancel(self) -> tuple[CodecOutput, ...]:
        """Drop the waiting prompts, and abort the turn; closing stdin, which follows, ends everything else."""
        self._prompts.clear()
        self._closing = True
        abort = self.interrupt() if self._turn != "none" else ()
        return *abort, *self._delete_session()

    # -- events of the server

    def connected(self) -> tuple[Effect, ...]:
        """Ask for the MCP servers and the session: the server listens now."""
        if self.is_observer or self.session_id is not None:
            return ()
        return self._server_requests.send("mcp", "GET", "/mcp"), self._request_session()

    def session_busy(self) -> tuple[Effect, ...]:
        """Note that the turn runs, and send what waited for it."""
        if self._turn != "running":
            self._turn, self._unconfirmed_messages = "running", 0
        return self._send_waiting()

    def confirm_message(self) -> None:
        """Note that one of our messages arrived in the running turn."""
        self._unconfirmed_messages = max(self._unconfirmed_messages - 1, 0)

    def end_turn(self) -> tuple[Effect, ...]:
        """End the turn, and send the next prompt. A message that came too late starts a turn of its own."""
        self._turn = "asked" if self._unconfirmed_messages and not self.was_stopped else "none"
        self._unconfirmed_messages = 0
        self._prompts.extendleft(reversed(self._waiting_messages))
        self._waiting_messages.clear()
        self._interrupt_due = self.was_stopped = False
        return self.next()

    # -- responses of the server

    def read_answer(self, request: SentRequest, status: int, body: Any, error: str) -> tuple[CodecOutput, ...]:
        """Read the response to a request; `status` is 0 if the server did not respond."""
        kind = f"answer:{request.topic}"
        if status not in _OK:
            return self._request_refused(request, status, _message_of(body) or error or f"HTTP status {status}")
        match request.topic:
            case "mcp":
                return self._read_servers(kind, mapping(body))
            case "create" | "fork" | "open":
                return self._session_opened(request, mapping(body))
        return (Ignored(kind, "its effects are in the events"),)

    def observe(self, request: SentRequest) -> None:
        """Note a request of another client."""
        self.sees_requests = True
        if request.topic == "prompt" and self._turn == "none":
            self._turn = "asked"
        if request.topic == "abort" and session_in(request.path) == self.session_id:
            self.was_stopped = True

    def _request_refused(self, request: SentRequest, status: int, message: str) -> tuple[CodecOutput, ...]:
        match request.topic:
            case "create" | "fork" | "open" if self.session_id is None:
                return TurnFailed(_session_failure(request, status, message)), *self._close_stdin()
            case "prompt" if session_in(request.path) == self.session_id:
                return TurnFailed(Failure(code_of(message), message)), *self._drop_prompt()
            case "permission" | "question" if status == _NOT_FOUND:
                return (Ignored(f"answer:{request.topic}", "settled together with another request"),)
        return (Note(f"opencode refused {request.path}: {message}", "warn"),)

    def _drop_prompt(self) -> tuple[Effect, ...]:
        self._unconfirmed_messages = 0
        return self.end_turn() if self._turn == "asked" else ()

    def _read_servers(self, kind: str, servers: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        self._names.set_servers(servers)
        broken = {name: mapping(state) for name, state in servers.items() if mapping(state).get("status") == "failed"}
        notes = (
            Note(f"MCP server {name} does not work: {text(state.get('error'))}", "warn")
            for name, state in broken.items()
        )
        return tuple(notes) or (Ignored(kind, "the names of MCP servers, to recognize their tools"),)

    def _session_opened(self, request: SentRequest, session: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        session_id = text(session.get("id"))
        if not session_id or self.session_id is not None:
            return (Ignored(f"answer:{request.topic}", "a session of another run"),)
        self.session_id = session_id
        known = SessionKnown(
            session_id,
            resumed=request.topic == "open",
            forked_from=session_in(request.path) if request.topic == "fork" else None,
        )
        # A resumed session has the version that created it.
        version = () if request.topic == "open" else version_fact(session.get("version"))
        return *version, known, *self.next()

    # -- sending

    def _request_session(self) -> WriteStdin:
        context = self._context
        if context.session_id is not None:
            return self._server_requests.send("open", "GET", f"/session/{quote(context.session_id, safe='')}")
        if context.fork_session_id is not None:
            return self._server_requests.send(
                "fork", "POST", f"/session/{quote(context.fork_session_id, safe='')}/fork", {}
            )
        return self._server_requests.send("create", "POST", "/session", create_body(context))

    def next(self) -> tuple[Effect, ...]:
        """Send the next prompt, or close stdin after the last one; return nothing while a turn runs."""
        if self.is_observer or self._closed or self.session_id is None or self._turn != "none":
            return ()
        if self._prompts:
            self._turn = "asked"
            with_files, self._is_first_prompt = self._is_first_prompt, False
            return (self._prompt(self._prompts.popleft(), with_files=with_files),)
        return (*self._delete_session(), *self._close_stdin()) if self._closing else ()

    def _prompt(self, text: str, *, with_files: bool = False) -> WriteStdin:
        body = prompt_body(self._context, text, with_files=with_files, agent=self._agent_name)
        return self._server_requests.send("prompt", "POST", f"/session/{self.session_id}/prompt_async", body)

    def _send_waiting(self) -> tuple[Effect, ...]:
        """Send the messages and the interrupt that had to wait until the turn runs."""
        if self.is_observer or self._turn != "running":
            return ()
        messages = tuple(map(self._prompt, self._waiting_messages))
        self._unconfirmed_messages += len(messages)
        self._waiting_messages.clear()
        return (*messages, *self.abort()) if self._interrupt_due else messages

    def abort(self) -> tuple[Effect, ...]:
        """Ask the server to stop the turn."""
        if self.is_observer:
            return ()
        self._interrupt_due, self.was_stopped = False, True
        return (self._server_requests.send("abort", "POST", f"/session/{self.session_id}/abort"),)

    def _delete_session(self) -> tuple[Effect, ...]:
        if self.is_observer or not self._context.no_session or self.session_id is None:
            return ()
        return (self._server_requests.send("delete", "DELETE", f"/session/{self.session_id}"),)

    def _close_stdin(self) -> tuple[Effect, ...]:
        if self.is_observer or self._closed:
            return ()
        self._closed = True
        return (CloseStdin(),)


def _session_failure(request: SentRequest, status: int, message: str) -> Failure:
    session_id = unquote(session_in(request.path))
    if session_id and not session_id.startswith(_SESSION_IDS):
        return Failure("SESSION_NOT_FOUND", f"{session_id!r} is not an id of an opencode session")
    is_missing = bool(session_id) and status == _NOT_FOUND
    return Failure("SESSION_NOT_FOUND" if is_missing else code_of(message), message)


def _message_of(body: Any) -> str:
    fields = mapping(body)
    found = text(fields.get("message")) or text(mapping(fields.get("data")).get("message"))
    return found or (as_json(body) if fields else text(body))


class OpencodeTurns:
    """The current turn of the main session: whether it runs, its error, and how it ended."""

    def __init__(
        self, sessions: OpencodeSessions, approvals: OpencodeApprovals, conversation: OpencodeConversation
    ) -> None:
        self._sessions = sessions
        self._approvals = approvals
        self._conversation = conversation
        self.is_running = False
        self._error: Any = None
        """The last error, until the session continues or the turn ends."""
        self._was_idle_early = False
        self._overflows = 0
        self._abort_failure: Failure | None = None

    def read_status(
        self, session: OpencodeSession, status: Mapping[str, Any], event_id: str
    ) -> tuple[CodecOutput, ...] | None:
        """Read `session.status`; return None for an unknown status."""
        match status.get("type"):
            case "busy":
                return self._busy(session)
            case "retry":
                return *self._begin(session), *_retrying(status, event_id)
            case "idle":
                return self._idle(session)
        return None

    def read_error(self, error: Any) -> tuple[CodecOutput, ...]:
        """Read `session.error`: the turn ends with it, unless the session continues."""
        if not self.is_running and self._conversation.expects_turn:  # the turn will not begin
            return TurnFailed(failure_of(error)), *self._conversation.end_turn()
        if not self.is_running:
            return (Ignored("session.error", "about no turn"),)
        self._error = error
        if not is_overflow(error):
            return (Ignored("session.error", "emitted when the turn ends or continues"),)
        session = self._sessions.main
        self._overflows = 1 if session is None or session.has_progressed else self._overflows + 1
        if session is not None:
            session.has_progressed = False
        if self._overflows < _MAX_USELESS_COMPACTIONS or self._conversation.is_observer:
            return (Ignored("session.error", "the context is compacted, or the turn ends"),)
        self._abort_failure = failure_of(error)
        reason = "opencode keeps compacting its context, which stays too long: stopping the turn"
        return Note(reason, "warn"), *self._conversation.abort()

    def _busy(self, session: OpencodeSession) -> tuple[CodecOutput, ...]:
        facts: tuple[Fact, ...] = self._begin(session)
        if self._error is not None:
            failure, self._error = failure_of(self._error), None
            facts = (*facts, RecoverableError(failure.code, failure.message))
        return *(facts or (Ignored(_KIND, "already busy"),)), *self._conversation.session_busy()

    def _begin(self, session: OpencodeSession) -> tuple[Fact, ...]:
        if self.is_running:
            return ()
        self.is_running, self._was_idle_early, self._error = True, False, None
        self._overflows, self._abort_failure = 0, None
        session.message = None
        return (TurnBegin(),)

    def _idle(self, session: OpencodeSession) -> tuple[CodecOutput, ...]:
        if not self.is_running:
            return (Ignored(_KIND, "already idle"),)
        message = session.message
        is_open = message is not None and not message.is_complete
        if is_open and self._error is not None and not self._was_idle_early:
            self._was_idle_early = True
            return (Ignored(_KIND, "the answer is not complete yet"),)
        self.is_running = False
        closing = self._closing(message)
        self._sessions.end_turn()
        session.streamed.discard()
        return *self._approvals.end_turn(), *closing, *self._conversation.end_turn()

    def _closing(self, message: OpencodeMessage | None) -> tuple[Fact, ...]:
        cost = self._sessions.turn_usage.record
        error = message.error if message is not None and message.error is not None else self._error
        if self._abort_failure is not None:
            return (TurnFailed(self._abort_failure, cost),)
        if error is not None:
            return (TurnStopped(cost) if is_abort(error) else TurnFailed(failure_of(error), cost),)
        if self._conversation.was_stopped and (message is None or message.finish in _UNFINISHED):
            return (TurnStopped(cost),)
        structured = message.structured if message is not None else None
        return (answered(message.finish if message is not None else None, cost, structured),)


def _retrying(status: Mapping[str, Any], event_id: str) -> tuple[Fact, ...]:
    """Return the facts for a model call that will be repeated."""
    reason = text(status.get("message")) or text(mapping(status.get("action")).get("message")) or "no reason given"
    delay = delay_until(whole(status.get("next")), event_id)
    limited = (RateLimited(delay),) if code_of(reason) == "RATE_LIMITED" else ()
    return *limited, Retrying(whole(status.get("attempt")), MAX_RETRIES, reason, delay)
