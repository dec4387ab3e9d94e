"""What the agent answers: to us, or to the client whose run is observed."""

from collections.abc import Mapping
from typing import Any

from agent_mux.adapter import Step
from agent_mux.facts import Fact, Ignored, Note, RunCost, TurnFailed, TurnStopped
from agent_mux_adapters._dialects.acp.approvals import TURN_OVER, AcpApprovals
from agent_mux_adapters._dialects.acp.outcome import closing_of, failure_of, session_failure_of
from agent_mux_adapters._dialects.acp.quirks import PromptOutcome
from agent_mux_adapters._dialects.acp.reader import AcpReader
from agent_mux_adapters._dialects.acp.turns import OPENING_METHODS, AcpSession, AcpTurns, session_fact
from agent_mux_adapters._dialects.acp.wire import model_of
from agent_mux_adapters._dialects.jsonrpc import PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text

_SETTINGS = frozenset({"session/set_mode", "session/set_model", "session/set_config_option"})


class AcpResponses:
    """Reads the answers, and says what comes of them."""

    def __init__(self, session: AcpSession, conversation: AcpTurns, requests: AcpApprovals, updates: AcpReader) -> None:
        self._session = session
        self._account = session.account
        self._quirks = session.quirks
        self._conversation = conversation
        self._requests = requests
        self._updates = updates

    def read(self, message: Mapping[str, Any]) -> tuple[Step, ...]:
        """One answer."""
        result = message.get("result")
        asked = self._session.rpc.take_request(message["id"]) or self._guessed(result)
        if asked is None:
            return self._answer_to_nobody(message)
        if message.get("error") is not None:
            return self._refused(asked, RpcError.read(message["error"]))
        return self._granted(asked, result)

    def _granted(self, asked: PendingRequest, result: Any) -> tuple[Step, ...]:
        kind = f"response:{asked.method}"
        match asked.method:
            case "initialize":
                return Ignored(kind, "the handshake goes on"), *self._conversation.initialized(result)
            case "authenticate":
                return Ignored(kind, "the handshake goes on"), *self._conversation.open()
            case "session/prompt":
                return self._prompt_answered(asked, mapping(result))
            case method if method in OPENING_METHODS:
                return self._opened(asked, result)
            case method if method in _SETTINGS:
                return Ignored(kind, "a setting was taken"), *self._conversation.setting_answered()
        return (Ignored(kind, "a request of another client, not about the run"),)

    def _guessed(self, result: Any) -> PendingRequest | None:
        """In a transcript without the client's side, an answer is known by its shape."""
        if self._session.is_seen_from_both_sides:
            return None
        fields = mapping(result)
        if "protocolVersion" in fields:
            return PendingRequest("initialize")
        if "stopReason" in fields:
            return PendingRequest("session/prompt", {"sessionId": self._session.id})
        if self._session.id is not None:
            return None
        if "sessionId" in fields:
            return PendingRequest("session/new")
        before = self._session.any_before()
        return PendingRequest("session/load", {"sessionId": before}) if before is not None else None

    def _answer_to_nobody(self, message: Mapping[str, Any]) -> tuple[Step, ...]:
        if self._session.is_seen_from_both_sides or message.get("error") is None:
            return (Ignored("response", "an answer whose request was not seen"),)
        error = RpcError.read(message["error"])
        where = {"sessionId": self._session.id}
        return self._refused(
            PendingRequest("session/new" if self._session.id is None else "session/prompt", where), error
        )

    def _opened(self, asked: PendingRequest, result: Any) -> tuple[Step, ...]:
        if self._session.id is not None:
            return (Ignored(f"response:{asked.method}", "another session than that of the run"),)
        known = session_fact(self._session, asked.method, asked.params, result, model_of(result))
        if known is None:
            return self._refused(asked, RpcError(0, f"{self._quirks.agent} opened no session"))
        if asked.method != "session/new" and not self._quirks.cost_is_of_process:
            self._account.continued()
        return self._conversation.opened(known, result)

    def _prompt_answered(self, asked: PendingRequest, result: Mapping[str, Any]) -> tuple[Step, ...]:
        if not self._is_ours(asked):
            return (Ignored("response:session/prompt", "another session"),)
        failure, spoke = self._updates.failure, self._updates.spoke
        usage = self._account.of_turn(self._quirks.usage(result))
        of_turn, of_run = self._account.close_turn()
        reason = text(result.get("stopReason"))
        ended = PromptOutcome(stop_reason=reason, result=result, spoke=spoke, failure=failure, cost=of_turn)
        closing = closing_of(ended, self._quirks, max_turns=self._session.context.max_turns)
        figures = (*([usage] if usage is not None else []), *([RunCost(of_run)] if of_run is not None else []))
        return *self._turn_over(figures), closing, *self._conversation.next()

    def _refused(self, asked: PendingRequest, error: RpcError) -> tuple[Step, ...]:
        failure = self._quirks.failure(error)
        if asked.method == "session/prompt" and self._is_ours(asked):
            was_stopping = self._session.is_stopping
            of_turn, _ = self._account.close_turn()
            closing: Fact = TurnFailed(failure or failure_of(error), of_turn)
            over = self._turn_over(())
            if was_stopping:
                closing = TurnStopped(of_turn)
                over = (*over, Note(f"{self._quirks.agent} ended the cancelled turn with an error: {error.message}"))
            return *over, closing, *self._conversation.next()
        if asked.method in ("initialize", "authenticate") or (
            asked.method in OPENING_METHODS and self._session.id is None
        ):
            usual = session_failure_of if asked.method in OPENING_METHODS else failure_of
            return TurnFailed(failure or usual(error)), *self._conversation.hang_up()
        note = Note(f"{self._quirks.agent} refused {asked.method}: {error.message}", "warn")
        if asked.method in _SETTINGS:
            return note, *self._conversation.setting_answered()
        return (note,)

    def _is_ours(self, asked: PendingRequest) -> bool:
        return self._session.id is not None and mapping(asked.params).get("sessionId") in (None, self._session.id)

    def _turn_over(self, figures: tuple[Fact, ...]) -> tuple[Step, ...]:
        self._session.prompts = max(self._session.prompts - 1, 0)
        self._session.is_stopping = False
        closed = self._requests.cancel(TURN_OVER)
        return *closed, *self._updates.turn_over(), *figures
