"""What both sides of a conversation know about its session."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, Refuse, SignalGroup, WriteStdin
from agent_mux.facts import Failure, Note, SessionKnown, TurnFailed
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
    """The session of the run, from its opening on."""

    def __init__(self, context: CodecContext, quirks: AcpQuirks) -> None:
        self.context = context
        self.quirks = quirks
        self.rpc = JsonRpcClient(with_version=True)
        self.account = AcpUsage(is_cumulative=quirks.usage_is_cumulative)
        self.is_observed = context.prompt is None
        """Somebody else speaks with the agent; we say nothing."""
        self.id: str | None = None
        """None: it is not open yet."""
        self.capabilities: Any = {}
        """`agentCapabilities`."""
        self.prompts = 0
        """Prompts under way: asked, and not answered yet."""
        self.in_history = False
        """It is open, but the agent still tells what was before."""
        self.is_seen_from_both_sides = False
        """We speak, or see what another client says; else only the agent's side is there to read."""
        self.is_stopping = False
        """The prompt under way was cancelled."""
        self._history: dict[str, int] = {}
        self._last: dict[str, str] = {}

    @property
    def in_turn(self) -> bool:
        """The agent works on a prompt."""
        return self.prompts > 0 or not self.is_seen_from_both_sides

    @property
    def is_live(self) -> bool:
        """What the agent tells now belongs to this run."""
        return self.id is not None and not self.in_history and self.in_turn

    def saw_before(self, session_id: str, kind: str, message_id: Any) -> None:
        """An update that repeats what was before this run: one more turn, if a user's message begins."""
        this = f"{kind}:{text(message_id)}"
        if kind == "user_message_chunk" and self._last.get(session_id) != this:
            self._history[session_id] = self._history.get(session_id, 0) + 1
        self._last[session_id] = this

    def turns_before(self, session_id: str) -> int:
        """How many turns the session had before this run, as far as they were told."""
        return self._history.get(session_id, 0)

    def any_before(self) -> str | None:
        """A session whose history is being told."""
        return next(iter(self._history), None)

    def session_of(self, params: Any, result: Any) -> str:
        """The session that a request opened: named by the answer, or by the request."""
        return text(mapping(result).get("sessionId")) or text(mapping(params).get("sessionId"))


# TODO Our side of a conversation: handshake, prompts one after the other, and when to hang up.
#
#     us                                             agent
#     initialize                            ->
#                                           <-       its capabilities
#     authenticate, where it is needed      ->
#     session/new | load | resume | fork    ->
#                                           <-       what was before (load), the session
#     session/set_model, set_mode ...       ->
#     session/prompt                        ->
#                                           <-       session/update ..., its answer: why it stopped
#     session/prompt, or end of input       ->
#
# Some agents cancel a prompt when another one comes, so the next one waits for the answer.


