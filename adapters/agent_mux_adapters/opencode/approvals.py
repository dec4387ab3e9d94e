"""Permissions and questions of OpenCode, and the replies to them. Each request is settled once."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse
from agent_mux.sdk.facts import ApprovalRequested, Fact, Ignored, InputRequested, RequestResolved, Risk
from agent_mux.sdk.shell_commands import risk_of_command
from agent_mux_adapters._dialects.choices import read_choices
from agent_mux_adapters._dialects.tolerant import as_json, mapping, need_text, rows, text
from agent_mux_adapters.opencode.requests import OpencodeRequests
from agent_mux_adapters.opencode.tool_results import shown_diff
from agent_mux_adapters.opencode.tools import SHELL_TOOL, McpToolNames

DENIED = "The user denied this call."
"""Sent with a rejection: the model receives it and continues; without a message OpenCode would end the turn."""
STOPPED = "the turn was stopped"
TURN_OVER = "the turn ended"
_ACTIONS = {
    "bash": "Run a command",
    "doom_loop": "Repeat the same call again",
    "edit": "Change files",
    "external_directory": "Leave the working directory",
    "read": "Read a file",
    "skill": "Load a skill",
    "task": "Start a sub-agent",
    "webfetch": "Fetch a web page",
    "websearch": "Search the web",
}
_ABOUT_FILES = frozenset({"edit", "external_directory", "list", "read"})
"""Permissions whose patterns are paths."""
_GRANTED = {"once": True, "always": True, "reject": False}
_RISKS: dict[str, Risk] = {
    "codesearch": "high",
    "external_directory": "high",
    "glob": "low",
    "grep": "low",
    "list": "low",
    "lsp": "low",
    "read": "low",
    "skill": "low",
    "todowrite": "low",
    "webfetch": "high",
    "websearch": "high",
}


class _OpenRequest(msgspec.Struct):
    answers: list[list[str] | None]
    """The answers to a question's parts, None while open; empty for a permission."""
    takes_several: list[bool]
    """For each part, whether it takes several answers."""
    session_id: str = ""
    denial: str | None = None
    """The message of a denial that is not sent yet; the consumer's decision is settled."""
    is_withdrawn: bool = False


