"""The dialogs of extensions (`extension_ui_request`): questions, and approvals where the agent's flavor knows them.

Each is answered once: by us, by another client whose answer we overhear, or it is withdrawn.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Effect, Refuse, WriteStdin
from agent_mux.facts import ApprovalAsked, Fact, Ignored, InputAsked, Note, RequestSettled
from agent_mux_adapters._dialects.tolerant import as_json, text

YES = ("yes", "no")
_TRUE = frozenset({"yes", "y", "true", "ok", "confirm", "1"})
_FALSE = frozenset({"no", "n", "false", "cancel", "0"})
_LEVELS: Mapping[str, Literal["verbose", "info", "warn"]] = {"warning": "warn", "error": "warn"}
_SHOWN = "it is about a screen that nobody sees"
SILENT: Mapping[str, str] = dict.fromkeys(("setStatus", "setWidget", "setTitle", "set_editor_text"), _SHOWN)
CANCEL: Mapping[str, Any] = MappingProxyType({"cancelled": True})


class Dialog(msgspec.Struct, frozen=True, kw_only=True):
    """A dialog that waits, and what may be said to it: fields of `extension_ui_response`."""

    asked: ApprovalAsked | InputAsked
    accept: Mapping[str, Any] = CANCEL
    accept_always: Mapping[str, Any] | None = None
    decline: Callable[[str | None], Mapping[str, Any]] = lambda _: CANCEL
    answer: Callable[[str], Mapping[str, Any] | None] = lambda said: {"value": said}
    """None when the text is no possible answer."""
    is_open: bool = False
    """Other answers are possible, by way of the free option."""
    grants: Callable[[Mapping[str, Any]], bool] = lambda said: not said.get("cancelled")
    """An answer that somebody else gave says yes."""


ApprovalReader = Callable[[str, Mapping[str, Any]], Dialog | None]
CallFinder = Callable[[ApprovalAsked], tuple[str, Mapping[str, Any]] | None]
"""The id and the input of the call that an approval is about."""


class Dialogs:
    """The open dialogs of a run."""

    def __init__(self, approval_of: ApprovalReader, free_option: str, find_call: CallFinder) -> None:
        """`free_option`: choosing it brings up an editor for an answer in the person's own words; may be empty."""
        self._approval_of = approval_of
        self._free_option = free_option
        self._find_call = find_call
        self._typed: str | None = None
        """The answer for that editor."""
        self._open: dict[str, Dialog] = {}
        self._overheard: dict[str, Mapping[str, Any]] = {}
        self._granted: set[str] = set()
        """Tools that are allowed for the rest of the run, where the agent itself cannot remember that."""

    # -- the agent

    def requested(self, line: Mapping[str, Any], *, live: bool) -> tuple[Step, ...] | None:
        """`extension_ui_request`; None when its method is not known."""
        method = text(line.get("method"))
        if method in SILENT:
            return (Ignored(f"extension_ui_request/{method}", SILENT[method]),)
        match method:
            case "notify":
                level = _LEVELS.get(text(line.get("notifyType")), "info")
                return (Note(text(line.get("message")) or "an empty notice", level),)
            case "open_url":
                return (Note(f"the agent wants this opened in a browser: {text(line.get('url'))}"),)
            case "cancel":
                return self._withdrawn(text(line.get("targetId")))
        return self._dialog(method, line, live=live)

    def _dialog(self, method: str, line: Mapping[str, Any], *, live: bool) -> tuple[Step, ...] | None:
        key = text(line.get("id"))
        if method == "editor" and self._typed is not None:
            typed, self._typed = self._typed, None
            return Ignored("extension_ui_request/editor", "the answer was given before"), _said(key, {"value": typed})
        dialog = self._approval_of(key, line) or _question(key, method, line, self._free_option)
        return self._ask(key, dialog, live=live) if key and dialog is not None else None

    def _ask(self, key: str, dialog: Dialog, *, live: bool) -> tuple[Step, ...]:
        asked = dialog.asked
        if isinstance(asked, ApprovalAsked):
            asked = self._with_call(asked)
            if live and asked.tool_name in self._granted:
                return Note(f"{asked.tool_name} was allowed for the rest of the run", "verbose"), _said(
                    key, dialog.accept
                )
        if key in self._overheard:
            granted = dialog.grants(self._overheard.pop(key))
            return asked, RequestSettled(key, granted)
        self._open[key] = msgspec.structs.replace(dialog, asked=asked)
        return (asked,)

    def _with_call(self, asked: ApprovalAsked) -> ApprovalAsked:
        found = self._find_call(asked) if asked.call_id is None else None
        if found is None:
            return asked
        call_id, arguments = found
        # A dialog that says no more than the tool's name is no basis for a decision.
        detail = as_json(arguments) if asked.detail == asked.tool_name else asked.detail
        return msgspec.structs.replace(asked, call_id=call_id, detail=detail)

    def _withdrawn(self, key: str) -> tuple[Fact, ...]:
        if self._open.pop(key, None) is None:
            return (Ignored("extension_ui_request/cancel", "settled before"),)
        return (RequestSettled(key, granted=False, reason="the agent no longer waits for it"),)

    def turn_over(self) -> None:
        """Nobody waits any more."""
        self._open.clear()
        self._typed = None

    # -- we

    def reply(self, action: Approve | Deny | Answer) -> tuple[Step, ...]:
        """A person decided."""
        key = action.request_id
        dialog = self._open.get(key)
        if dialog is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"the agent does not wait for {key} (any more)"),)
        is_approval = isinstance(dialog.asked, ApprovalAsked)
        match action:
            case Approve(always=always) if is_approval:
                return self._send(key, self._accepted(dialog, always=always), granted=True)
            case Deny(reason=reason):
                return self._send(key, dialog.decline(reason), granted=False, reason=reason)
            case Answer(text=said) if not is_approval:
                answer = dialog.answer(said)
                if answer is None and dialog.is_open:
                    self._typed = said
                    answer = {"value": self._free_option}
                if answer is None:
                    return (Refuse("VALIDATION_ERROR", f"got {said!r}; allowed: {_allowed(dialog)}"),)
                return self._send(key, answer, granted=True)
        what = "an approval: approve or deny it" if is_approval else "a question: answer it"
        return (Refuse("VALIDATION_ERROR", f"{key} is {what}"),)

    def cancel_all(self) -> tuple[Step, ...]:
        """We interrupt: what waits for an answer would wait for ever."""
        return tuple(
            step for key in tuple(self._open) for step in self._send(key, CANCEL, granted=False, reason="interrupted")
        )

    def _accepted(self, dialog: Dialog, *, always: bool) -> Mapping[str, Any]:
        if not always:
            return dialog.accept
        if dialog.accept_always is not None:
            return dialog.accept_always
        if isinstance(dialog.asked, ApprovalAsked) and dialog.asked.tool_name is not None:
            self._granted.add(dialog.asked.tool_name)
        return dialog.accept

    def _send(
        self, key: str, answer: Mapping[str, Any], *, granted: bool, reason: str | None = None
    ) -> tuple[Step, ...]:
        del self._open[key]
        return _said(key, answer), RequestSettled(key, granted, reason)

    # -- another client

    def overhear(self, line: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Its `extension_ui_response`, perhaps before the request is seen (stdin recorded apart from stdout)."""
        key = text(line.get("id"))
        dialog = self._open.pop(key, None)
        if dialog is None:
            self._overheard[key] = line
            return (Ignored("stdin/extension_ui_response", "the request it answers is told later"),)
        return (RequestSettled(key, dialog.grants(line)),)


def _said(key: str, answer: Mapping[str, Any]) -> Effect:
    line = json.dumps({"type": "extension_ui_response", "id": key, **answer}, ensure_ascii=False)
    return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def _question(key: str, method: str, line: Mapping[str, Any], free_option: str) -> Dialog | None:
    title = text(line.get("title"))
    match method:
        case "select":
            raw = line.get("options")
            every = tuple(text(option) for option in raw) if isinstance(raw, list) else ()
            options = tuple(option for option in every if option != free_option)
            asked = InputAsked(key, title, options=options, source="tool")
            choose = lambda said: {"value": said} if said in every else None  # noqa: E731  # one line of a table
            return Dialog(asked=asked, answer=choose, is_open=options != every)
        case "confirm":
            asked = InputAsked(key, title, text(line.get("message")) or None, YES, "tool")
            return Dialog(asked=asked, answer=_confirmed, grants=lambda said: said.get("confirmed") is True)
        case "input":
            return Dialog(asked=InputAsked(key, title, text(line.get("placeholder")) or None, source="tool"))
        case "editor":
            return Dialog(asked=InputAsked(key, title, text(line.get("prefill")) or None, source="tool"))
    return None


def _confirmed(said: str) -> Mapping[str, Any] | None:
    word = said.strip().lower()
    return {"confirmed": word in _TRUE} if word in _TRUE | _FALSE else None


def _allowed(dialog: Dialog) -> str:
    return ", ".join(dialog.asked.options) if isinstance(dialog.asked, InputAsked) else ""
