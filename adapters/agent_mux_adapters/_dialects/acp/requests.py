"""The agent's requests that wait for a person, and the replies to them.

They are `session/request_permission` and `elicitation/create`. Each is answered once; in a transcript of another client
the replies are seen.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, WriteStdin
from agent_mux.facts import Fact, Ignored, RequestSettled
from agent_mux_adapters._dialects.acp import approvals, elicitation
from agent_mux_adapters._dialects.acp.calls import Call
from agent_mux_adapters._dialects.acp.questions import Question
from agent_mux_adapters._dialects.acp.session import Session
from agent_mux_adapters._dialects.jsonrpc import RpcError, key_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
TURN_OVER = "the turn ended"


class _Open(msgspec.Struct):
    raw_id: Any
    waiting: set[str]
    """The request ids that were shown and are not settled."""
    options: list[Mapping[str, Any]] = []
    call: Call | None = None
    question: Question | None = None
    answers: dict[str, Any] = {}
    is_elicitation: bool = False


class Requests:
    """The open requests of one conversation."""

    def __init__(self, session: Session) -> None:
        self._rpc = session.rpc
        self._quirks = session.quirks
        self._silent = session.is_observed
        self._open: dict[str, _Open] = {}
        self._overheard: dict[str, tuple[Any, Any]] = {}

    # -- the agent asks

    def permission(self, raw_id: Any, fields: Mapping[str, Any], call: Call, *, is_inside: bool) -> tuple[Step, ...]:
        """`session/request_permission` for this call; `is_inside`: it is a sub-agent's, so nothing of ours waits."""
        key = key_of(raw_id)
        options = rows(fields.get("options"))
        names = {text(option.get("optionId")): text(option.get("name")) for option in options}
        question = self._quirks.tools.question(key, call, names)
        call_id = call.id if call.is_told and not is_inside else None
        asked = approvals.approval_asked(key, call, self._quirks.tools, call_id=call_id)
        shown = (asked,) if question is None else question.asked
        waiting = {fact.request_id for fact in shown}
        self._open[key] = _Open(raw_id, waiting, options, call, question)
        return *shown, *self._already_answered(key)

    def elicitation(self, raw_id: Any, fields: Mapping[str, Any]) -> tuple[Step, ...]:
        """`elicitation/create`."""
        key = key_of(raw_id)
        if fields.get("mode") == "url" or "url" in fields:
            self._open[key] = _Open(raw_id, {key}, is_elicitation=True)
            return elicitation.link_asked(key, fields), *self._already_answered(key)
        question = elicitation.form_asked(key, fields)
        waiting = {fact.request_id for fact in question.asked}
        self._open[key] = _Open(raw_id, waiting, question=question, is_elicitation=True)
        return *question.asked, *self._already_answered(key)

    # -- our replies

    def reply(self, action: Approve | Deny | Answer) -> Iterable[Step]:
        """A person decided."""
        found = next(((k, request) for k, request in self._open.items() if action.request_id in request.waiting), None)
        if found is None:
            why = f"{self._quirks.agent} does not wait for {action.request_id} (any more)"
            return (Refuse("INTERACTION_NOT_FOUND", why),)
        key, request = found
        if request.question is not None:
            return self._answer(key, request, request.question, action)
        match action:
            case Approve(always=always):
                return self._approve(key, request, always=always)
            case Deny(reason=reason):
                return self._deny(key, request, reason)
        return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)

    def _approve(self, key: str, request: _Open, *, always: bool) -> Iterable[Step]:
        if request.is_elicitation:
            return self._send(key, {"action": "accept"}, granted=True)
        result = approvals.allowing(request.options, always=always)
        if result is None:
            why = f"{self._quirks.agent} offers no way to allow this"
            return self._send(key, approvals.CANCELLED, granted=False, reason=why)
        return self._send(key, result, granted=True)

    def _deny(self, key: str, request: _Open, reason: str | None) -> Iterable[Step]:
        result: Mapping[str, Any] = elicitation.DECLINED
        if not request.is_elicitation:
            result = approvals.refusing(request.options)
        if request.question is not None and request.question.decline is not None:
            result = request.question.decline
        return self._send(key, result, granted=False, reason=reason)

    def _answer(self, key: str, request: _Open, question: Question, action: Approve | Deny | Answer) -> Iterable[Step]:
        request_id = action.request_id
        match action:
            case Deny(reason=reason) if request_id not in question.optional:
                return self._deny(key, request, reason)
            case Answer(text=answer):
                value = question.typed(request_id, answer)
                if value is None:
                    allowed = question.wanted(request_id)
                    return (Refuse("VALIDATION_ERROR", f"{request_id}: got {answer!r}; allowed: {allowed}"),)
                request.answers[request_id] = value
            case Approve():
                return (Refuse("VALIDATION_ERROR", f"{request_id} is a question: answer it"),)
        request.waiting.discard(request_id)
        settled = RequestSettled(request_id, isinstance(action, Answer))
        if request.waiting:
            return (settled,)
        return settled, *self._send(key, question.reply(request.answers), granted=True)

    def _send(self, key: str, result: Any, *, granted: bool, reason: str | None = None) -> tuple[Step, ...]:
        request = self._open.pop(key)
        return WriteStdin(self._rpc.answer(request.raw_id, result)), *self._settled(request, granted, reason)

    # -- the turn is cancelled, or over

    def cancel(self, reason: str) -> tuple[Step, ...]:
        """Nobody will decide any more: the agent is told so, unless we only look on."""
        effects: list[Step] = []
        for request in self._open.values():
            result = elicitation.CANCELLED if request.is_elicitation else approvals.CANCELLED
            if not self._silent:
                effects.append(WriteStdin(self._rpc.answer(request.raw_id, result)))
        gone = list(self._open.values())
        self._open.clear()
        return *effects, *(fact for request in gone for fact in self._settled(request, granted=False, reason=reason))

    def refuse(self, raw_id: Any, method: str) -> tuple[Step, ...]:
        """A request that comes while the turn is being cancelled."""
        result = approvals.CANCELLED if method == PERMISSION else elicitation.CANCELLED
        return WriteStdin(self._rpc.answer(raw_id, result)), Ignored(method, "the turn is being cancelled")

    # -- replies of others

    def overhear(self, raw_id: Any, result: Any, error: Any) -> tuple[Fact, ...]:
        """Another client's reply, perhaps before the request it answers is seen (stdin recorded apart from stdout)."""
        key = key_of(raw_id)
        if key in self._open:
            return self._replied(key, result, error)
        self._overheard[key] = (result, error)
        return (Ignored("stdin:reply", "the request it answers is told later, or was none for a person"),)

    def withdrawn(self, raw_id: Any) -> tuple[Fact, ...]:
        """The agent does not wait any more."""
        request = self._open.pop(key_of(raw_id), None)
        if request is None:
            return (Ignored("$/cancel_request", "settled before"),)
        return self._settled(request, granted=False, reason=f"{self._quirks.agent} withdrew the request")

    def call_moved(self, call_id: str, *, granted: bool) -> tuple[Fact, ...]:
        """In a transcript without our side, what happens to a call tells what was decided about it."""
        keys = [key for key, request in self._open.items() if request.call is not None and request.call.id == call_id]
        return tuple(fact for key in keys for fact in self._settled(self._open.pop(key), granted=granted))

    def _already_answered(self, key: str) -> tuple[Fact, ...]:
        if key not in self._overheard:
            return ()
        return self._replied(key, *self._overheard.pop(key))

    def _replied(self, key: str, result: Any, error: Any) -> tuple[Fact, ...]:
        request = self._open.pop(key)
        if error is not None:
            return self._settled(request, granted=False, reason=RpcError.read(error).message)
        return self._settled(request, granted=_grants(request, mapping(result)))

    def _settled(self, request: _Open, granted: bool, reason: str | None = None) -> tuple[Fact, ...]:
        settled = tuple(RequestSettled(request_id, granted, reason) for request_id in sorted(request.waiting))
        if not granted and request.call is not None:
            request.call.deny(reason)
        return settled


def _grants(request: _Open, result: Mapping[str, Any]) -> bool:
    if request.is_elicitation:
        return result.get("action") == "accept"
    return approvals.grants(request.options, result)
