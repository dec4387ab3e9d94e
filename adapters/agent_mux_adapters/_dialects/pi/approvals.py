"""The dialogs of extensions (`extension_ui_request`): questions, and the approvals that the flavor recognizes.

A dialog is settled once: by our response, by the response of another client on a recorded stdin, or when the agent
withdraws it.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Effect, Refuse, WriteStdin
from agent_mux.sdk.facts import ApprovalRequested, Fact, Ignored, InputRequested, Note, RequestResolved
from agent_mux.sdk.file_edits import edits_of
from agent_mux_adapters._dialects.tolerant import as_json, text

YES = ("yes", "no")
_TRUE = frozenset({"yes", "y", "true", "ok", "confirm", "1"})
_FALSE = frozenset({"no", "n", "false", "cancel", "0"})
_LEVELS: Mapping[str, Literal["verbose", "info", "warn"]] = {"warning": "warn", "error": "warn"}
_SCREEN_ONLY = "about the agent's own screen"
IGNORED_METHODS: Mapping[str, str] = dict.fromkeys(
    ("setStatus", "setWidget", "setTitle", "set_editor_text"), _SCREEN_ONLY
)
CANCEL: Mapping[str, Any] = MappingProxyType({"cancelled": True})


class PiDialog(msgspec.Struct, frozen=True, kw_only=True):
    """An open dialog and the responses it accepts; a response is a mapping of fields of `extension_ui_response`."""

    request: ApprovalRequested | InputRequested
    accept: Mapping[str, Any] = CANCEL
    accept_always: Mapping[str, Any] | None = None
    decline: Callable[[str | None], Mapping[str, Any]] = lambda _: CANCEL
    answer: Callable[[str], Mapping[str, Any] | None] = lambda response: {"value": response}
    """Returns the response for a text; None when the dialog does not accept the text."""
    accepts_free_text: bool = False
    """Whether the dialog also accepts other texts, through the free-text option."""
    grants: Callable[[Mapping[str, Any]], bool] = lambda response: not response.get("cancelled")
    """Whether a response, given by another client, grants the request."""


EDITING_TOOLS = frozenset({"edit", "write"})
"""The tools whose input states how a file changes."""
ApprovalReader = Callable[[str, Mapping[str, Any]], PiDialog | None]
CallFinder = Callable[[ApprovalRequested], tuple[str, Mapping[str, Any]] | None]
"""The id and the input of the call that an approval is about."""


class PiDialogs:
    """The dialogs of a run that wait for a response."""

    def __init__(self, read_approval: ApprovalReader, free_text_option: str, find_call: CallFinder) -> None:
        """Take the readers of the agent's flavor.

        After a response with `free_text_option` the agent opens an editor for the text; empty if the agent has no such
        option. `find_call` finds the tool call of an approval.
        """
        self._read_approval = read_approval
        self._free_text_option = free_text_option
        self._find_call = find_call
        self._editor_answer: str | None = None
        """The text to respond with when that editor opens."""
        self._open: dict[str, PiDialog] = {}
        self._observed: dict[str, Mapping[str, Any]] = {}
        """Responses of another client that were recorded before their request."""
        self._granted_tools: set[str] = set()
        """Tools that are allowed for the rest of the run, for agents that do not remember it themselves."""

    # -- requests of the agent

    def read_request(self, line: Mapping[str, Any], *, live: bool) -> tuple[CodecOutput, ...] | None:
        """Read `extension_ui_request`; return None for an unknown method."""
        method = text(line.get("method"))
        if method in IGNORED_METHODS:
            return (Ignored(f"extension_ui_request/{method}", IGNORED_METHODS[method]),)
        match method:
            case "notify":
                level = _LEVELS.get(text(line.get("notifyType")), "info")
                return (Note(text(line.get("message")) or "an empty notice", level),)
            case "open_url":
                return (Note(f"the agent asks to open this URL in a browser: {text(line.get('url'))}"),)
            case "cancel":
                return self._withdraw(text(line.get("targetId")))
        return self._dialog(method, line, live=live)

    def _dialog(self, method: str, line: Mapping[str, Any], *, live: bool) -> tuple[CodecOutput, ...] | None:
        key = text(line.get("id"))
        if method == "editor" and self._editor_answer is not None:
            editor_answer, self._editor_answer = self._editor_answer, None
            return Ignored("extension_ui_request/editor", "answered by the selected option"), _response(
                key, {"value": editor_answer}
            )
        dialog = self._read_approval(key, line) or _question(key, method, line, self._free_text_option)
        return self._open_dialog(key, dialog, live=live) if key and dialog is not None else None

    def _open_dialog(self, key: str, dialog: PiDialog, *, live: bool) -> tuple[CodecOutput, ...]:
        request = dialog.request
        if isinstance(request, ApprovalRequested):
            request = self._with_call(request)
            if live and request.tool_name in self._granted_tools:
                return Note(f"{request.tool_name} was allowed for the rest of the run", "verbose"), _response(
                    key, dialog.accept
                )
        if key in self._observed:
            granted = dialog.grants(self._observed.pop(key))
            return request, RequestResolved(key, granted)
        self._open[key] = msgspec.structs.replace(dialog, request=request)
        return (request,)

    def _with_call(self, request: ApprovalRequested) -> ApprovalRequested:
        found = self._find_call(request) if request.call_id is None else None
        if found is None:
            return request
        call_id, arguments = found
        # A dialog that shows nothing but the tool's name is not a basis for a decision: show the input of the call.
        detail = as_json(arguments) if request.detail == request.tool_name else request.detail
        edits = edits_of(arguments) if request.tool_name in EDITING_TOOLS else ()
        return msgspec.structs.replace(request, call_id=call_id, detail=detail, tool_input=arguments, edits=edits)

    def _withdraw(self, key: str) -> tuple[Fact, ...]:
        if self._open.pop(key, None) is None:
            return (Ignored("extension_ui_request/cancel", "already settled"),)
        return (RequestResolved(key, granted=False, reason="the agent withdrew the request"),)

    def end_turn(self) -> None:
        """Forget the open dialogs: the agent waits for no response after the end of a turn."""
        self._open.clear()
        self._editor_answer = None

    # -- our responses

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        """Respond with the decision of the consumer; refuse an action that does not fit the dialog."""
        key = action.request_id
        dialog = self._open.get(key)
        if dialog is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"the agent is not waiting for {key}"),)
        is_approval = isinstance(dialog.request, ApprovalRequested)
        match action:
            case ApproveAction(always=always) if is_approval:
                return self._send(key, self._accept_response(dialog, always=always), granted=True)
            case DenyAction(reason=reason):
                return self._send(key, dialog.decline(reason), granted=False, reason=reason)
            case AnswerAction(text=response) if not is_approval:
                answer = dialog.answer(response)
                if answer is None and dialog.accepts_free_text:
                    self._editor_answer = response
                    answer = {"value": self._free_text_option}
                if answer is None:
                    return (Refuse("VALIDATION_ERROR", f"got {response!r}; allowed: {_allowed_answers(dialog)}"),)
                return self._send(key, answer, granted=True)
        expected = "an approval: approve or deny it" if is_approval else "a question: answer it"
        return (Refuse("VALIDATION_ERROR", f"{key} is {expected}"),)

    def cancel_all(self) -> tuple[CodecOutput, ...]:
        """Cancel all open dialogs: an interrupted agent would wait for them forever."""
        return tuple(
            step for key in tuple(self._open) for step in self._send(key, CANCEL, granted=False, reason="interrupted")
        )

    def _accept_response(self, dialog: PiDialog, *, always: bool) -> Mapping[str, Any]:
        if not always:
            return dialog.accept
        if dialog.accept_always is not None:
            return dialog.accept_always
        if isinstance(dialog.request, ApprovalRequested) and dialog.request.tool_name is not None:
            self._granted_tools.add(dialog.request.tool_name)
        return dialog.accept

    def _send(
        self, key: str, answer: Mapping[str, Any], *, granted: bool, reason: str | None = None
    ) -> tuple[CodecOutput, ...]:
        del self._open[key]
        return _response(key, answer), RequestResolved(key, granted, reason)

    # -- responses of another client

    def observe_response(self, line: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read an `extension_ui_response` from a recorded stdin.

        It may come before its request, because stdin and stdout are recorded separately.
        """
        key = text(line.get("id"))
        dialog = self._open.pop(key, None)
        if dialog is None:
            self._observed[key] = line
            return (Ignored("stdin/extension_ui_response", "its request comes later"),)
        return (RequestResolved(key, dialog.grants(line)),)


