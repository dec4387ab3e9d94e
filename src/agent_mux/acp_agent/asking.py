"""What the agent asks, put to the person in the editor: permissions and questions."""

from typing import Any, Protocol

from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from agent_mux.acp_agent.contents import said
from agent_mux.acp_agent.tool_kinds import kind_of, location, one_line
from agent_mux.run.interaction import ApprovalDetail, Approve, Choice, Deny, InputDetail, PendingInteraction, Text
from agent_mux.run.interaction import Response as Answer

ONCE, ALWAYS, NO = "allow", "allow_always", "reject"
ANSWER = "answer"
OPTIONS = [
    PermissionOption(option_id=ONCE, name="Allow", kind="allow_once"),
    PermissionOption(option_id=ALWAYS, name="Always allow", kind="allow_always"),
    PermissionOption(option_id=NO, name="Reject", kind="reject_once"),
]
NOT_DECIDED = Deny("the person in the editor did not decide")


class Editor(Protocol):
    """The part of the connection that asks."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask whether something may be done."""
        ...

    async def create_elicitation(self, message: str, mode: Any) -> Any:
        """Ask for something to be filled in."""
        ...


async def ask_permission(
    editor: Editor, session_id: str, waiting: PendingInteraction, call_id: str | None, cwd: str
) -> Answer:
    """May it? `call_id`: the tool call that waits, where it is known."""
    assert isinstance(waiting.detail, ApprovalDetail)  # noqa: S101  # by the type of the interaction
    call = call_waiting(waiting, waiting.detail, call_id, cwd)
    told = await editor.request_permission(session_id, call, OPTIONS)
    match told.outcome:
        case AllowedOutcome(option_id="allow"):
            return Approve()
        case AllowedOutcome(option_id="allow_always"):
            return Approve(always=True)
        case AllowedOutcome():
            return Deny("the person in the editor said no")
    return NOT_DECIDED


def call_waiting(waiting: PendingInteraction, detail: ApprovalDetail, call_id: str | None, cwd: str) -> ToolCallUpdate:
    """The tool call of a permission: of one that nobody saw, the request itself is shown."""
    if call_id is None:
        call_id = waiting.id
    return ToolCallUpdate(
        tool_call_id=call_id,
        title=one_line(detail.command or waiting.description),
        kind="execute" if detail.command is not None else kind_of(detail.tool_name or ""),
        status="pending",
        content=[said(detail.detail)] if detail.detail else None,
        locations=[location(path, cwd) for path in detail.paths] or None,
    )


async def ask_question(
    editor: Editor, session_id: str, waiting: PendingInteraction, can: ClientCapabilities | None
) -> Answer:
    """What shall it be? Editors that know no forms can offer options, and no free text."""
    assert isinstance(waiting.detail, InputDetail)  # noqa: S101  # by the type of the interaction
    if can is not None and can.elicitation is not None and can.elicitation.form is not None:
        return await _fill_in(editor, session_id, waiting.detail)
    if waiting.detail.options:
        return await _choose(editor, session_id, waiting, waiting.detail)
    return Deny("this editor cannot ask its person for a text; decide without, or ask in your answer")


async def _fill_in(editor: Editor, session_id: str, detail: InputDetail) -> Answer:
    asked = ElicitationStringPropertySchema(
        type="string", title="Answer", description=detail.context, enum=list(detail.options) or None
    )
    schema = ElicitationSchema(properties={ANSWER: asked}, required=[ANSWER])
    mode = ElicitationFormSessionMode(session_id=session_id, requested_schema=schema)
    told = await editor.create_elicitation(detail.question, mode)
    answer = (told.content or {}).get(ANSWER) if isinstance(told, AcceptElicitationResponse) else None
    if answer is None:
        return NOT_DECIDED
    return Choice(str(answer)) if detail.options else Text(str(answer))


async def _choose(editor: Editor, session_id: str, waiting: PendingInteraction, detail: InputDetail) -> Answer:
    options = [
        PermissionOption(option_id=str(number), name=name, kind="allow_once")
        for number, name in enumerate(detail.options)
    ]
    options.append(PermissionOption(option_id=NO, name="Do not answer", kind="reject_once"))
    call = ToolCallUpdate(
        tool_call_id=waiting.id,
        title=one_line(detail.question),
        kind="other",
        status="pending",
        content=[said("\n\n".join(filter(None, (detail.question, detail.context))))],
    )
    told = await editor.request_permission(session_id, call, options)
    match told.outcome:
        case AllowedOutcome(option_id=chosen) if chosen.isdecimal() and int(chosen) < len(detail.options):
            return Choice(int(chosen))
    return NOT_DECIDED
