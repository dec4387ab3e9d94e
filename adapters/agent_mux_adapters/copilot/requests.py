"""What Copilot waits for: permissions, which are events, and questions, which are requests.

Each is answered once. In a transcript of another client, `permission.completed` tells what was decided; the answers to
questions are seen on their way in.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, WriteStdin
from agent_mux.facts import Fact, Ignored, InputAsked, RequestSettled
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, key_of
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.copilot.permissions import APPROVE, Permission, is_granted, permission_of, reject

DECISION = "session.permissions.handlePendingPermissionRequest"
TURN_OVER = "the turn ended"
DECLINED = "The user declined to answer."


class _Question(msgspec.Struct, frozen=True):
    raw_id: Any
    choices: tuple[str, ...]
    is_free: bool
    """Other answers than the choices are allowed."""


class Requests:
    """The requests that are open."""

    def __init__(self, rpc: JsonRpcClient) -> None:
        self._rpc = rpc
        self.session_id = ""
        """Of the session they belong to; known before there can be any."""
        self._permissions: dict[str, tuple[Permission, bool]] = {}
        """The second: a sub-agent asks."""
        self._questions: dict[str, _Question] = {}
        self._early: dict[str, bool] = {}
        """Answers to questions that were seen before their question."""

    # -- Copilot's side

    def permission_requested(self, data: Mapping[str, Any], tool: str, *, is_inside: bool) -> tuple[Fact, ...]:
        """`permission.requested`. `tool`: the name of the tool that waits."""
        request_id = need_text(data, "requestId")
        if data.get("resolvedByHook") is True:
            return (Ignored("permission.requested", "a hook of the user has decided"),)
        if request_id in self._permissions:
            return (Ignored("permission.requested", "asked before"),)
        permission = permission_of(request_id, data, tool, is_inside=is_inside)
        self._permissions[request_id] = permission, is_inside
        return (permission.asked,)

    def permission_completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`permission.completed`: decided, by us or otherwise."""
        request_id, result = need_text(data, "requestId"), mapping(data.get("result"))
        if self._permissions.pop(request_id, None) is None:
            return (Ignored("permission.completed", "told when it was decided"),)
        reason = text(result.get("feedback")) or text(result.get("reason")) or None
        return (RequestSettled(request_id, is_granted(text(result.get("kind"))), reason),)

    def question_asked(self, raw_id: Any, params: Any) -> tuple[Fact, ...] | None:
        """`userInput.request`. None when the parameters do not have the known shape."""
        said, key = mapping(params), f"question:{key_of(raw_id)}"
        question = text(said.get("question"))
        if not question or key in self._questions:
            return None
        found = said.get("choices")
        choices = tuple(choice for choice in found if isinstance(choice, str)) if isinstance(found, list) else ()
        self._questions[key] = _Question(raw_id, choices, said.get("allowFreeform") is not False)
        asked = InputAsked(key, question, options=choices)
        if key in self._early:
            return asked, *self._answered(key, granted=self._early.pop(key))
        return (asked,)

    def turn_over(self) -> tuple[Fact, ...]:
        """The main agent handed back: it waits for nothing any more. Sub-agents may go on waiting."""
        gone = [key for key, (_, is_inside) in self._permissions.items() if not is_inside] + list(self._questions)
        for key in gone:
            self._permissions.pop(key, None)
            self._questions.pop(key, None)
        return tuple(RequestSettled(key, granted=False, reason=TURN_OVER) for key in gone)

    def still_waiting(self) -> tuple[Fact, ...]:
        """What sub-agents in the background still ask: again, as whatever was open ended with the turn."""
        return tuple(permission.asked for permission, _ in self._permissions.values())

    # -- our side

    def reply(self, action: Approve | Deny | Answer) -> Iterable[Step]:
        """A person decided."""
        if action.request_id in self._permissions:
            return self._decide(action)
        if action.request_id in self._questions:
            return self._answer(self._questions[action.request_id], action)
        return (Refuse("INTERACTION_NOT_FOUND", f"copilot does not wait for {action.request_id} (any more)"),)

    def _decide(self, action: Approve | Deny | Answer) -> Iterable[Step]:
        permission, _ = self._permissions[action.request_id]
        match action:
            case Approve(always=always):
                result, granted, reason = permission.always if always else APPROVE, True, None
            case Deny(reason=why):
                result, granted, reason = reject(why), False, why
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)
        del self._permissions[action.request_id]
        decision = {"sessionId": self.session_id, "requestId": action.request_id, "result": result}
        return WriteStdin(self._rpc.request(DECISION, decision)), RequestSettled(action.request_id, granted, reason)

    def _answer(self, question: _Question, action: Approve | Deny | Answer) -> Iterable[Step]:
        match action:
            case Answer(text=said) if said not in question.choices and not question.is_free:
                allowed = ", ".join(question.choices)
                return (Refuse("VALIDATION_ERROR", f"{action.request_id}: got {said!r}; allowed: {allowed}"),)
            case Answer(text=said):
                result = {"answer": said, "wasFreeform": said not in question.choices}
            case Deny(reason=reason):
                result = {"answer": f"{DECLINED} {reason}" if reason else DECLINED, "wasFreeform": True}
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is a question: answer it"),)
        settled = self._answered(action.request_id, granted=isinstance(action, Answer))
        return WriteStdin(self._rpc.respond(question.raw_id, result)), *settled

    def _answered(self, key: str, *, granted: bool) -> tuple[Fact, ...]:
        del self._questions[key]
        return (RequestSettled(key, granted),)

    # -- another client's side

    def overhear(self, raw_id: Any, *, granted: bool) -> tuple[Fact, ...]:
        """Another client's answer to a question, perhaps seen before it."""
        key = f"question:{key_of(raw_id)}"
        if key in self._questions:
            return self._answered(key, granted=granted)
        self._early[key] = granted
        return (Ignored("stdin:answer", "the question it answers is told later"),)
