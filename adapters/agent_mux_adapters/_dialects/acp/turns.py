"""The session of a run, and its prompts: handshake, one prompt after the other, end of input.

    client (we)                                    agent
    initialize                            ->
                                          <-       its capabilities
    authenticate, where it is needed      ->
    session/new | load | resume | fork    ->
                                          <-       the history (load), the session
    session/set_model, set_mode ...       ->
    session/prompt                        ->
                                          <-       session/update ..., the response with the stop reason
    session/prompt, or end of input       ->

Some agents cancel a prompt when another one arrives, so the next prompt waits for the response.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Refuse, SignalGroup, WriteStdin
from agent_mux.sdk.facts import Failure, Note, SessionKnown, TurnFailed
from agent_mux.sdk.options import ApprovalMode
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks
from agent_mux_adapters._dialects.acp.requests import (
    AcpRequest,
    OpenedSession,
    content_blocks,
    initialize_params,
    prompt_params,
    session_params,
    supported_servers,
)
from agent_mux_adapters._dialects.acp.usage import AcpUsage
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

OPENING_METHODS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})


class AcpSession:
    """The state of the run's session that both directions share."""

    def __init__(self, context: CodecContext, quirks: AcpQuirks) -> None:
        self.context = context
        self.quirks = quirks
        self.rpc = JsonRpcClient(with_version=True)
        self.usage_total = AcpUsage(is_cumulative=quirks.usage_is_cumulative)
        self.is_observed = context.prompt is None
        """Whether another client drives the agent, so that we write nothing."""
        self.id: str | None = None
        """The id of the session, None until it is open."""
        self.capabilities: Any = {}
        """The `agentCapabilities` of the handshake."""
        self.prompts = 0
        """The number of prompts without a response."""
        self.in_history = False
        """Whether the session is open but the agent still replays its history."""
        self.has_client_side = False
        """Whether the client's side is known: we are the client, or stdin was recorded."""
        self.is_stopping = False
        """Whether the running prompt was cancelled."""
        self._history: dict[str, int] = {}
        self._last: dict[str, str] = {}

    @property
    def in_turn(self) -> bool:
        """Whether the agent works on a prompt."""
        return self.prompts > 0 or not self.has_client_side

    @property
    def is_live(self) -> bool:
        """Whether the agent's current updates belong to this run."""
        return self.id is not None and not self.in_history and self.in_turn

    def count_replayed(self, session_id: str, kind: str, message_id: Any) -> None:
        """Count a replayed update: a new message of the user begins another earlier turn."""
        this = f"{kind}:{text(message_id)}"
        if kind == "user_message_chunk" and self._last.get(session_id) != this:
            self._history[session_id] = self._history.get(session_id, 0) + 1
        self._last[session_id] = this

    def turns_before(self, session_id: str) -> int:
        """Return how many earlier turns of the session were replayed."""
        return self._history.get(session_id, 0)

    def replayed_session(self) -> str | None:
        """Return a session whose history is being replayed; None when there is none."""
        return next(iter(self._history), None)

    def session_of(self, params: Any, result: Any) -> str:
        """Return the id of the session that a request opened, from its result or its parameters."""
        return text(mapping(result).get("sessionId")) or text(mapping(params).get("sessionId"))


SESSION_MODES = {True: ("plan", "architect"), False: ("default", "ask", "build", "code", "agent")}
"""Session modes, the first choice first: those in which agents plan, and those in which they ask before they act."""


