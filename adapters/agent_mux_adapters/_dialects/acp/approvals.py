"""Requests of the agent that wait for a person: `session/request_permission` and `elicitation/create`.

Each is answered once: by us, or in a transcript by the client that was recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse, WriteStdin
from agent_mux.sdk.facts import ApprovalRequested, Fact, FileEdit, Ignored, RequestResolved, Risk
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux.sdk.unified_diff import from_texts
from agent_mux_adapters._dialects.acp.questions import (
    ELICITATION_CANCELLED,
    ELICITATION_DECLINED,
    AcpQuestion,
    form_question,
    link_approval,
)
from agent_mux_adapters._dialects.acp.tool_reader import AcpCall, ToolReader
from agent_mux_adapters._dialects.acp.turns import AcpSession
from agent_mux_adapters._dialects.acp.wire import text_of
from agent_mux_adapters._dialects.jsonrpc import RpcError, key_of
from agent_mux_adapters._dialects.tolerant import as_json, mapping, rows, text

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
TURN_OVER = "the turn ended"


class _OpenRequest(msgspec.Struct):
    raw_id: Any
    waiting: set[str]
    """Ids of the interactions that were emitted and are not settled."""
    options: list[Mapping[str, Any]] = []
    call: AcpCall | None = None
    question: AcpQuestion | None = None
    answers: dict[str, Any] = {}
    is_elicitation: bool = False


class AcpApprovals:
    """The open requests of one run."""

    def __init__(self, session: AcpSession) -> None:
        self._rpc = session.rpc
        self._quirks = session.quirks
        self._is_observed = session.is_observed
        self._open: dict[str, _OpenRequest] = {}
        self._early_replies: dict[str, tuple[Any, Any]] = {}

    # -- requests of the agent

    def permission(
        self, raw_id: Any, fields: Mapping[str, Any], call: AcpCall, *, is_inside: bool
    ) -> tuple[CodecOutput, ...]:
        """Emit the approval or the questions of a `session/request_permission` for this call.

        `is_inside` is true for a call of a sub-agent; the approval then names no call of the main agent.
        """
        key = key_of(raw_id)
        options = rows(fields.get("options"))
        names = {text(option.get("optionId")): text(option.get("name")) for option in options}
        question = self._quirks.tools.question(key, call, names)
        call_id = call.id if call.is_emitted and not is_inside else None
        asked = approval_fact(key, call, self._quirks.tools, call_id=call_id)
        shown = (asked,) if question is None else question.asked
        waiting = {fact.request_id for fact in shown}
        self._open[key] = _OpenRequest(raw_id, waiting, options, call, question)
        return *shown, *self._already_answered(key)

    def elicitation(self, raw_id: Any, fields: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Emit the questions or the approval of an `elicitation/create`."""
        key = key_of(raw_id)
        if fields.get("mode") == "url" or "url" in fields:
            self._open[key] = _OpenRequest(raw_id, {key}, is_elicitation=True)
            return link_approval(key, fields), *self._already_answered(key)
        question = form_question(key, fields)
        waiting = {fact.request_id for fact in question.asked}
        self._open[key] = _OpenRequest(raw_id, waiting, question=question, is_elicitation=True)
        return *question.asked, *self._already_answered(key)

    # -- our responses

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> Iterable[CodecOutput]:
        """Send a decision or an answer of the consumer, or refuse it when no request waits for it."""
        found = next(((k, request) for k, request in self._open.items() if action.request_id in request.waiting), None)
        if found is None:
            why = f"{self._quirks.agent} has no open request {action.request_id}"
            return (Refuse("INTERACTION_NOT_FOUND", why),)
        key, request = found
        if request.question is not None:
            return self._answer(key, request, request.question, action)
        match action:
            case ApproveAction(always=always):
                return self._approve(key, request, always=always)
            case DenyAction(reason=reason):
                return self._deny(key, request, reason)
        return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)

    def _approve(self, key: str, request: _OpenRequest, *, always: bool) -> Iterable[CodecOutput]:
        if request.is_elicitation:
            return self._send(key, {"action": "accept"}, granted=True)
        result = allow_result(request.options, always=always)
        if result is None:
            why = f"{self._quirks.agent} offers no way to allow this"
            return self._send(key, PERMISSION_CANCELLED, granted=False, reason=why)
        return self._send(key, result, granted=True)

    def _deny(self, key: str, request: _OpenRequest, reason: str | None) -> Iterable[CodecOutput]:
        result: Mapping[str, Any] = ELICITATION_DECLINED
        if not request.is_elicitation:
            result = reject_result(request.options)
        if request.question is not None and request.question.decline is not None:
            result = request.question.decline
        return self._send(key, result, granted=False, reason=reason)

    def _answer(
        self, key: str, request: _OpenRequest, question: AcpQuestion, action: ApproveAction | DenyAction | AnswerAction
    ) -> Iterable[CodecOutput]:
        request_id = action.request_id
        match action:
            case DenyAction(reason=reason) if request_id not in question.optional:
                return self._deny(key, request, reason)
            case AnswerAction(text=answer):
                value = question.parse(request_id, answer)
                if value is None:
                    allowed = question.describe(request_id)
                    return (Refuse("VALIDATION_ERROR", f"{request_id}: got {answer!r}; allowed: {allowed}"),)
                request.answers[request_id] = value
            case ApproveAction():
                return (Refuse("VALIDATION_ERROR", f"{request_id} is a question: answer it"),)
        request.waiting.discard(request_id)
        settled = RequestResolved(request_id, isinstance(action, AnswerAction))
        if request.waiting:
            return (settled,)
        return settled, *self._send(key, question.reply(request.answers), granted=True)

    def _send(self, key: str, result: Any, *, granted: bool, reason: str | None = None) -> tuple[CodecOutput, ...]:
        request = self._open.pop(key)
        return WriteStdin(self._rpc.respond(request.raw_id, result)), *self._settled_facts(request, granted, reason)

    # -- cancellation and the end of a turn

    def cancel(self, reason: str) -> tuple[CodecOutput, ...]:
        """Settle all open requests as denied.

        Unless the run is only observed, the agent gets a cancelled result for each.
        """
        effects: list[CodecOutput] = []
        for request in self._open.values():
            result = ELICITATION_CANCELLED if request.is_elicitation else PERMISSION_CANCELLED
            if not self._is_observed:
                effects.append(WriteStdin(self._rpc.respond(request.raw_id, result)))
        gone = list(self._open.values())
        self._open.clear()
        return *effects, *(
            fact for request in gone for fact in self._settled_facts(request, granted=False, reason=reason)
        )

    def refuse(self, raw_id: Any, method: str) -> tuple[CodecOutput, ...]:
        """Cancel a request that arrives while the turn is being cancelled."""
        result = PERMISSION_CANCELLED if method == PERMISSION else ELICITATION_CANCELLED
        return WriteStdin(self._rpc.respond(raw_id, result)), Ignored(method, "the turn is being cancelled")

    # -- transcripts of other clients

    def observe_reply(self, raw_id: Any, result: Any, error: Any) -> tuple[Fact, ...]:
        """Settle a request with another client's reply.

        The reply may be read before its request, since stdin and stdout are recorded separately.
        """
        key = key_of(raw_id)
        if key in self._open:
            return self._settle_reply(key, result, error)
        self._early_replies[key] = (result, error)
        return (Ignored("stdin:reply", "the request that it answers follows, or needs no decision"),)

    def withdraw(self, raw_id: Any) -> tuple[Fact, ...]:
        """Settle a request that the agent withdrew."""
        request = self._open.pop(key_of(raw_id), None)
        if request is None:
            return (Ignored("$/cancel_request", "settled before"),)
        return self._settled_facts(request, granted=False, reason=f"{self._quirks.agent} withdrew the request")

    def settle_call(self, call_id: str, *, granted: bool) -> tuple[Fact, ...]:
        """Settle the requests about a call by what happened to the call.

        Used for transcripts without the client's side, where replies are not recorded.
        """
        keys = [key for key, request in self._open.items() if request.call is not None and request.call.id == call_id]
        return tuple(fact for key in keys for fact in self._settled_facts(self._open.pop(key), granted=granted))

    def _already_answered(self, key: str) -> tuple[Fact, ...]:
        if key not in self._early_replies:
            return ()
        return self._settle_reply(key, *self._early_replies.pop(key))

    def _settle_reply(self, key: str, result: Any, error: Any) -> tuple[Fact, ...]:
        request = self._open.pop(key)
        if error is not None:
            return self._settled_facts(request, granted=False, reason=RpcError.read(error).message)
        return self._settled_facts(request, granted=_grants(request, mapping(result)))

    def _settled_facts(self, request: _OpenRequest, granted: bool, reason: str | None = None) -> tuple[Fact, ...]:
        settled = tuple(RequestResolved(request_id, granted, reason) for request_id in sorted(request.waiting))
        if not granted and request.call is not None:
            request.call.deny(reason)
        return settled