def _response(key: str, answer: Mapping[str, Any]) -> Effect:
    line = json.dumps({"type": "extension_ui_response", "id": key, **answer}, ensure_ascii=False)
    return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def _question(key: str, method: str, line: Mapping[str, Any], free_text_option: str) -> PiDialog | None:
    title = text(line.get("title"))
    match method:
        case "select":
            raw = line.get("options")
            labels = tuple(text(option) for option in raw) if isinstance(raw, list) else ()
            options = tuple(option for option in labels if option != free_text_option)
            request = InputRequested(key, title, options=options, source="tool")
            choose = lambda response: {"value": response} if response in labels else None  # noqa: E731  # one line of a table
            return PiDialog(request=request, answer=choose, accepts_free_text=options != labels)
        case "confirm":
            request = InputRequested(key, title, text(line.get("message")) or None, YES, "tool")
            return PiDialog(
                request=request, answer=_confirm_response, grants=lambda response: response.get("confirmed") is True
            )
        case "input":
            return PiDialog(request=InputRequested(key, title, text(line.get("placeholder")) or None, source="tool"))
        case "editor":
            return PiDialog(request=InputRequested(key, title, text(line.get("prefill")) or None, source="tool"))
    return None


def _confirm_response(response: str) -> Mapping[str, Any] | None:
    word = response.strip().lower()
    return {"confirmed": word in _TRUE} if word in _TRUE | _FALSE else None


def _allowed_answers(dialog: PiDialog) -> str:
    return ", ".join(dialog.request.options) if isinstance(dialog.request, InputRequested) else ""
