"""Our side of a conversation: handshake, prompts one after the other, and when to hang up.

    us                                             agent
    initialize                            ->
                                          <-       its capabilities
    authenticate, where it is needed      ->
    session/new | load | resume | fork    ->
                                          <-       what was before (load), the session
    session/set_model, set_mode ...       ->
    session/prompt                        ->
                                          <-       session/update ..., its answer: why it stopped
    session/prompt, or end of input       ->

Some agents cancel a prompt when another one comes, so the next one waits for the answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_mux.adapter import Step
from agent_mux.effects import CloseStdin, Refuse, SignalGroup, WriteStdin
from agent_mux.facts import Failure, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.acp.attachments import blocks_of, servers_it_takes
from agent_mux_adapters._dialects.acp.session import Session
from agent_mux_adapters._dialects.acp.settings import Opened, Request, initialize_params, prompt_params, session_params
from agent_mux_adapters._dialects.prompting import Prompting
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


class Conversation(Prompting):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, session: Session) -> None:
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
        servers, notes = servers_it_takes(self._context.mcp_servers, able)
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
        settings = self._quirks.settings(self._context, Opened(session_id=known.session_id, result=mapping(result)))
        self._settings = sum(isinstance(one, Request) for one in settings)
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
        return WriteStdin(self._rpc.ask(method, dict(params)))

    def _prompt(self, session_id: str, prompt: str) -> tuple[Step, ...]:
        blocks: Sequence[Mapping[str, Any]] = ()
        notes: tuple[Note, ...] = ()
        if self._is_first:
            self._is_first = False
            blocks, notes = blocks_of(self._context.images, self._session.capabilities)
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
        return (WriteStdin(self._rpc.tell("session/cancel", {"sessionId": self._session.id})),)

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


def known_session(session: Session, method: str, params: Any, result: Any, model: str | None) -> SessionKnown | None:
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