def _grants(request: _OpenRequest, result: Mapping[str, Any]) -> bool:
    if request.is_elicitation:
        return result.get("action") == "accept"
    return is_granted(request.options, result)


# -- permission requests: the approval that is emitted, and the result for each decision

PERMISSION_CANCELLED = {"outcome": {"outcome": "cancelled"}}
_ACTIONS: dict[str, tuple[str, Risk]] = {
    "read": ("Read", "low"),
    "search": ("Search", "low"),
    "think": ("Think", "low"),
    "edit": ("Change files", "medium"),
    "move": ("Move files", "medium"),
    "delete": ("Delete files", "high"),
    "execute": ("Run a command", "medium"),
    "fetch": ("Fetch from the network", "high"),
    "switch_mode": ("Switch the mode", "medium"),
}
_PATHS = ("path", "file_path", "filePath", "filepath", "absolute_path", "dir_path", "notebook_path")
_YES = ("allow_once", "allow_always")
_ALWAYS = ("allow_always", "allow_once")
_NO = ("reject_once", "reject_always")
PermissionOptions = Sequence[Mapping[str, Any]]
"""The offered options, each with its `optionId`, `name` and `kind`."""


def approval_fact(key: str, call: AcpCall, tools: ToolReader, *, call_id: str | None) -> ApprovalRequested:
    """Return the approval to emit for a permission request.

    `call_id` is the waiting call; None when that call was not emitted.
    """
    action, risk = _ACTIONS.get(call.kind, (call.title or "Use a tool", "medium"))
    command = _command(call, tools)
    if command is not None:
        risk = risk_of_command(command)
    name = call.name or tools.name(call)
    asked_input = mapping(call.asked).get("rawInput")
    tool_input = call.raw_input if asked_input is None else asked_input
    return ApprovalRequested(
        key, action, _detail(call, tools), risk, name, call_id, command, _paths(call, tools),
        tool_input, edits=_edits(call, tool_input),
    )  # fmt: skip


