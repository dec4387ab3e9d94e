"""Requests of the app-server that a person has to decide: approvals, questions and forms, and the replies to them.

Each is answered once. In a transcript of another client, its reply or the fate of the item shows the decision.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse, WriteStdin
from agent_mux.sdk.facts import ApprovalRequested, Fact, Ignored, InputRequested, RequestResolved, Risk
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, RpcError, key_of
from agent_mux_adapters.codex.forms import (
    CodexForm,
    describe_allowed,
    form_result,
    parse_answer,
    questions_of_schema,
    read_user_questions,
)
from agent_mux_adapters.codex.threads import CodexThread
from agent_mux_adapters.codex.tools import PATCH_TOOL, SHELL_TOOL, CommandCall, McpToolCall, PatchCall
from agent_mux_adapters.codex.wire import as_text, read

TURN_OVER = "the turn ended"
_READING = frozenset({"read", "listFiles", "search"})


class CodexInteraction(msgspec.Struct, kw_only=True):
    """A request of the app-server: the facts that show it, and the result that each decision sends."""

    asked: tuple[ApprovalRequested | InputRequested, ...]
    """One approval, or one question for each field of a form."""
    item_id: str | None = None
    """The item that waits for the decision."""
    accept: Any = None
    """The result that approves."""
    accept_always: Any = None
    """The result that approves for the rest of the session; None: the same as `accept`."""
    decline: Any = None
    """The result that refuses, or leaves a form unanswered."""
    form: CodexForm | None = None


# -- reading requests


class _Action(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _Approval(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    item_id: str
    command: str | None = None
    reason: str | None = None
    command_actions: list[_Action] | None = None
    network_approval_context: dict[str, Any] | None = None
    additional_permissions: Any = None


def _read_command_approval(key: str, params: Any, thread: CodexThread) -> CodexInteraction | None:
    approval = read(_Approval, params)
    if approval is None:
        return None
    call = thread.calls.get(approval.item_id)
    command = approval.command or (call.command if isinstance(call, CommandCall) else None)
    detail = command or ""
    if approval.network_approval_context is not None:
        detail = f"{detail}\nnetwork access: {as_text(approval.network_approval_context)}".strip()
    risk = _risk_of(approval, detail)
    title = _with_reason("Run a command", approval.reason)
    return _item_approval(ApprovalRequested(key, title, detail, risk, SHELL_TOOL, command=command), approval, thread)


def _read_patch_approval(key: str, params: Any, thread: CodexThread) -> CodexInteraction | None:
    """Read `item/fileChange/requestApproval`. It has no changes: those came with the start of the item."""
    approval = read(_Approval, params)
    if approval is None:
        return None
    call = thread.calls.get(approval.item_id)
    diff, paths = (call.diff(thread.cwd), call.paths) if isinstance(call, PatchCall) else ("", ())
    title = _with_reason("Change files", approval.reason)
    return _item_approval(
        ApprovalRequested(key, title, diff, "medium", PATCH_TOOL, paths=paths, diff=diff or None), approval, thread
    )


def _item_approval(asked: ApprovalRequested, approval: _Approval, thread: CodexThread) -> CodexInteraction:
    # A call inside a sub-agent is not a call of the main stream, so no call there waits for the decision.
    linked = asked if thread.is_inside else msgspec.structs.replace(asked, call_id=approval.item_id)
    return CodexInteraction(
        asked=(linked,),
        item_id=approval.item_id,
        accept={"decision": "accept"},
        accept_always={"decision": "acceptForSession"},
        decline={"decision": "decline"},
    )


class _Permissions(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    permissions: dict[str, Any]
    item_id: str | None = None
    reason: str | None = None


def _read_permission_request(key: str, params: Any, _: CodexThread) -> CodexInteraction | None:
    """Read `item/permissions/requestApproval`: the agent asks for more permissions for what follows."""
    request = read(_Permissions, params)
    if request is None:
        return None
    wanted = {name: value for name, value in request.permissions.items() if value is not None}
    detail = as_text(wanted)
    return CodexInteraction(
        asked=(
            ApprovalRequested(
                key, _with_reason("Grant permissions", request.reason), detail, "high", tool_input=wanted
            ),
        ),
        item_id=request.item_id,
        accept={"permissions": wanted, "scope": "turn"},
        accept_always={"permissions": wanted, "scope": "session"},
        decline={"permissions": {}, "scope": "turn"},
    )


def _read_user_input(key: str, params: Any, _: CodexThread) -> CodexInteraction | None:
    questions = read_user_questions(key, params)
    if questions is None:
        return None
    request, asked, form = questions
    return CodexInteraction(asked=asked, item_id=request.item_id, decline={"answers": {}}, form=form)


class _Elicitation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    server_name: str
    mode: str
    message: str = ""
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


def _read_elicitation(key: str, params: Any, thread: CodexThread) -> CodexInteraction | None:
    """Read `mcpServer/elicitation/request`: an approval of a tool call, a link to open, or a form."""
    request = read(_Elicitation, params)
    if request is None:
        return None
    fields = (request.requested_schema or {}).get("properties")
    if isinstance(fields, dict) and fields:
        return CodexInteraction(
            asked=questions_of_schema(key, request.message, fields),
            decline={"action": "decline", "content": None},
            form=CodexForm(fields, by_tool=True),
        )
    meta = request.meta or {}
    tool = meta.get("tool_name")
    call = _waiting_call(thread, request.server_name, tool)
    risk: Risk = "low" if call is not None and call.read_only_hint else "medium"
    arguments = meta.get("tool_params")
    detail = request.message if arguments is None else f"{request.message}\n{as_text(arguments)}"
    detail = detail if request.url is None else f"{detail}\n{request.url}"
    title = (
        f"Call a tool of the MCP server {request.server_name}"
        if tool
        else f"Request from the MCP server {request.server_name}"
    )
    call_id = None if call is None or thread.is_inside else call.id
    name = tool if isinstance(tool, str) else None
    scopes = meta.get("persist")
    persist = {"_meta": {"persist": "session"}} if isinstance(scopes, list) and "session" in scopes else {}
    return CodexInteraction(
        asked=(ApprovalRequested(key, title, detail, risk, name, call_id, tool_input=arguments),),
        item_id=None if call is None else call.id,
        accept={"action": "accept", "content": {}},
        accept_always={"action": "accept", "content": {}, **persist},
        decline={"action": "decline", "content": None},
    )


def _with_reason(title: str, reason: str | None) -> str:
    return f"{title}: {reason}" if reason else title


def _risk_of(approval: _Approval, command: str) -> Risk:
    """Return the risk of a command.

    Codex asks because it needs more permissions, which is a high risk, or because it asks before every command. Then
    a command that only reads is a low risk.
    """
    if approval.reason or approval.network_approval_context is not None or approval.additional_permissions is not None:
        return "high"
    actions = approval.command_actions
    reads = actions and all(action.type in _READING for action in actions)
    return "low" if reads else risk_of_command(command)


def _waiting_call(thread: CodexThread, server: str, tool: Any) -> McpToolCall | None:
    calls = [call for call in thread.calls.values() if isinstance(call, McpToolCall) and call.server == server]
    return next((call for call in reversed(calls) if tool is None or call.tool == tool), None)


_READERS: dict[str, Callable[[str, Any, CodexThread], CodexInteraction | None]] = {
    "item/commandExecution/requestApproval": _read_command_approval,
    "item/fileChange/requestApproval": _read_patch_approval,
    "item/permissions/requestApproval": _read_permission_request,
    "item/tool/requestUserInput": _read_user_input,
    "mcpServer/elicitation/request": _read_elicitation,
}
APPROVAL_METHODS = frozenset(_READERS)


# -- open requests and replies


class _OpenRequest(msgspec.Struct):
    raw_id: Any
    thread_id: str
    pending: CodexInteraction
    unsettled: dict[str, None]
    """The request ids without a decision, in the order of the facts; a form has one for each field."""
    is_resolved: bool = False
    """Whether the app-server has got a reply whose content is not known yet."""


class CodexApprovals:
    """The open requests of one conversation."""

    def __init__(self, rpc: JsonRpcClient) -> None:
        self._rpc = rpc
        self._open: dict[str, _OpenRequest] = {}
        self._early_replies: dict[str, bool] = {}
        """Whether another client approved a request, for replies that were recorded before their request."""

    def open(self, method: str, raw_id: Any, params: Any, thread: CodexThread) -> tuple[Fact, ...] | None:
        """Record a request of the app-server and return its facts; None when its parameters have an unknown shape."""
        key = key_of(raw_id)
        pending = _READERS[method](key, params, thread)
        if pending is None:
            return None
        unsettled = dict.fromkeys(fact.request_id for fact in pending.asked)
        self._open[key] = _OpenRequest(raw_id, thread.id, pending, unsettled)
        return pending.asked

    # -- replies of our consumer

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> Iterable[CodecOutput]:
        """Send a decision to the app-server, or refuse an action that does not match an open request."""
        found = self._find(action.request_id)
        if found is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"codex is not waiting for {action.request_id}"),)
        key, request = found
        if request.pending.form is not None:
            return self._fill_in(key, request, request.pending.form, action)
        match action:
            case ApproveAction(always=always):
                pending = request.pending
                result = pending.accept_always if always and pending.accept_always else pending.accept
                return self._send(key, request, result, granted=True)
            case DenyAction(reason=reason):
                return self._send(key, request, request.pending.decline, granted=False, reason=reason)
        return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)

    def _fill_in(
        self, key: str, request: _OpenRequest, form: CodexForm, action: ApproveAction | DenyAction | AnswerAction
    ) -> Iterable[CodecOutput]:
        """Record the answer to one field, and send the form once every field has a decision."""
        field = action.request_id.removeprefix(f"{key}/")
        match action:
            case DenyAction(reason=reason) if form.by_tool:
                return self._send(key, request, request.pending.decline, granted=False, reason=reason)
            case DenyAction():
                form.answers[field] = None
            case AnswerAction(text=text):
                value = parse_answer(form, field, text)
                if value is None:
                    allowed = describe_allowed(form, field)
                    return (Refuse("VALIDATION_ERROR", f"{field}: got {text!r}; allowed: {allowed}"),)
                form.answers[field] = value
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is a question: answer it"),)
        settled = RequestResolved(action.request_id, granted=isinstance(action, AnswerAction))
        del request.unsettled[action.request_id]
        if request.unsettled:
            return (settled,)
        del self._open[key]
        return WriteStdin(self._rpc.respond(request.raw_id, form_result(form))), settled

    def _send(
        self, key: str, request: _OpenRequest, result: Any, *, granted: bool, reason: str | None = None
    ) -> tuple[CodecOutput, ...]:
        del self._open[key]
        return WriteStdin(self._rpc.respond(request.raw_id, result)), *_settle(request, granted=granted, reason=reason)

    def _find(self, request_id: str) -> tuple[str, _OpenRequest] | None:
        return next(((key, request) for key, request in self._open.items() if request_id in request.unsettled), None)

    # -- decisions that the app-server or another client reports

    def observe_reply(self, raw_id: Any, result: Any, error: Any) -> tuple[Fact, ...]:
        """Record another client's reply. With stdin recorded apart from stdout, it can precede its request."""
        key = key_of(raw_id)
        granted = error is None and _grants(result)
        request = self._open.pop(key, None)
        if request is None:
            self._early_replies[key] = granted
            return (Ignored("stdin:reply", "its request follows"),)
        reason = RpcError.read(error).message if error is not None else None
        return _settle(request, granted=granted, reason=reason)

    def resolved(self, raw_id: Any) -> tuple[Fact, ...]:
        """Handle `serverRequest/resolved`: the app-server got a reply or withdrew the request."""
        key = key_of(raw_id)
        request = self._open.get(key)
        if request is not None and key in self._early_replies:
            del self._open[key]
            return _settle(request, granted=self._early_replies.pop(key))
        if request is None:
            return (Ignored("serverRequest/resolved", "the request is settled already"),)
        if request.pending.item_id is None or request.pending.form is not None:
            del self._open[key]
            return _settle(request, granted=False, reason="codex continued without a reply")
        request.is_resolved = True
        return (Ignored("serverRequest/resolved", "the completed item shows the decision"),)

    def item_completed(self, item_id: str, *, declined: bool) -> tuple[Fact, ...]:
        """Settle resolved requests whose decision is unknown: how their item ended shows it."""
        keys = [
            key for key, request in self._open.items() if request.pending.item_id == item_id and request.is_resolved
        ]
        return tuple(fact for key in keys for fact in _settle(self._open.pop(key), granted=not declined))

    def turn_over(self, thread_id: str) -> tuple[Fact, ...]:
        """Settle the open requests of a thread whose turn ended. Codex resolves them only later."""
        keys = [key for key, request in self._open.items() if request.thread_id == thread_id]
        return tuple(fact for key in keys for fact in _settle(self._open.pop(key), granted=False, reason=TURN_OVER))


def _settle(request: _OpenRequest, *, granted: bool, reason: str | None = None) -> tuple[Fact, ...]:
    return tuple(RequestResolved(request_id, granted, reason) for request_id in request.unsettled)


def _grants(result: Any) -> bool:
    """Return whether a reply approves its request, or answers its questions."""
    fields = result if isinstance(result, dict) else {}
    decision = fields.get("decision", fields.get("action"))
    if decision is None:
        return bool(fields.get("answers") or fields.get("permissions"))
    return isinstance(decision, dict) or decision in ("accept", "acceptForSession")
