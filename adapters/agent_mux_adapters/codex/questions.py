"""What the app-server can ask us, as one shape: how it is shown, and how each reply is written.

Approvals of commands, patches, MCP tools, permissions and links; questions of the agent and forms of MCP servers, one
question per field, answered together.
"""

from typing import Any

import msgspec

from agent_mux.facts import ApprovalAsked, InputAsked, Risk
from agent_mux_adapters.codex.calls import PATCH_TOOL, SHELL_TOOL, FileChanges, McpCall
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.wire import read

_READING = frozenset({"read", "listFiles", "search"})


class Question(msgspec.Struct, kw_only=True):
    """A request of the app-server that a person has to decide."""

    asked: tuple[ApprovalAsked | InputAsked, ...]
    """One approval, or one question per field of a form."""
    item_id: str | None = None
    """The item that waits for it."""
    accept: Any = None
    """The result that approves."""
    accept_always: Any = None
    """The result that approves for the rest of the session; None: the same as `accept`."""
    decline: Any = None
    """The result that refuses, or leaves a form unanswered."""
    form: "Form | None" = None


class Form(msgspec.Struct):
    """The answers to a question's fields so far."""

    fields: dict[str, Any]
    """The schema of each field."""
    by_tool: bool
    """It is an MCP server's form, else the agent's own question."""
    answers: dict[str, Any] = {}


