"""Permission requests and questions of Hermes, and the responses to them. Each is settled once.

Permission requests have no ids: a response counts for the oldest one, so a decision about a later one is held back
until the earlier ones are decided.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse, WriteStdin
from agent_mux.sdk.facts import ApprovalRequested, Fact, Ignored, InputRequested, Note, RequestResolved
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.tools import BLOCKED, QUESTION, SCRIPT, SHELL, HermesCall

RESPONSE_METHODS = frozenset({"approval.respond", "clarify.respond"})
_SECRETS = {
    "sudo.request": ("sudo.respond", "password", "the password for sudo"),
    "secret.request": ("secret.respond", "value", "a secret"),
}
"""Event kind -> method of the response, its field, and a description of the secret."""
DENIED_ROOT = "nowhere"
"""A directory that never exists: in mode `deny`, the only one that Hermes may write in."""
_RULE_ERRORS = {"deny rule '*'": "Run a command", f"/{DENIED_ROOT}). Unset the variable": "Change a file"}
"""Part of an error that our rules of mode `deny` cause without a permission request -> the action they prevented."""
DENIED_BY_RULE = "denied: this run has approval mode deny"
_NO_ANSWER = "hermes continued without an answer"


class _Approval(msgspec.Struct):
    key: str
    call_id: str | None
    lasting_choice: str
    """The choice that also allows the same command for the rest of the session, where Hermes offers it."""
    choice: str | None = None
    """The consumer's decision while it is held back; None before there is one."""