class OpencodeApprovals:
    """The requests of a run that wait for a reply."""

    def __init__(self, server_requests: OpencodeRequests, names: McpToolNames, cwd: str) -> None:
        self._server_requests = server_requests
        self._names = names
        self._cwd = cwd
        self._open: dict[str, _OpenRequest] = {}

    # -- requests of OpenCode

    def read_permission(self, native: Mapping[str, Any], tool: str | None, call_id: str | None) -> tuple[Fact, ...]:
        """Read `permission.asked`.

        `tool` is the tool that waits; `call_id` the id of its call, None for a call inside a sub-agent.
        """
        key, permission, metadata = (
            need_text(native, "id"),
            need_text(native, "permission"),
            mapping(native.get("metadata")),
        )
        patterns = _texts(native.get("patterns"))
        command, diff = text(metadata.get("command")), text(metadata.get("diff"))
        if permission == SHELL_TOOL and not command:
            command = "; ".join(patterns)  # older releases report only the parts of the command
        mcp = None if permission in _ACTIONS else self._names.mcp(permission)
        action = f"Call a tool of the MCP server {mcp[0]}" if mcp else _ACTIONS.get(permission, f"Use {permission}")
        detail = command or (shown_diff(diff, self._cwd) if diff else ", ".join(patterns) or as_json(metadata))
        self._open[key] = _OpenRequest([], [], session_id=text(native.get("sessionID")))
        tool = (mcp[1] if mcp else permission) if tool is None else tool
        risk = risk_of(permission, command)
        paths = _paths(text(metadata.get("filepath")), patterns) if permission in _ABOUT_FILES else ()
        name = SHELL_TOOL if command else tool
        shown = detail if diff and not command else None
        return (ApprovalRequested(key, action, detail, risk, name, call_id, command or None, paths, diff=shown),)

    def read_question(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read `question.asked`: one or more parts, each with options or a free text."""
        key, parts = need_text(native, "id"), rows(native.get("questions"))
        if not parts:
            return ()
        self._open[key] = _OpenRequest([None] * len(parts), [part.get("multiple") is True for part in parts])
        return tuple(_question_part(_part_key(key, index), part) for index, part in enumerate(parts))

    # -- our replies

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        """Reply with the decision of the consumer; refuse an action that does not fit the request."""
        key, _, part = action.request_id.partition("/")
        request = self._open.get(key)
        if request is None or request.is_withdrawn or request.denial is not None:
            return (Refuse("INTERACTION_NOT_FOUND", f"opencode is not waiting for {action.request_id}"),)
        if request.answers:
            return self._record_answer(key, request, part, action)
        match action:
            case ApproveAction(always=always):
                del self._open[key]
                sent = self._send_reply(key, {"reply": "always" if always else "once"})
                return *sent, *self._send_denials(request.session_id), RequestResolved(key, True)
            case DenyAction(reason=reason):
                request.denial = reason or DENIED
                return *self._send_denials(request.session_id), RequestResolved(key, False, reason)
        return (Refuse("VALIDATION_ERROR", f"{action.request_id} is an approval: approve or deny it"),)

    def _send_denials(self, session_id: str) -> tuple[CodecOutput, ...]:
        """Send the denials of a session once all its requests are decided.

        With a rejection, OpenCode rejects all other requests of the session that it has no reply to.
        """
        requests = [
            (key, one)
            for key, one in self._open.items()
            if one.session_id == session_id and not one.answers and not one.is_withdrawn
        ]
        if any(request.denial is None for _, request in requests):
            return ()
        steps: list[CodecOutput] = []
        for key, request in requests:
            del self._open[key]
            steps += self._send_reply(key, {"reply": "reject", "message": request.denial})
        return tuple(steps)

    def _send_reply(self, key: str, body: Any) -> tuple[CodecOutput, ...]:
        return (self._server_requests.send("permission", "POST", f"/permission/{key}/reply", body),)

    def _record_answer(
        self, key: str, request: _OpenRequest, part: str, action: ApproveAction | DenyAction | AnswerAction
    ) -> tuple[CodecOutput, ...]:
        index = int(part) if part.isdigit() and int(part) < len(request.answers) else None
        if index is None or isinstance(action, ApproveAction):
            return (Refuse("VALIDATION_ERROR", f"{action.request_id} is a question: answer it"),)
        if request.answers[index] is not None:
            return (Refuse("INTERACTION_NOT_FOUND", f"{action.request_id} is already answered"),)
        # An empty answer lets the model continue; rejecting the whole question would end the turn.
        request.answers[index] = (
            []
            if isinstance(action, DenyAction)
            else _split_answer(action.text, takes_several=request.takes_several[index])
        )
        reason = action.reason if isinstance(action, DenyAction) else None
        settled = RequestResolved(action.request_id, isinstance(action, AnswerAction), reason)
        if None in request.answers:
            return (settled,)
        del self._open[key]
        return self._server_requests.send(
            "question", "POST", f"/question/{key}/reply", {"answers": request.answers}
        ), settled

    def withdraw(self) -> tuple[CodecOutput, ...]:
        """Reject all open requests of a stopped turn: OpenCode keeps them, and would run what is granted later."""
        steps: list[CodecOutput] = []
        for key, request in self._open.items():
            path = f"/question/{key}/reject" if request.answers else f"/permission/{key}/reply"
            steps.append(
                self._server_requests.send("question", "POST", path)
                if request.answers
                else self._server_requests.send("permission", "POST", path, {"reply": "reject"})
            )
            if request.denial is None:
                steps += _settle(key, request, granted=False, reason=STOPPED)
            request.is_withdrawn = True
        return tuple(steps)

    # -- replies seen in the stream

    def read_reply(self, kind: str, reply: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Read `permission.replied`, `question.replied` or `question.rejected`.

        The reply may be ours, of another client, or of OpenCode itself for a request like one that was decided.
        """
        key = need_text(reply, "requestID")
        request = self._open.pop(key, None)
        if request is None:
            return (Ignored(kind, "already settled"),)
        sent = self._send_denials(request.session_id)
        if request.is_withdrawn or request.denial is not None:
            return *sent, Ignored(kind, "already settled")
        granted = _GRANTED.get(text(reply.get("reply")), kind == "question.replied")
        return *sent, *(_settle(key, request, granted=granted) or (Ignored(kind, "already settled"),))

    def end_turn(self) -> tuple[Fact, ...]:
        """Settle all open requests as not granted: the turn is over."""
        open_, self._open = self._open, {}
        return tuple(
            fact
            for key, request in open_.items()
            if not request.is_withdrawn and request.denial is None
            for fact in _settle(key, request, granted=False, reason=TURN_OVER)
        )


def _question_part(key: str, part: Mapping[str, Any]) -> InputRequested:
    context, labels = read_choices(part)
    return InputRequested(key, text(part.get("question")), context, labels)


def _paths(path: str, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the file of the request; else the paths in its patterns, which name a folder as `folder/*`."""
    named = tuple(pattern.removesuffix("/*") for pattern in patterns)
    return (path,) if path else tuple(name for name in named if name and "*" not in name)


def _texts(items: Any) -> tuple[str, ...]:
    return tuple(item for item in items if isinstance(item, str)) if isinstance(items, list) else ()


def _split_answer(text_given: str, *, takes_several: bool) -> list[str]:
    """Split an answer; where several are allowed, each is on its own line."""
    return [line for line in text_given.split("\n") if line] if takes_several else [text_given]


def _part_key(key: str, index: int) -> str:
    return f"{key}/{index}"


def _unanswered(key: str, request: _OpenRequest) -> list[str]:
    return [_part_key(key, index) for index, answer in enumerate(request.answers) if answer is None]


def _settle(
    key: str, request: _OpenRequest, *, granted: bool, reason: str | None = None
) -> tuple[RequestResolved, ...]:
    names = _unanswered(key, request) if request.answers else [key]
    return tuple(RequestResolved(name, granted, reason) for name in names)


def risk_of(permission: str, command: str) -> Risk:
    """Return the risk of granting a permission. `command`: what would run, empty for other tools."""
    return risk_of_command(command) if permission == "bash" else _RISKS.get(permission, "medium")
