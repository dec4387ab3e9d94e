"""The requests of the app-server that wait for a person, and the replies to them.

Each is answered once. In a transcript of another client the replies are seen, or told by what happens to the item.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, WriteStdin
from agent_mux.facts import ApprovalAsked, Fact, Ignored, RequestSettled
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, RpcError, key_of
from agent_mux_adapters.codex import approvals, forms
from agent_mux_adapters.codex.questions import Form, Question
from agent_mux_adapters.codex.thread import Thread

TURN_OVER = "the turn ended"
_READERS: dict[str, Callable[[str, Any, Thread], Question | None]] = {
    "item/commandExecution/requestApproval": approvals.command_question,
    "item/fileChange/requestApproval": approvals.patch_question,
    "item/permissions/requestApproval": approvals.permission_question,
    "item/tool/requestUserInput": forms.user_question,
    "mcpServer/elicitation/request": approvals.mcp_question,
}
DECIDABLE = frozenset(_READERS)


class _Open(msgspec.Struct):
    raw_id: Any
    thread_id: str
    question: Question
    waiting: dict[str, bool]
    """The keys that were shown and are not settled; the value says: an approval."""
    gone: bool = False
    """The app-server got its reply; only what the reply was is not known yet."""


class Requests:
    """The open requests of one conversation."""

    def __init__(self, rpc: JsonRpcClient) -> None:
        self._rpc = rpc
        self._open: dict[str, _Open] = {}
        self._overheard: dict[str, bool] = {}

    def ask(self, method: str, raw_id: Any, params: Any, thread: Thread) -> tuple[Fact, ...] | None:
        """The app-server asks. None when the parameters do not have the known shape."""
        key = key_of(raw_id)
        question = _READERS[method](key, params, thread)
        if question is None:
            return None
        waiting = {fact.request_id: isinstance(fact, ApprovalAsked) for fact in question.asked}
        self._open[key] = _Open(raw_id, thread.id, question, waiting)
        return question.asked

    # -- our replies

    def reply(self, action: Approve | Deny | Answer) -> Iterable[Step]:
        """A person decided."""
        found = self._find(action.request_id)
        if found is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"codex does not wait for {action.request_id} (any more)"),)
        key, request = found
        if request.question.form is not None:
            return self._fill_in(key, request, request.question.form, action)
        match action:
            case Approve(always=always):
                question = request.question
                result = question.accept_always if always and question.accept_always else question.accept
                return self._send(key, request, result, granted=True)
            case Deny(reason=reason):
                return self._send(key, request, request.question.decline, granted=False, reason=reason)
        return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)

    def _fill_in(self, key: str, request: _Open, form: Form, action: Approve | Deny | Answer) -> Iterable[Step]:
        field = action.request_id.removeprefix(f"{key}/")
        match action:
            case Deny(reason=reason) if form.by_tool:
                return self._send(key, request, request.question.decline, granted=False, reason=reason)
            case Deny():
                form.answers[field] = None
            case Answer(text=text):
                value = forms.typed_answer(form, field, text)
                if value is None:
                    wanted = forms.wanted_answer(form, field)
                    return (Refuse("VALIDATION_ERROR", f"{field}: got {text!r}; allowed: {wanted}"),)
                form.answers[field] = value
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is a question: answer it"),)
        settled = RequestSettled(action.request_id, granted=isinstance(action, Answer))
        del request.waiting[action.request_id]
        if request.waiting:
            return (settled,)
        del self._open[key]
        return WriteStdin(self._rpc.respond(request.raw_id, forms.filled_in(form))), settled

    def _send(
        self, key: str, request: _Open, result: Any, *, granted: bool, reason: str | None = None
    ) -> tuple[Step, ...]:
        del self._open[key]
        return WriteStdin(self._rpc.respond(request.raw_id, result)), *_settled(request, granted=granted, reason=reason)

    def _find(self, request_id: str) -> tuple[str, _Open] | None:
        return next(((key, request) for key, request in self._open.items() if request_id in request.waiting), None)

    # -- replies of others

    def overhear(self, raw_id: Any, result: Any, error: Any) -> tuple[Fact, ...]:
        """Another client's reply, perhaps before the request it answers is seen (stdin recorded apart from stdout)."""
        key = key_of(raw_id)
        granted = error is None and _grants(result)
        request = self._open.pop(key, None)
        if request is None:
            self._overheard[key] = granted
            return (Ignored("stdin:reply", "the request it answers is told later"),)
        reason = RpcError.read(error).message if error is not None else None
        return _settled(request, granted=granted, reason=reason)

    def resolved(self, raw_id: Any) -> tuple[Fact, ...]:
        """The app-server no longer waits: replied to, or withdrawn."""
        key = key_of(raw_id)
        request = self._open.get(key)
        if request is not None and key in self._overheard:
            del self._open[key]
            return _settled(request, granted=self._overheard.pop(key))
        if request is None:
            return (Ignored("serverRequest/resolved", "settled before"),)
        if request.question.item_id is None or request.question.form is not None:
            del self._open[key]
            return _settled(request, granted=False, reason="codex went on without a reply")
        request.gone = True
        return (Ignored("serverRequest/resolved", "the decision shows in what happens to the item"),)

    def item_completed(self, item_id: str, *, declined: bool) -> tuple[Fact, ...]:
        """What became of an item tells what was decided about it, where nothing else did."""
        keys = [key for key, request in self._open.items() if request.question.item_id == item_id and request.gone]
        return tuple(fact for key in keys for fact in _settled(self._open.pop(key), granted=not declined))

    def turn_over(self, thread_id: str) -> tuple[Fact, ...]:
        """Codex waits for nothing any more in this thread, though it says so later."""
        keys = [key for key, request in self._open.items() if request.thread_id == thread_id]
        return tuple(fact for key in keys for fact in _settled(self._open.pop(key), granted=False, reason=TURN_OVER))


def _settled(request: _Open, *, granted: bool, reason: str | None = None) -> tuple[Fact, ...]:
    return tuple(RequestSettled(key, granted, reason) for key in request.waiting)


def _grants(result: Any) -> bool:
    """The reply says yes. Answers to questions count as one."""
    fields = result if isinstance(result, dict) else {}
    decision = fields.get("decision", fields.get("action"))
    if decision is None:
        return bool(fields.get("answers") or fields.get("permissions"))
    return isinstance(decision, dict) or decision in ("accept", "acceptForSession")