class AcpTurns(PromptQueue):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, session: AcpSession) -> None:
        super().__init__(session.quirks.agent, interactive=session.context.interactive)
        self._context = session.context
        self._rpc = session.rpc
        self._session = session
        self._quirks = session.quirks
        self._silent = session.is_observed
        self._settings = 0
        """Settings that were asked for and not answered."""
        self._is_first = True
        self._has_servers = False
        self._interrupt_due = False

    # -- what a consumer wants

    def start(self) -> tuple[Step, ...]:
        """The process runs."""
        if self._silent:
            return ()
        self._session.is_seen_from_both_sides = True
        self._queue(self._context.prompt or "")
        asks = self._quirks.asks_questions and self._context.approval_mode == "prompt"
        return (self._ask("initialize", initialize_params(self._quirks.client_capabilities, asks_questions=asks)),)

    def steer(self, prompt: str) -> tuple[Step, ...]:
        """A message for the turn that runs: the protocol has none. Without a turn it is a prompt."""
        if not self._session.prompts:
            return self.send(prompt)
        why = f"{self._quirks.agent} takes no message into a running turn: send it as the next prompt"
        return (Refuse("CAPABILITY_ERROR", why),)

    def interrupt(self) -> tuple[Step, ...]:
        """Stop the turn that runs, or is about to."""
        if self._session.prompts:
            return self._cancel_turn()
        if self._prompts:
            self._interrupt_due = True
            return ()
        return (Note(f"nothing to interrupt: {self._quirks.agent} waits for a prompt"),)

    def cancel(self) -> tuple[Step, ...]:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = True
        return self._cancel_turn() if self._session.prompts else self.next()

    # -- what the agent answers

    def initialized(self, result: Any) -> tuple[Step, ...]:
        """The handshake is over."""
        self._session.capabilities = mapping(mapping(result).get("agentCapabilities"))
        if self._silent:
            return ()
        offered = [text(method.get("id")) for method in rows(mapping(result).get("authMethods"))]
        method = self._quirks.login(self._context, offered)
        if method is not None:
            return (self._ask("authenticate", {"methodId": method}),)
        return self.open()

    def open(self) -> tuple[Step, ...]:
        """Open the session."""
        if self._silent:
            return ()
        able = self._session.capabilities
        servers, notes = supported_servers(self._context.mcp_servers, able)
        self._has_servers = bool(servers)
        method = self._opening_method()
        if method is None:
            what = "forked" if self._context.fork_session_id is not None else "continued"
            why = f"{self._quirks.agent} says that its sessions cannot be {what}"
            return TurnFailed(Failure("CAPABILITY_ERROR", why)), *self.hang_up()
        before = self._context.session_id or self._context.fork_session_id
        return *notes, self._ask(method, session_params(self._context, servers, before))

    def opened(self, known: SessionKnown, result: Any) -> tuple[Step, ...]:
        """The session is there."""
        session = self._session
        session.id = known.session_id
        session.in_history = bool(self._quirks.history_ends_with) and known.resumed
        if self._silent:
            return (known,)
        settings = self._quirks.settings(
            self._context, OpenedSession(session_id=known.session_id, result=mapping(result))
        )
        self._settings = sum(isinstance(one, AcpRequest) for one in settings)
        asked = (one if isinstance(one, Note) else self._ask(one.method, one.params) for one in settings)
        return known, *asked, *self.next()

    def setting_answered(self) -> tuple[Step, ...]:
        """One of our settings was taken, or refused."""
        self._settings = max(self._settings - 1, 0)
        return self.next()

    def next(self) -> tuple[Step, ...]:
        """The next prompt, or the end of our input, if it is time for one of them."""
        session = self._session
        if self._silent or self._closed or session.id is None or session.prompts or self._settings:
            return ()
        if session.in_history and not (self._closing and not self._prompts):
            return ()
        if not self._prompts:
            return self.hang_up() if self._closing else ()
        return self._prompt(session.id, self._prompts.popleft())

    def hang_up(self) -> tuple[Step, ...]:
        """The end of our input."""
        if self._silent or self._closed:
            return ()
        self._closed = True
        quirks = self._quirks
        signal = quirks.signal_at_end or (quirks.signal_with_servers if self._has_servers else None)
        return (CloseStdin(),) if signal is None else (CloseStdin(), SignalGroup(signal))

    # -- inside

    def _ask(self, method: str, params: Mapping[str, Any]) -> WriteStdin:
        return WriteStdin(self._rpc.request(method, dict(params)))

    def _prompt(self, session_id: str, prompt: str) -> tuple[Step, ...]:
        blocks: Sequence[Mapping[str, Any]] = ()
        notes: tuple[Note, ...] = ()
        if self._is_first:
            self._is_first = False
            blocks, notes = content_blocks(self._context.images, self._session.capabilities)
            if self._context.system_prompt and self._quirks.takes_system_prompt:
                prompt = f"{self._context.system_prompt}\n\n{prompt}"
        self._session.prompts += 1
        self._session.is_stopping = False
        asked = self._ask("session/prompt", prompt_params(session_id, prompt, blocks))
        if self._interrupt_due:
            self._interrupt_due = False
            return *notes, asked, *self._cancel_turn()
        return *notes, asked

    def _cancel_turn(self) -> tuple[Step, ...]:
        if self._silent or self._session.is_stopping:
            return ()
        self._session.is_stopping = True
        return (WriteStdin(self._rpc.notify("session/cancel", {"sessionId": self._session.id})),)

    def _opening_method(self) -> str | None:
        able = self._session.capabilities
        sessions = mapping(able.get("sessionCapabilities"))
        if self._context.fork_session_id is not None:
            return "session/fork" if sessions.get("fork") is not None else None
        if self._context.session_id is None:
            return "session/new"
        ways = [way for way, is_there in _ways(able, sessions).items() if is_there]
        wanted = self._quirks.continues_with
        return f"session/{wanted}" if wanted in ways else f"session/{ways[0]}" if ways else None


def _ways(able: Mapping[str, Any], sessions: Mapping[str, Any]) -> dict[str, bool]:
    return {"load": able.get("loadSession") is True, "resume": sessions.get("resume") is not None}


def session_fact(session: AcpSession, method: str, params: Any, result: Any, model: str | None) -> SessionKnown | None:
    """What an answer says that opens a session; None when it names none."""
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
