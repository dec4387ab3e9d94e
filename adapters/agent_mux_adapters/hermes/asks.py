"""What Hermes asks a person: permissions and questions. Each is answered once.

Permissions have no ids: an answer is for the oldest one, so that a decision about a later one has to wait its turn.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, WriteStdin
from agent_mux.facts import ApprovalAsked, Fact, Ignored, InputAsked, Note, RequestSettled
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.calls import BLOCKED, QUESTION, SCRIPT, SHELL, Call

ANSWERING = frozenset({"approval.respond", "clarify.respond"})
SECRETS = {
    "sudo.request": ("sudo.respond", "password", "the password for sudo"),
    "secret.request": ("secret.respond", "value", "a secret"),
}
"""What is asked -> how it is answered, with which field, and what it is."""
NO_PLACE = "nowhere"
"""A directory that is never made: in mode `deny`, the only one that Hermes may write in."""
_DENIALS = {"deny rule '*'": "Run a command", f"/{NO_PLACE}). Unset the variable": "Change a file"}
"""What it says where, in mode `deny`, our rules keep it from even asking -> what it was about to do."""
DENIED_BY_RULE = "denied: this run has approval mode deny"
NO_ANSWER = "hermes went on without an answer"


class _Approval(msgspec.Struct):
    key: str
    call_id: str | None
    lasting: str
    """The choice that allows the like for the rest of the session."""
    choice: str | None = None
    """What was decided, before it could be said."""


class Asks:
    """The open requests of one conversation."""

    def __init__(self, rpc: JsonRpcClient, *, is_observed: bool) -> None:
        self._rpc = rpc
        self._is_observed = is_observed
        self._approvals: deque[_Approval] = deque()
        self._questions: dict[str, bool] = {}
        self._asked = 0

    # -- Hermes asks

    def approval(self, payload: Mapping[str, Any], calls: Iterable[Call]) -> tuple[Fact, ...]:
        """`approval.request`: a command that may do harm, or a script."""
        self._asked += 1
        command = text(payload.get("command"))
        call = _waiting(command, [*calls])
        choices = payload.get("choices")
        lasting = "session" if isinstance(choices, list) and "session" in choices else "once"
        approval = _Approval(f"approval-{self._asked}", call.id if call is not None else None, lasting)
        self._approvals.append(approval)
        what = text(payload.get("description"))
        name = call.name if call is not None else SHELL
        action = "Run a script" if name == SCRIPT else f"Run a command: {what}" if what else "Run a command"
        return (ApprovalAsked(approval.key, action, command, "high", name, approval.call_id, command),)

    def question(self, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """`clarify.request`; None when it could not be answered."""
        key = text(payload.get("request_id"))
        if not key:
            return None
        self._questions[key] = True
        choices = payload.get("choices")
        options = tuple(map(text, choices)) if isinstance(choices, list) else ()
        return (InputAsked(key, text(payload.get("question")), options=options),)

    def secret(self, kind: str, session: str, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        """Hermes wants a secret: declined, as every answer is recorded."""
        method, field, what = SECRETS[kind]
        note = Note(f"hermes asked for {what}: it was not given, as answers are recorded", "warn")
        if self._is_observed:
            return (note,)
        params = {"session_id": session, "request_id": payload.get("request_id"), field: ""}
        return note, WriteStdin(self._rpc.request(method, params))

    # -- a person decides

    def reply(self, session: str, action: Approve | Deny | Answer) -> tuple[Step, ...]:
        """The decision, and what can be said of it now."""
        key = action.request_id
        if key in self._questions:
            return self._answer(session, action)
        approval = next((found for found in self._approvals if found.key == key and found.choice is None), None)
        if approval is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"hermes does not wait for {key} (any more)"),)
        match action:
            case Approve(always=always):
                approval.choice = approval.lasting if always else "once"
                return *self._say_decided(session), RequestSettled(key, granted=True)
            case Deny(reason=reason):
                approval.choice = "deny"
                # A denial has no place for a reason; what is said in mid turn is put behind the tool's result.
                why = self._ask("session.steer", session, text=reason) if reason else ()
                return *why, *self._say_decided(session), RequestSettled(key, granted=False, reason=reason)
        return (Refuse("VALIDATION_ERROR", f"{key} is an approval: approve or deny it"),)

    def _answer(self, session: str, action: Approve | Deny | Answer) -> tuple[Step, ...]:
        key = action.request_id
        if isinstance(action, Approve):
            return (Refuse("VALIDATION_ERROR", f"{key} is a question: answer it"),)
        is_answer = isinstance(action, Answer)
        said = action.text if isinstance(action, Answer) else action.reason or ""
        del self._questions[key]
        answer = self._ask("clarify.respond", session, request_id=key, answer=said)
        return *answer, RequestSettled(key, granted=is_answer, reason=None if is_answer else said or None)

    def _say_decided(self, session: str) -> tuple[WriteStdin, ...]:
        said: list[WriteStdin] = []
        while self._approvals and (choice := self._approvals[0].choice) is not None:
            self._approvals.popleft()
            said += self._ask("approval.respond", session, choice=choice)
        return tuple(said)

    def _ask(self, method: str, session: str, **params: Any) -> tuple[WriteStdin, ...]:
        return (WriteStdin(self._rpc.request(method, {"session_id": session, **params})),)

    # -- decided elsewhere

    def overheard(self, asked: PendingRequest) -> tuple[Fact, ...]:
        """Another client's decision arrived."""
        params = mapping(asked.params)
        if asked.method == "clarify.respond" and self._questions.pop(text(params.get("request_id")), False):
            return (RequestSettled(text(params.get("request_id")), granted=True),)
        if asked.method == "approval.respond" and self._approvals:
            granted = params.get("choice", "deny") != "deny"
            return (RequestSettled(self._approvals.popleft().key, granted),)
        return (Ignored(f"response:{asked.method}", "settled before"),)

    def call_over(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """A tool call ended: whatever it was waiting for was decided, or its time was up."""
        if payload.get("name") == QUESTION:
            return self._settle_questions()
        call_id = text(payload.get("tool_id"))
        over = [approval for approval in self._approvals if approval.call_id == call_id and approval.choice is None]
        granted = mapping(payload.get("result")).get("status") != BLOCKED
        self._approvals = deque(approval for approval in self._approvals if approval.call_id != call_id)
        return tuple(RequestSettled(found.key, granted, None if granted else NO_ANSWER) for found in over)

    def denied_by_rule(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """A call that one of our own rules refused."""
        said = text(mapping(payload.get("result")).get("error"))
        action = denied_action(said)
        if action is None:
            return ()
        self._asked += 1
        key, arguments = f"approval-{self._asked}", mapping(payload.get("args"))
        command, path = text(arguments.get("command")), text(arguments.get("path"))
        name, call_id = text(payload.get("name")), text(payload.get("tool_id"))
        paths = (path,) if path else ()
        return (
            ApprovalAsked(key, action, command or path, "medium", name, call_id, command or None, paths),
            RequestSettled(key, granted=False, reason=DENIED_BY_RULE),
        )

    def turn_over(self) -> tuple[Fact, ...]:
        """Hermes waits for nothing any more."""
        over = [approval.key for approval in self._approvals if approval.choice is None]
        self._approvals.clear()
        return *(RequestSettled(key, granted=False, reason="the turn ended") for key in over), *self._settle_questions()

    def _settle_questions(self) -> tuple[Fact, ...]:
        keys, self._questions = [*self._questions], {}
        return tuple(RequestSettled(key, granted=False, reason=NO_ANSWER) for key in keys)


def denied_action(error: str) -> str | None:
    """What a call was about to do that one of our own rules refused."""
    return next((action for rule, action in _DENIALS.items() if rule in error), None)


def _waiting(command: str, calls: list[Call]) -> Call | None:
    """The call that asks: the one with this command, else the only one that can ask."""
    runners = [call for call in calls if call.name in (SHELL, SCRIPT)]
    same = [call for call in runners if call.command and call.command == command]
    return same[0] if same else runners[0] if len(runners) == 1 else None