class _Action(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _Approval(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    item_id: str
    command: str | None = None
    reason: str | None = None
    command_actions: list[_Action] | None = None
    network_approval_context: dict[str, Any] | None = None
    additional_permissions: Any = None


def command_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`item/commandExecution/requestApproval`."""
    asked = read(_Approval, params)
    if asked is None:
        return None
    call = thread.calls.get(asked.item_id)
    detail = asked.command or getattr(call, "command", "")
    if asked.network_approval_context is not None:
        detail = f"{detail}\nnetwork access: {msgspec.json.encode(asked.network_approval_context).decode()}".strip()
    shown = ApprovalAsked(key, _because("Run a command", asked.reason), detail, _risk_of(asked), SHELL_TOOL)
    return _decision(shown, asked.item_id, thread)


def patch_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`item/fileChange/requestApproval`: what is to be changed was told when the item started."""
    asked = read(_Approval, params)
    if asked is None:
        return None
    call = thread.calls.get(asked.item_id)
    diff = call.diff(thread.cwd) if isinstance(call, FileChanges) else ""
    shown = ApprovalAsked(key, _because("Change files", asked.reason), diff, "medium", PATCH_TOOL)
    return _decision(shown, asked.item_id, thread)


class _Permissions(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    permissions: dict[str, Any]
    item_id: str | None = None
    reason: str | None = None


def permission_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`item/permissions/requestApproval`: more rights for what follows."""
    asked = read(_Permissions, params)
    if asked is None:
        return None
    wanted = {name: value for name, value in asked.permissions.items() if value is not None}
    detail = msgspec.json.encode(wanted).decode()
    return Question(
        asked=(ApprovalAsked(key, _because("Grant permissions", asked.reason), detail, "high"),),
        item_id=asked.item_id,
        accept={"permissions": wanted, "scope": "turn"},
        accept_always={"permissions": wanted, "scope": "session"},
        decline={"permissions": {}, "scope": "turn"},
    )


class _Option(msgspec.Struct, frozen=True, gc=False):
    label: str
    description: str | None = None


class _Field(msgspec.Struct, frozen=True, gc=False):
    id: str
    question: str
    header: str | None = None
    options: list[_Option] | None = None


class _UserInput(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    questions: list[_Field]
    item_id: str | None = None


def user_question(key: str, params: Any, _: Thread) -> Question | None:
    """`item/tool/requestUserInput`: the agent asks, several questions at once."""
    asked = read(_UserInput, params)
    if asked is None or not asked.questions:
        return None
    shown = tuple(InputAsked(f"{key}/{q.id}", q.question, _context_of(q), _labels(q)) for q in asked.questions)
    form = Form({question.id: None for question in asked.questions}, by_tool=False)
    return Question(asked=shown, item_id=asked.item_id, decline={"answers": {}}, form=form)


class _Elicitation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    server_name: str
    mode: str
    message: str = ""
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


def mcp_question(key: str, params: Any, thread: Thread) -> Question | None:
    """`mcpServer/elicitation/request`: may a tool run, would you open this link, or a form to fill in."""
    asked = read(_Elicitation, params)
    if asked is None:
        return None
    fields = (asked.requested_schema or {}).get("properties")
    if isinstance(fields, dict) and fields:
        return _form(key, asked, fields)
    meta = asked.meta or {}
    tool = meta.get("tool_name")
    call = _waiting_call(thread, asked.server_name, tool)
    risk: Risk = "low" if call is not None and call.read_only_hint else "medium"
    arguments = meta.get("tool_params")
    detail = asked.message if arguments is None else f"{asked.message}\n{msgspec.json.encode(arguments).decode()}"
    detail = detail if asked.url is None else f"{detail}\n{asked.url}"
    action = f"Call a tool of the MCP server {asked.server_name}" if tool else f"A request of {asked.server_name}"
    call_id = None if call is None or thread.is_inside else call.id
    name = tool if isinstance(tool, str) else None
    lasting = meta.get("persist")
    forever = {"_meta": {"persist": "session"}} if isinstance(lasting, list) and "session" in lasting else {}
    return Question(
        asked=(ApprovalAsked(key, action, detail, risk, name, call_id),),
        item_id=None if call is None else call.id,
        accept={"action": "accept", "content": {}},
        accept_always={"action": "accept", "content": {}, **forever},
        decline={"action": "decline", "content": None},
    )


def _form(key: str, asked: _Elicitation, fields: dict[str, Any]) -> Question:
    shown = tuple(
        InputAsked(f"{key}/{name}", _text(schema, "title") or name, _text(schema, "description") or asked.message,
                   _choices(schema), "tool")  # fmt: skip
        for name, schema in fields.items()
    )
    return Question(asked=shown, decline={"action": "decline", "content": None}, form=Form(fields, by_tool=True))


def _decision(shown: ApprovalAsked, item_id: str, thread: Thread) -> Question:
    # A call inside a sub-agent is not a call of the main stream: nothing there waits for it.
    asked = shown if thread.is_inside else msgspec.structs.replace(shown, call_id=item_id)
    return Question(
        asked=(asked,),
        item_id=item_id,
        accept={"decision": "accept"},
        accept_always={"decision": "acceptForSession"},
        decline={"decision": "decline"},
    )


def _because(action: str, reason: str | None) -> str:
    return f"{action}: {reason}" if reason else action


def _risk_of(asked: _Approval) -> Risk:
    """Codex asks for more rights, or because it trusts nothing; then reading is harmless."""
    if asked.reason or asked.network_approval_context is not None or asked.additional_permissions is not None:
        return "high"
    actions = asked.command_actions
    return "low" if actions and all(action.type in _READING for action in actions) else "medium"


def _waiting_call(thread: Thread, server: str, tool: Any) -> McpCall | None:
    calls = [call for call in thread.calls.values() if isinstance(call, McpCall) and call.server == server]
    return next((call for call in reversed(calls) if tool is None or call.tool == tool), None)


def _context_of(field: _Field) -> str | None:
    options = [f"{option.label}: {option.description}" for option in field.options or () if option.description]
    return "\n".join([*([field.header] if field.header else []), *options]) or None


def _labels(field: _Field) -> tuple[str, ...]:
    return tuple(option.label for option in field.options or ())


def _text(schema: Any, name: str) -> str | None:
    value = schema.get(name) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else None


def _choices(schema: Any) -> tuple[str, ...]:
    values = schema.get("enum") if isinstance(schema, dict) else None
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
