"""Forward approvals and questions of the agent to the editor.

The protocol requests permission for tool calls only. Any other request is shown as a tool call of its own, which ends
with the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

from agent_mux.acp_server.choices import SessionChoices
from agent_mux.acp_server.session_run import SessionRun
from agent_mux.acp_server.tools import approval_diffs, location, shorten, text_content, tool_kind
from agent_mux.sdk.interactions import ApprovalDetail, Approve, Choice, Deny, InputDetail, PendingInteraction, Text
from agent_mux.sdk.interactions import Response as Answer

ONCE, ALWAYS, REJECT = "allow", "allow_always", "reject"
ANSWER = "answer"
PERMISSION_OPTIONS = [
    PermissionOption(option_id=ONCE, name="Allow", kind="allow_once"),
    PermissionOption(option_id=ALWAYS, name="Always allow", kind="allow_always"),
    PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
]
UNDECIDED = Deny("no decision was made in the editor")
UPDATE_TIMEOUT = 1.0  # seconds to send the final update of a call whose answer is no longer needed


class EditorConnection(Protocol):
    """The connection to the editor: the methods that sessions use."""

    async def session_update(self, session_id: str, update: Any) -> None:
        """Send an update of a session."""
        ...

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Request permission for a tool call."""
        ...

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        """Request a form filled in by the user."""
        ...


async def ask_permission(
    editor: EditorConnection, session_id: str, waiting: PendingInteraction, call_id: str | None, cwd: str
) -> Answer:
    """Request an approval. `call_id` is the waiting tool call, if the editor knows it."""
    assert isinstance(waiting.detail, ApprovalDetail)  # noqa: S101  # ensured by the type of the interaction
    call = _pending_call(call_id or waiting.id, waiting, waiting.detail, cwd)
    match await _request_choice(editor, session_id, call, PERMISSION_OPTIONS, is_known=call_id is not None):
        case "allow":
            return Approve()
        case "allow_always":
            return Approve(always=True)
        case None:
            return UNDECIDED
    return Deny("rejected in the editor")


def _pending_call(call_id: str, waiting: PendingInteraction, detail: ApprovalDetail, cwd: str) -> ToolCallUpdate:
    diffs = approval_diffs(detail.diff or "", detail.paths, cwd)
    shown = [text_content(detail.detail)] if detail.detail and not (diffs and "\n" in detail.detail) else []
    kind = "edit" if diffs else tool_kind(detail.tool_name or "")
    return ToolCallUpdate(
        tool_call_id=call_id,
        title=shorten(detail.command or (detail.action if diffs else waiting.description)),
        kind="execute" if detail.command is not None else kind,
        status="pending",
        content=[*shown, *diffs] or None,
        raw_input=detail.tool_input,
        locations=[location(path, cwd) for path in detail.paths] or None,
    )


async def _request_choice(
    editor: EditorConnection, session_id: str, call: ToolCallUpdate, options: list[PermissionOption], *, is_known: bool
) -> str | None:
    """Return the id of the chosen option. A call that the editor does not know yet starts and ends with the request."""
    chosen = None
    if not is_known:
        start = {**call.model_dump(exclude_none=True), "session_update": "tool_call"}
        await editor.session_update(session_id=session_id, update=ToolCallStart.model_validate(start))
    try:
        response = await editor.request_permission(session_id=session_id, tool_call=call, options=options)
        chosen = response.outcome.option_id if isinstance(response.outcome, AllowedOutcome) else None
    finally:
        if not is_known:
            await _end_call(editor, session_id, call.tool_call_id, was_granted=chosen not in {None, REJECT})
    return chosen


async def _end_call(editor: EditorConnection, session_id: str, call_id: str, *, was_granted: bool) -> None:
    status: Any = "completed" if was_granted else "failed"
    update = ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, status=status)
    with anyio.move_on_after(UPDATE_TIMEOUT, shield=True):
        await editor.session_update(session_id=session_id, update=update)


async def ask_question(
    editor: EditorConnection, session_id: str, waiting: PendingInteraction, can: ClientCapabilities | None
) -> Answer:
    """Request an answer. Editors without support for forms can offer options, but no free text."""
    assert isinstance(waiting.detail, InputDetail)  # noqa: S101  # ensured by the type of the interaction
    if can is not None and can.elicitation is not None and can.elicitation.form is not None:
        return await _request_form(editor, session_id, waiting.detail)
    if waiting.detail.options:
        return await _request_option(editor, session_id, waiting.id, waiting.detail)
    return Deny("this editor does not support text input; decide without an answer, or ask in your reply")


async def _request_form(editor: EditorConnection, session_id: str, detail: InputDetail) -> Answer:
    answer_schema = ElicitationStringPropertySchema(
        type="string", title="Answer", description=detail.context, enum=list(detail.options) or None
    )
    schema = ElicitationSchema(properties={ANSWER: answer_schema}, required=[ANSWER])
    mode = ElicitationFormSessionMode(session_id=session_id, requested_schema=schema)
    response = await editor.create_elicitation(detail.question, mode)
    answer = (response.content or {}).get(ANSWER) if isinstance(response, AcceptElicitationResponse) else None
    if answer is None:
        return UNDECIDED
    return Choice(str(answer)) if detail.options else Text(str(answer))


async def _request_option(editor: EditorConnection, session_id: str, call_id: str, detail: InputDetail) -> Answer:
    options = [
        PermissionOption(option_id=str(number), name=name, kind="allow_once")
        for number, name in enumerate(detail.options)
    ]
    options.append(PermissionOption(option_id=REJECT, name="Do not answer", kind="reject_once"))
    words = "\n\n".join(filter(None, (detail.question, detail.context)))
    call = ToolCallUpdate(
        tool_call_id=call_id,
        title=shorten(detail.question),
        kind="other",
        status="pending",
        content=[text_content(words)],
    )
    chosen = await _request_choice(editor, session_id, call, options, is_known=False) or ""
    if chosen.isdecimal() and int(chosen) < len(detail.options):
        return Choice(int(chosen))
    return UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionResponder:
    """Answers the requests of one session. Its methods are callbacks of runs, after policies and hooks."""

    editor: EditorConnection
    editor_capabilities: ClientCapabilities | None
    session_id: str
    cwd: str
    choices: SessionChoices
    run: Callable[[], SessionRun | None]
    """Returns the requesting run; None if no answer is needed any more."""

    async def permit(self, waiting: PendingInteraction) -> Answer:
        """Answer an approval request: by the session's approval mode, else in the editor."""
        match self.choices.mode:  # may have changed since the run started
            case "yolo":
                return Approve()
            case "deny":
                return Deny("this session denies everything that needs permission")
            case _:  # "prompt"; and "plan", where the plan itself is a request
                pass
        return await self._ask(waiting)

    async def answer(self, waiting: PendingInteraction) -> Answer:
        """Answer a question in the editor."""
        return await self._ask(waiting)

    async def _ask(self, waiting: PendingInteraction) -> Answer:
        run = self.run()
        answer: Answer = UNDECIDED
        if run is None:
            return answer
        with run.request_scope(waiting.id):
            await run.wait_until_reported(waiting.id)
            if waiting.type == "approval":
                call_id = run.updates.find_call(waiting)
                answer = await ask_permission(self.editor, self.session_id, waiting, call_id, self.cwd)
            else:
                answer = await ask_question(self.editor, self.session_id, waiting, self.editor_capabilities)
        return answer
