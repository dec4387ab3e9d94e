"""Responses of the agent: to our requests, or to those of the client in a transcript."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.codec import CodecOutput
from agent_mux.sdk.facts import Fact, Ignored, Note, RunCost, TurnFailed, TurnStopped
from agent_mux_adapters._dialects.acp.approvals import TURN_OVER, AcpApprovals
from agent_mux_adapters._dialects.acp.outcome import closing_of, failure_of, session_failure_of
from agent_mux_adapters._dialects.acp.quirks import PromptOutcome
from agent_mux_adapters._dialects.acp.reader import AcpReader
from agent_mux_adapters._dialects.acp.turns import OPENING_METHODS, AcpSession, AcpTurns, session_fact
from agent_mux_adapters._dialects.acp.wire import model_of
from agent_mux_adapters._dialects.jsonrpc import PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text, version_fact

_SETTINGS = frozenset({"session/set_mode", "session/set_model", "session/set_config_option"})


class AcpResponses:
    """Reads responses and decides what follows from them."""

    def __init__(self, session: AcpSession, turns: AcpTurns, approvals: AcpApprovals, updates: AcpReader) -> None:
        self._session = session
        self._usage_total = session.usage_total
        self._quirks = session.quirks
        self._turns = turns
        self._approvals = approvals
        self._updates = updates

    def read(self, message: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Return the steps of one response."""
        result = message.get("result")
        request = self._session.rpc.take_request(message["id"]) or self._recognized(result)
        if request is None:
            return self._unmatched(message)
        if message.get("error") is not None:
            return self._refused(request, RpcError.read(message["error"]))
        return self._succeeded(request, result)

    def _succeeded(self, request: PendingRequest, result: Any) -> tuple[CodecOutput, ...]:
        kind = f"response:{request.method}"
        match request.method:
            case "initialize":
                version = version_fact(mapping(mapping(result).get("agentInfo")).get("version"))
                handshake = Ignored(kind, "the handshake continues")
                return *(version or (handshake,)), *self._turns.initialized(result)
            case "authenticate":
                return Ignored(kind, "the handshake continues"), *self._turns.open()
            case "session/prompt":
                return self._prompt_answered(request, mapping(result))
            case method if method in OPENING_METHODS:
                return self._opened(request, result)
            case method if method in _SETTINGS:
                return Ignored(kind, "a setting was accepted"), *self._turns.setting_answered()
        return (Ignored(kind, "a request of another client that does not concern the run"),)

    def _recognized(self, result: Any) -> PendingRequest | None:
        """Recognize a response by its shape, in a transcript without the client's side."""
        if self._session.has_client_side:
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
        before = self._session.replayed_session()
        return PendingRequest("session/load", {"sessionId": before}) if before is not None else None

    def _unmatched(self, message: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        if self._session.has_client_side or message.get("error") is None:
            return (Ignored("response", "a response without a known request"),)
        error = RpcError.read(message["error"])
        params = {"sessionId": self._session.id}
        return self._refused(
            PendingRequest("session/new" if self._session.id is None else "session/prompt", params), error
        )

    def _opened(self, request: PendingRequest, result: Any) -> tuple[CodecOutput, ...]:
        if self._session.id is not None:
            return (Ignored(f"response:{request.method}", "not the session of the run"),)
        known = session_fact(self._session, request.method, request.params, result, model_of(result))
        if known is None:
            return self._refused(request, RpcError(0, f"{self._quirks.agent} opened no session"))
        if request.method != "session/new" and not self._quirks.cost_is_of_process:
            self._usage_total.resume_session()
        return self._turns.opened(known, result)

    def _prompt_answered(self, request: PendingRequest, result: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        if not self._is_ours(request):
            return (Ignored("response:session/prompt", "another session"),)
        failure, spoke = self._updates.failure, self._updates.spoke
        usage = self._usage_total.add_turn(self._quirks.usage(result))
        turn_cost, run_cost = self._usage_total.close_turn()
        reason = text(result.get("stopReason"))
        ended = PromptOutcome(stop_reason=reason, result=result, spoke=spoke, failure=failure, cost=turn_cost)
        closing = closing_of(ended, self._quirks, max_turns=self._session.context.max_turns)
        usage_facts = (*([usage] if usage is not None else []), *([RunCost(run_cost)] if run_cost is not None else []))
        return *self._turn_over(usage_facts), closing, *self._turns.next()

    def _refused(self, request: PendingRequest, error: RpcError) -> tuple[CodecOutput, ...]:
        failure = self._quirks.failure(error)
        if request.method == "session/prompt" and self._is_ours(request):
            was_stopping = self._session.is_stopping
            turn_cost, _ = self._usage_total.close_turn()
            closing: Fact = TurnFailed(failure or failure_of(error), turn_cost)
            turn_end_facts = self._turn_over(())
            if was_stopping:
                closing = TurnStopped(turn_cost)
                note = Note(f"{self._quirks.agent} ended the cancelled turn with an error: {error.message}")
                turn_end_facts = (*turn_end_facts, note)
            return *turn_end_facts, closing, *self._turns.next()
        if request.method in ("initialize", "authenticate") or (
            request.method in OPENING_METHODS and self._session.id is None
        ):
            usual = session_failure_of if request.method in OPENING_METHODS else failure_of
            return TurnFailed(failure or usual(error)), *self._turns.end_input()
        note = Note(f"{self._quirks.agent} refused {request.method}: {error.message}", "warn")
        if request.method in _SETTINGS:
            return note, *self._turns.setting_answered()
        return (note,)

    def _is_ours(self, request: PendingRequest) -> bool:
        return self._session.id is not None and mapping(request.params).get("sessionId") in (None, self._session.id)

    def _turn_over(self, usage_facts: tuple[Fact, ...]) -> tuple[CodecOutput, ...]:
        self._session.prompts = max(self._session.prompts - 1, 0)
        self._session.is_stopping = False
        closed = self._approvals.cancel(TURN_OVER)
        return *closed, *self._updates.turn_over(), *usage_facts
