"""What Copilot waits for: permissions, which are events, and questions, which are requests; and the replies to them.

Each is answered once. In a transcript of another client, `permission.completed` has the decision, and the answers to
questions are lines of its stdin.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse, WriteStdin
from agent_mux.sdk.facts import ApprovalRequested, Fact, FileEdit, Ignored, InputRequested, RequestResolved, Risk
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, key_of
from agent_mux_adapters._dialects.tolerant import as_json, mapping, need_text, rows, text
from agent_mux_adapters.copilot.tool_results import diff_of_changes

DECISION = "session.permissions.handlePendingPermissionRequest"
TURN_OVER = "the turn ended"
DECLINED = "The user declined to answer."
_LOW_RISK_KINDS = frozenset({"memory", "read"})
_APPROVE_ONCE: Mapping[str, Any] = {"kind": "approve-once"}
_APPROVED: Mapping[str, Any] = {"kind": "approved"}
"""The only approval of releases whose requests have no `promptRequest`. They take other decisions for errors."""
_REJECT, _DENIED = "reject", "denied-interactively-by-user"

# -- permissions


class _Permission(msgspec.Struct, frozen=True, kw_only=True):
    asked: ApprovalRequested
    approve_once: Mapping[str, Any]
    approve_always: Mapping[str, Any]
    """The decision that also approves similar requests for the rest of the session."""
    reject: str
    """The kind of the decision that denies the request."""
    is_inside: bool
    """Whether a sub-agent asks."""


def waiting_call_of(data: Mapping[str, Any]) -> str:
    """Return the id of the call that waits for a `permission.requested`; empty when there is none."""
    return text(mapping(data.get("permissionRequest")).get("toolCallId"))


def _is_granted(kind: str) -> bool:
    """Return whether a decision, or the `result.kind` of `permission.completed`, approves."""
    return kind.startswith("approve")


def _rejection(kind: str, reason: str | None) -> Mapping[str, Any]:
    return {"kind": kind, "feedback": reason} if reason else {"kind": kind}


def _read_permission(request_id: str, data: Mapping[str, Any], tool: str, cwd: str, *, is_inside: bool) -> _Permission:
    """Read `permission.requested`. `tool`: the tool of the waiting call, empty when unknown.

    `promptRequest` has what a client shows; its kind may differ from that of `permissionRequest`.
    """
    wanted, shown = mapping(data.get("permissionRequest")), mapping(data.get("promptRequest"))
    kind = text(shown.get("kind")) or text(wanted.get("kind"))
    describe = _DESCRIBERS.get(kind, _other)
    title, detail, approval = describe(wanted, shown)
    # A call inside a sub-agent is not a call of the main stream, so no call there waits for the decision.
    call_id = None if is_inside else text(wanted.get("toolCallId")) or None
    name = tool or text(wanted.get("toolName")) or kind or None
    command = text(wanted.get("fullCommandText")) or None
    risk, paths = _risk_of(kind, wanted), _paths_of(wanted, shown)
    is_older = "promptRequest" not in data
    return _Permission(
        asked=ApprovalRequested(
            request_id, title, detail, risk, name, call_id, command, paths, wanted.get("args"), *_changes(wanted, cwd)
        ),
        approve_once=_APPROVED if is_older else _APPROVE_ONCE,
        approve_always=_APPROVED if is_older else {"kind": "approve-for-session", **approval},
        reject=_DENIED if is_older else _REJECT,
        is_inside=is_inside,
    )


def _changes(wanted: Mapping[str, Any], cwd: str) -> tuple[str | None, tuple[FileEdit, ...]]:
    """Return the diff that Copilot shows; without one, the edit with the new content of the file."""
    diff = diff_of_changes(text(wanted.get("diff")), cwd)
    return (diff, ()) if diff else (None, edits_of(wanted))


def _paths_of(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> tuple[str, ...]:
    named = [wanted.get("fileName"), wanted.get("path")]
    for lists in (shown.get("paths"), wanted.get("possiblePaths")):
        named += lists if isinstance(lists, list) else []
    return tuple(dict.fromkeys(path for path in named if isinstance(path, str) and path))


def _risk_of(kind: str, wanted: Mapping[str, Any]) -> Risk:
    commands = rows(wanted.get("commands"))
    command = text(wanted.get("fullCommandText"))
    if kind == "url" or wanted.get("possibleUrls") or risk_of_command(command) == "high":
        return "high"
    reads = bool(commands) and all(command.get("readOnly") is True for command in commands)
    return "low" if kind in _LOW_RISK_KINDS or reads or wanted.get("readOnly") is True else "medium"


_Description = tuple[str, str, dict[str, Any]]
"""The title of a permission, its detail, and what approving it for the session covers."""


def _command(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Description:
    found = shown.get("commandIdentifiers")
    identifiers = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    approval = {"kind": "commands", "commandIdentifiers": identifiers}
    return "Run a shell command", text(wanted.get("fullCommandText")), {"approval": approval}


def _write(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Description:
    name, diff = text(wanted.get("fileName")), text(wanted.get("diff")).strip("\n")
    return "Change a file", f"{name}\n{diff}" if diff else name, {"approval": {"kind": "write"}}


def _read(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Description:
    return "Read a file", text(wanted.get("path")), {"approval": {"kind": "read"}}


def _paths(_: Mapping[str, Any], shown: Mapping[str, Any]) -> _Description:
    paths = shown.get("paths")
    listed = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return f"Use paths outside of the project ({text(shown.get('accessKind')) or 'access'})", "\n".join(listed), {}


def _mcp(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Description:
    server, tool = text(wanted.get("serverName")), text(shown.get("toolName")) or text(wanted.get("toolName"))
    approval = {"kind": "mcp", "serverName": server, "toolName": tool}
    return f"Use {tool} of the MCP server {server}", as_json(wanted.get("args")), {"approval": approval}


def _url(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Description:
    return "Fetch a web page", text(wanted.get("url")), {}


def _memory(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Description:
    return "Remember something", text(wanted.get("fact")) or as_json(wanted), {"approval": {"kind": "memory"}}


def _custom_tool(wanted: Mapping[str, Any], _: Mapping[str, Any]) -> _Description:
    name = text(wanted.get("toolName"))
    return f"Use {name}", as_json(wanted.get("args")), {"approval": {"kind": "custom-tool", "toolName": name}}


def _other(wanted: Mapping[str, Any], shown: Mapping[str, Any]) -> _Description:
    return text(wanted.get("kind")) or "Do something", as_json(shown or wanted), {}


_DESCRIBERS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], _Description]] = {
    "commands": _command,
    "custom-tool": _custom_tool,
    "mcp": _mcp,
    "memory": _memory,
    "path": _paths,
    "read": _read,
    "shell": _command,
    "url": _url,
    "write": _write,
}


# -- open requests and replies


class _Question(msgspec.Struct, frozen=True):
    raw_id: Any
    choices: tuple[str, ...]
    is_free: bool
    """Whether answers other than the choices are allowed."""


class CopilotApprovals:
    """The permissions and questions that have no decision yet."""

    def __init__(self, rpc: JsonRpcClient, cwd: str) -> None:
        self._rpc = rpc
        self._cwd = cwd
        self.session_id = ""
        """The id of the session, known before it can ask for anything."""
        self._permissions: dict[str, _Permission] = {}
        self._questions: dict[str, _Question] = {}
        self._early_answers: dict[str, bool] = {}
        """Whether another client answered a question, for answers that were recorded before their question."""

    # -- events and requests of Copilot

    def permission_requested(self, data: Mapping[str, Any], tool: str, *, is_inside: bool) -> tuple[Fact, ...]:
        """Handle `permission.requested`. `tool`: the tool of the waiting call; `is_inside`: a sub-agent asks."""
        request_id = need_text(data, "requestId")
        if data.get("resolvedByHook") is True:
            return (Ignored("permission.requested", "a hook of the user has decided"),)
        if request_id in self._permissions:
            return (Ignored("permission.requested", "a repeated request"),)
        permission = _read_permission(request_id, data, tool, self._cwd, is_inside=is_inside)
        self._permissions[request_id] = permission
        return (permission.asked,)

    def permission_completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `permission.completed`: return the decision, unless it is ours and was returned before."""
        request_id, result = need_text(data, "requestId"), mapping(data.get("result"))
        if self._permissions.pop(request_id, None) is None:
            return (Ignored("permission.completed", "reported when it was decided"),)
        reason = text(result.get("feedback")) or text(result.get("reason")) or None
        return (RequestResolved(request_id, _is_granted(text(result.get("kind"))), reason),)

    def question_asked(self, raw_id: Any, params: Any) -> tuple[Fact, ...] | None:
        """Handle `userInput.request`: return the question; None when the parameters have an unknown shape."""
        fields, key = mapping(params), f"question:{key_of(raw_id)}"
        question = text(fields.get("question"))
        if not question or key in self._questions:
            return None
        found = fields.get("choices")
        choices = tuple(choice for choice in found if isinstance(choice, str)) if isinstance(found, list) else ()
        self._questions[key] = _Question(raw_id, choices, fields.get("allowFreeform") is not False)
        asked = InputRequested(key, question, options=choices)
        if key in self._early_answers:
            return asked, *self._settle_question(key, granted=self._early_answers.pop(key))
        return (asked,)

    def turn_over(self) -> tuple[Fact, ...]:
        """Settle what the main agent waited for, because its turn ended. Sub-agents may continue to wait."""
        gone = [key for key, permission in self._permissions.items() if not permission.is_inside]
        gone += list(self._questions)
        for key in gone:
            self._permissions.pop(key, None)
            self._questions.pop(key, None)
        return tuple(RequestResolved(key, granted=False, reason=TURN_OVER) for key in gone)

    def still_waiting(self) -> tuple[Fact, ...]:
        """Return the permissions that sub-agents in the background still need.

        They are emitted again after the turn, because the end of a turn closes every open request.
        """
        return tuple(permission.asked for permission in self._permissions.values())

    # -- replies of our consumer

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> Iterable[CodecOutput]:
        """Send a decision or an answer to Copilot, or refuse an action that does not match an open request."""
        if action.request_id in self._permissions:
            return self._decide(action)
        if action.request_id in self._questions:
            return self._answer(self._questions[action.request_id], action)
        return (Refuse("INTERACTION_NOT_FOUND", f"copilot is not waiting for {action.request_id}"),)

    def _decide(self, action: ApproveAction | DenyAction | AnswerAction) -> Iterable[CodecOutput]:
        permission = self._permissions[action.request_id]
        match action:
            case ApproveAction(always=always):
                result, granted, reason = permission.approve_always if always else permission.approve_once, True, None
            case DenyAction(reason=why):
                result, granted, reason = _rejection(permission.reject, why), False, why
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)
        del self._permissions[action.request_id]
        decision = {"sessionId": self.session_id, "requestId": action.request_id, "result": result}
        return WriteStdin(self._rpc.request(DECISION, decision)), RequestResolved(action.request_id, granted, reason)

    def _answer(self, question: _Question, action: ApproveAction | DenyAction | AnswerAction) -> Iterable[CodecOutput]:
        match action:
            case AnswerAction(text=answer) if answer not in question.choices and not question.is_free:
                allowed = ", ".join(question.choices)
                return (Refuse("VALIDATION_ERROR", f"{action.request_id}: got {answer!r}; allowed: {allowed}"),)
            case AnswerAction(text=answer):
                result = {"answer": answer, "wasFreeform": answer not in question.choices}
            case DenyAction(reason=reason):
                result = {"answer": f"{DECLINED} {reason}" if reason else DECLINED, "wasFreeform": True}
            case _:
                return (Refuse("VALIDATION_ERROR", f"{action.request_id} is a question: answer it"),)
        settled = self._settle_question(action.request_id, granted=isinstance(action, AnswerAction))
        return WriteStdin(self._rpc.respond(question.raw_id, result)), *settled

    def _settle_question(self, key: str, *, granted: bool) -> tuple[Fact, ...]:
        del self._questions[key]
        return (RequestResolved(key, granted),)

    # -- answers of another client

    def observe_answer(self, raw_id: Any, *, granted: bool) -> tuple[Fact, ...]:
        """Record another client's answer. With stdin recorded apart from stdout, it can precede its question."""
        key = f"question:{key_of(raw_id)}"
        if key in self._questions:
            return self._settle_question(key, granted=granted)
        self._early_answers[key] = granted
        return (Ignored("stdin:answer", "its question follows"),)
