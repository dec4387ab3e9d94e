"""Forms: the agent's own questions and those of MCP servers. One question per field, answered together."""

import math
from typing import Any

import msgspec

from agent_mux.facts import InputAsked
from agent_mux_adapters.codex.questions import Form, Question
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.wire import read

_BOOLEANS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}


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


def mcp_form(key: str, message: str, fields: dict[str, Any]) -> Question:
    """`mcpServer/elicitation/request` with a schema that has fields."""
    shown = tuple(
        InputAsked(
            f"{key}/{name}",
            _text(schema, "title") or name,
            _text(schema, "description") or message,
            _choices(schema),
            "tool",
        )
        for name, schema in fields.items()
    )
    return Question(asked=shown, decline={"action": "decline", "content": None}, form=Form(fields, by_tool=True))


def typed_answer(form: Form, field: str, text: str) -> Any:
    """The answer as the field's schema wants it; None when it cannot be that."""
    if not form.by_tool:
        return text
    schema = form.fields.get(field)
    match _text(schema, "type"):
        case "boolean":
            return _BOOLEANS.get(text.strip().lower())
        case "integer":
            return _number(int, text)
        case "number":
            return _number(float, text)
    allowed = _choices(schema)
    return text if not allowed or text in allowed else None


def wanted_answer(form: Form, field: str) -> str:
    """What the field allows, in words."""
    schema = form.fields.get(field)
    return ", ".join(_choices(schema)) or f"a {_text(schema, 'type') or 'text'}"


def filled_in(form: Form) -> Any:
    """The whole form as the result of the request. The agent's own questions may stay without an answer."""
    if form.by_tool:
        return {"action": "accept", "content": form.answers}
    return {"answers": {name: {"answers": [] if text is None else [text]} for name, text in form.answers.items()}}


def _number(kind: type[int] | type[float], text: str) -> float | None:
    try:
        number = kind(text.strip())
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


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