def _edits(call: AcpCall, tool_input: Any) -> tuple[FileEdit, ...]:
    """Return the changes that the call shows, else those in its input."""
    if call.diffs:
        return tuple(FileEdit(diff.path, diff.new, diff.old or None) for diff in call.diffs)
    return edits_of(tool_input) if call.kind == "edit" else ()


def _command(call: AcpCall, tools: ToolReader) -> str | None:
    """Return the command line of the call, including that of a background command."""
    shell = tools.shell(call)
    if shell is not None:
        return shell.command
    return (text(mapping(call.raw_input).get("command")) or None) if call.kind == "execute" else None


def _paths(call: AcpCall, tools: ToolReader) -> tuple[str, ...]:
    """Return the paths the call is about: its locations, its diffs and, unless it is a command, its input."""
    named = mapping(call.raw_input)
    input_paths = [text(named.get(key)) for key in _PATHS] if _command(call, tools) is None else []
    return tuple(
        dict.fromkeys(path for path in (*call.paths, *(diff.path for diff in call.diffs), *input_paths) if path)
    )


def _detail(call: AcpCall, tools: ToolReader) -> str:
    """Return what a person needs to see before deciding."""
    shell = tools.shell(call)
    if shell is not None:
        return shell.command
    diffs = "\n".join(from_texts(diff.path, diff.old or "", diff.new) for diff in call.diffs)
    asked = mapping(call.asked)
    shown = text_of([item for item in rows(asked.get("content")) if item.get("type") == "content"])
    given = asked.get("rawInput") if asked.get("rawInput") is not None else call.raw_input
    parts = [text(asked.get("title")) or call.title, diffs or shown or ("" if given in (None, {}) else as_json(given))]
    return "\n".join(part for part in parts if part)


def allow_result(options: PermissionOptions, *, always: bool) -> dict[str, Any] | None:
    """Return the result that allows; None when no option does."""
    option = _option(options, _ALWAYS if always else _YES) or _option_of_no_kind(options)
    return None if option is None else select_result(option)


def reject_result(options: PermissionOptions) -> dict[str, Any]:
    """Return the result that rejects; the cancelled result when no option rejects."""
    option = _option(options, _NO)
    return PERMISSION_CANCELLED if option is None else select_result(option)


def select_result(option_id: str) -> dict[str, Any]:
    """Return the result that selects this option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def is_granted(options: PermissionOptions, result: Mapping[str, Any]) -> bool:
    """Return whether the reply of another client allows."""
    outcome = mapping(result.get("outcome"))
    if outcome.get("outcome") != "selected":
        return False
    chosen = [text(option.get("kind")) for option in options if option.get("optionId") == outcome.get("optionId")]
    return bool(chosen) and chosen[0] not in _NO


def _option(options: PermissionOptions, kinds: tuple[str, ...]) -> str | None:
    """Return the offered option of the first of these kinds that has one."""
    found = [text(option.get("optionId")) for kind in kinds for option in options if option.get("kind") == kind]
    return found[0] if found else None


def _option_of_no_kind(options: PermissionOptions) -> str | None:
    return next((text(option.get("optionId")) for option in options if option.get("kind") not in _NO), None)