class AcpTurns(PromptQueue):
    """Our side of the protocol. Writes nothing when the run of another client is observed."""

    def __init__(self, session: AcpSession) -> None:
        super().__init__(session.quirks.agent, interactive=session.context.interactive)
        self._context = session.context
        self._rpc = session.rpc
        self._session = session
        self._quirks = session.quirks
        self._is_observed = session.is_observed
        self._settings = 0
        """The number of settings without a response."""
        self._is_first = True
        self._has_servers = False
        self._opened: OpenedSession | None = None
        self._interrupt_due = False

    # -- actions of the consumer

    def start(self) -> tuple[CodecOutput, ...]:
        """Queue the prompt of the run and begin the handshake with `initialize`."""
        if self._is_observed:
            return ()
        self._session.has_client_side = True
        self._queue(self._context.prompt or "")
        asks = self._quirks.asks_questions and self._context.approval_mode == "prompt"
        return (self._request("initialize", initialize_params(self._quirks.client_capabilities, asks_questions=asks)),)

    def steer(self, prompt: str) -> tuple[CodecOutput, ...]:
        """Refuse a message into the running turn, which ACP does not have; between turns, send it as a prompt."""
        if not self._session.prompts:
            return self.send(prompt)
        message = f"{self._quirks.agent} takes no message into a running turn: send it as the next prompt"
        return (Refuse("CAPABILITY_ERROR", message),)

    def set_model(self, model: str) -> tuple[CodecOutput, ...]:
        """Select another model, if the agent offers a choice."""
        setting = None if self._opened is None else self._opened.set_model(model)
        if self._opened is None or isinstance(setting, Note) or self._closed:
            return super().set_model(model)
        return () if setting is None else self._change(setting)

    def set_approval_mode(self, mode: ApprovalMode) -> tuple[CodecOutput, ...]:
        """Select the session mode in which the agent plans, or one in which it asks."""
        offered = () if self._opened is None else self._opened.modes
        wanted = next((one for one in SESSION_MODES[mode == "plan"] if one in offered), None)
        if self._opened is None or wanted is None or self._closed:
            return super().set_approval_mode(mode)
        return self._change(self._opened.set_mode(wanted))

    def _change(self, setting: AcpRequest) -> tuple[CodecOutput, ...]:
        self._settings += 1
        return (self._request(setting.method, setting.params),)

    def interrupt(self) -> tuple[CodecOutput, ...]:
        """Cancel the running turn, or the one that is about to start."""
        if self._session.prompts:
            return self._cancel_turn()
        if self._prompts:
            self._interrupt_due = True
            return ()
        return (Note(f"nothing to interrupt: {self._quirks.agent} waits for a prompt"),)

    def cancel(self) -> tuple[CodecOutput, ...]:
        """Drop the queued prompts and cancel the running turn, because the run is being aborted."""
        self._prompts.clear()
        self._closing = True
        return self._cancel_turn() if self._session.prompts else self.next()

    # -- responses of the agent

    def initialized(self, result: Any) -> tuple[CodecOutput, ...]:
        """Continue after the handshake: log in if needed, then open the session."""
        self._session.capabilities = mapping(mapping(result).get("agentCapabilities"))
        if self._is_observed:
            return ()
        offered = [text(method.get("id")) for method in rows(mapping(result).get("authMethods"))]
        method = self._quirks.login(self._context, offered)
        if method is not None:
            return (self._request("authenticate", {"methodId": method}),)
        return self.open()

    def open(self) -> tuple[CodecOutput, ...]:
        """Open the session: new, loaded, resumed or forked."""
        if self._is_observed:
            return ()
        capabilities = self._session.capabilities
        servers, notes = supported_servers(self._context.mcp_servers, capabilities)
        self._has_servers = bool(servers)
        method = self._opening_method()
        if method is None:
            what = "forked" if self._context.fork_session_id is not None else "continued"
            message = f"{self._quirks.agent} reports that its sessions cannot be {what}"
            return TurnFailed(Failure("CAPABILITY_ERROR", message)), *self.end_input()
        before = self._context.session_id or self._context.fork_session_id
        return *notes, self._request(method, session_params(self._context, servers, before))

    def opened(self, known: SessionKnown, result: Any) -> tuple[CodecOutput, ...]:
        """Record the open session and request its settings."""
        session = self._session
        session.id = known.session_id
        session.in_history = bool(self._quirks.history_ends_with) and known.resumed
        if self._is_observed:
            return (known,)
        self._opened = OpenedSession(session_id=known.session_id, result=mapping(result))
        settings = self._quirks.settings(self._context, self._opened)
        self._settings = sum(isinstance(one, AcpRequest) for one in settings)
        asked = (one if isinstance(one, Note) else self._request(one.method, one.params) for one in settings)
        return known, *asked, *self.next()

    def setting_answered(self) -> tuple[CodecOutput, ...]:
        """Count a response to one of our settings, whether accepted or refused."""
        self._settings = max(self._settings - 1, 0)
        return self.next()

    def next(self) -> tuple[CodecOutput, ...]:
        """Return the next prompt or the end of our input, if one is due."""
        session = self._session
        if self._is_observed or self._closed or session.id is None or session.prompts or self._settings:
            return ()
        if session.in_history and not (self._closing and not self._prompts):
            return ()
        if not self._prompts:
            return self.end_input() if self._closing else ()
        return self._prompt(session.id, self._prompts.popleft())

    def end_input(self) -> tuple[CodecOutput, ...]:
        """End our input, and signal an agent that would not exit by itself."""
        if self._is_observed or self._closed:
            return ()
        self._closed = True
        quirks = self._quirks
        signal = quirks.signal_at_end or (quirks.signal_with_servers if self._has_servers else None)
        return (CloseStdin(),) if signal is None else (CloseStdin(), SignalGroup(signal))

    # -- inside

    def _request(self, method: str, params: Mapping[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, dict(params)))

    def _prompt(self, session_id: str, prompt: str) -> tuple[CodecOutput, ...]:
        blocks: Sequence[Mapping[str, Any]] = ()
        notes: tuple[Note, ...] = ()
        if self._is_first:
            self._is_first = False
            blocks, notes = content_blocks(self._context.images, self._session.capabilities)
            if self._context.system_prompt and self._quirks.takes_system_prompt:
                prompt = f"{self._context.system_prompt}\n\n{prompt}"
        self._session.prompts += 1
        self._session.is_stopping = False
        asked = self._request("session/prompt", prompt_params(session_id, prompt, blocks))
        if self._interrupt_due:
            self._interrupt_due = False
            return *notes, asked, *self._cancel_turn()
        return *notes, asked

    def _cancel_turn(self) -> tuple[CodecOutput, ...]:
        if self._is_observed or self._session.is_stopping:
            return ()
        self._session.is_stopping = True
        return (WriteStdin(self._rpc.notify("session/cancel", {"sessionId": self._session.id})),)

    def _opening_method(self) -> str | None:
        capabilities = self._session.capabilities
        sessions = mapping(capabilities.get("sessionCapabilities"))
        if self._context.fork_session_id is not None:
            return "session/fork" if sessions.get("fork") is not None else None
        if self._context.session_id is None:
            return "session/new"
        methods = [way for way, is_there in _resume_methods(capabilities, sessions).items() if is_there]
        preferred = self._quirks.continues_with
        return f"session/{preferred}" if preferred in methods else f"session/{methods[0]}" if methods else None


def _resume_methods(capabilities: Mapping[str, Any], sessions: Mapping[str, Any]) -> dict[str, bool]:
    return {"load": capabilities.get("loadSession") is True, "resume": sessions.get("resume") is not None}


def session_fact(session: AcpSession, method: str, params: Any, result: Any, model: str | None) -> SessionKnown | None:
    """Return the fact of an opened session; None when neither result nor parameters name it."""
    session_id = session.session_of(params, result)
    if not session_id:
        return None
    is_fork = method == "session/fork"
    return SessionKnown(
        session_id,
        resumed=method in ("session/load", "session/resume"),
        forked_from=text(mapping(params).get("sessionId")) or None if is_fork else None,
        prior_turns=session.turns_before(session_id),
        model=model,
    )