class HermesApprovals:
    """The open permission requests and questions of one run."""

    def __init__(self, rpc: JsonRpcClient, *, is_observed: bool) -> None:
        self._rpc = rpc
        self._is_observed = is_observed
        self._approvals: deque[_Approval] = deque()
        self._questions: dict[str, None] = {}  # in the order they were asked
        self._count = 0

    # -- events of the gateway

    def approval_requested(self, payload: Mapping[str, Any], calls: Iterable[HermesCall]) -> tuple[Fact, ...]:
        """Read `approval.request`: permission for a script, or for a command that may do harm."""
        self._count += 1
        command = text(payload.get("command"))
        call = _requesting_call(command, [*calls])
        choices = payload.get("choices")
        lasting_choice = "session" if isinstance(choices, list) and "session" in choices else "once"
        approval = _Approval(f"approval-{self._count}", call.id if call is not None else None, lasting_choice)
        self._approvals.append(approval)
        description = text(payload.get("description"))
        name = call.name if call is not None else SHELL
        run_command = f"Run a command: {description}" if description else "Run a command"
        action = "Run a script" if name == SCRIPT else run_command
        return (ApprovalRequested(approval.key, action, command, "high", name, approval.call_id, command),)

    def question_asked(self, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """Read `clarify.request`; None without an id, as it could not be answered."""
        key = text(payload.get("request_id"))
        if not key:
            return None
        self._questions[key] = None
        choices = payload.get("choices")
        options = tuple(map(text, choices)) if isinstance(choices, list) else ()
        return (InputRequested(key, text(payload.get("question")), options=options),)

    def secret_requested(self, kind: str, session: str, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Decline a request for a secret: responses are recorded."""
        method, field, secret = _SECRETS[kind]
        note = Note(f"hermes asked for {secret}: declined, because answers are recorded", "warn")
        if self._is_observed:
            return (note,)
        params = {"session_id": session, "request_id": payload.get("request_id"), field: ""}
        return note, WriteStdin(self._rpc.request(method, params))

    def call_ended(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Settle the requests of a tool call that ended: they were decided elsewhere, or timed out."""
        if payload.get("name") == QUESTION:
            return self._settle_questions()
        call_id = text(payload.get("tool_id"))
        undecided = [found for found in self._approvals if found.call_id == call_id and found.choice is None]
        granted = mapping(payload.get("result")).get("status") != BLOCKED
        self._approvals = deque(approval for approval in self._approvals if approval.call_id != call_id)
        return tuple(RequestResolved(found.key, granted, None if granted else _NO_ANSWER) for found in undecided)

    def call_denied_by_rule(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return a request and its denial for a call that one of our own rules refused; nothing for other calls."""
        action = denied_action(text(mapping(payload.get("result")).get("error")))
        if action is None:
            return ()
        self._count += 1
        key, arguments = f"approval-{self._count}", mapping(payload.get("args"))
        command, path = text(arguments.get("command")), text(arguments.get("path"))
        name, call_id = text(payload.get("name")), text(payload.get("tool_id"))
        paths = (path,) if path else ()
        return (
            ApprovalRequested(key, action, command or path, "medium", name, call_id, command or None, paths, arguments),
            RequestResolved(key, granted=False, reason=DENIED_BY_RULE),
        )

    def turn_ended(self) -> tuple[Fact, ...]:
        """Settle all that is open: Hermes waits for none of it any longer."""
        undecided = [approval.key for approval in self._approvals if approval.choice is None]
        self._approvals.clear()
        settled = (RequestResolved(key, granted=False, reason="the turn ended") for key in undecided)
        return *settled, *self._settle_questions()

    # -- decisions of the consumer

    def respond(self, session: str, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        """Settle the request of this action, and write the responses that need not be held back."""
        key = action.request_id
        if key in self._questions:
            return self._answer(session, action)
        approval = next((found for found in self._approvals if found.key == key and found.choice is None), None)
        if approval is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"hermes has no open request {key}"),)
        match action:
            case ApproveAction(always=always):
                approval.choice = approval.lasting_choice if always else "once"
                return *self._write_decisions(session), RequestResolved(key, granted=True)
            case DenyAction(reason=reason):
                approval.choice = "deny"
                # A denial has no field for a reason. Hermes appends a steering message to the tool's result.
                steering = self._ask("session.steer", session, text=reason) if reason else ()
                return *steering, *self._write_decisions(session), RequestResolved(key, granted=False, reason=reason)
        return (Refuse("VALIDATION_ERROR", f"{key} is an approval: approve or deny it"),)

    def response_observed(self, asked: PendingRequest) -> tuple[Fact, ...]:
        """Settle what another client responded to in a transcript."""
        params = mapping(asked.params)
        question = text(params.get("request_id"))
        if asked.method == "clarify.respond" and question in self._questions:
            del self._questions[question]
            return (RequestResolved(question, granted=True),)
        if asked.method == "approval.respond" and self._approvals:
            granted = params.get("choice", "deny") != "deny"
            return (RequestResolved(self._approvals.popleft().key, granted),)
        return (Ignored(f"response:{asked.method}", "settled before"),)

    def _answer(self, session: str, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        key = action.request_id
        if isinstance(action, ApproveAction):
            return (Refuse("VALIDATION_ERROR", f"{key} is a question: answer it"),)
        is_answer = isinstance(action, AnswerAction)
        answer = action.text if isinstance(action, AnswerAction) else action.reason or ""
        del self._questions[key]
        response = self._ask("clarify.respond", session, request_id=key, answer=answer)
        return *response, RequestResolved(key, granted=is_answer, reason=None if is_answer else answer or None)

    def _write_decisions(self, session: str) -> tuple[WriteStdin, ...]:
        """Write the decisions about the oldest requests, up to the first undecided one."""
        writes: list[WriteStdin] = []
        while self._approvals and (choice := self._approvals[0].choice) is not None:
            self._approvals.popleft()
            writes += self._ask("approval.respond", session, choice=choice)
        return tuple(writes)

    def _ask(self, method: str, session: str, **params: Any) -> tuple[WriteStdin, ...]:
        return (WriteStdin(self._rpc.request(method, {"session_id": session, **params})),)

    def _settle_questions(self) -> tuple[Fact, ...]:
        keys, self._questions = [*self._questions], {}
        return tuple(RequestResolved(key, granted=False, reason=_NO_ANSWER) for key in keys)


def denied_action(error: str) -> str | None:
    """Return the action that one of our own rules prevented, by the error of the call; None for other errors."""
    return next((action for rule, action in _RULE_ERRORS.items() if rule in error), None)


def _requesting_call(command: str, calls: list[HermesCall]) -> HermesCall | None:
    """Return the call with this command, else the only one that can need permission."""
    runners = [call for call in calls if call.name in (SHELL, SCRIPT)]
    matching = [call for call in runners if call.command and call.command == command]
    return matching[0] if matching else runners[0] if len(runners) == 1 else None
