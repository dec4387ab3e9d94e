"""Forms: the agent's own questions and those of MCP servers. Each field is one question; all are answered together."""

import math
from typing import Any

import msgspec

from agent_mux.sdk.facts import InputRequested
from agent_mux_adapters._dialects.choices import context_of
from agent_mux_adapters.codex.wire import read

_BOOLEANS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}


class CodexForm(msgspec.Struct):
    """A form and the answers to its fields so far."""

    fields: dict[str, Any]
    """The schema of each field by its name."""
    by_tool: bool
    """Whether an MCP server asks; otherwise the agent itself does."""
    answers: dict[str, Any] = {}


class _Option(msgspec.Struct, frozen=True, gc=False):
    label: str
    description: str | None = None


class _Question(msgspec.Struct, frozen=True, gc=False):
    id: str
    question: str
    header: str | None = None
    options: list[_Option] | None = None


class UserInputRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Parameters of `item/tool/requestUserInput`: one or more questions of the agent."""

    questions: list[_Question]
    item_id: str | None = None


def read_user_questions(key: str, params: Any) -> tuple[UserInputRequest, tuple[InputRequested, ...], CodexForm] | None:
    """Read the agent's questions: their request, one fact for each, and an empty form. None when there are none."""
    request = read(UserInputRequest, params)
    if request is None or not request.questions:
        return None
    asked = tuple(InputRequested(f"{key}/{q.id}", q.question, _context_of(q), _labels(q)) for q in request.questions)
    return request, asked, CodexForm({question.id: None for question in request.questions}, by_tool=False)


def questions_of_schema(key: str, message: str, fields: dict[str, Any]) -> tuple[InputRequested, ...]:
    """Return one question for each field of an MCP server's schema. `message` describes fields without description."""
    return tuple(
        InputRequested(
            f"{key}/{name}",
            _text(schema, "title") or name,
            _text(schema, "description") or message,
            _choices(schema),
            "tool",
        )
        for name, schema in fields.items()
    )


def parse_answer(form: CodexForm, field: str, text: str) -> Any:
    """Convert an answer to the type in the field's schema; None when it is not valid."""
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


def describe_allowed(form: CodexForm, field: str) -> str:
    """Return a description of the values that the field allows, for an error message."""
    schema = form.fields.get(field)
    return ", ".join(_choices(schema)) or f"a {_text(schema, 'type') or 'text'}"


def form_result(form: CodexForm) -> Any:
    """Return the result of the request with all answers. Questions of the agent may stay unanswered."""
    if form.by_tool:
        return {"action": "accept", "content": form.answers}
    return {"answers": {name: {"answers": [] if text is None else [text]} for name, text in form.answers.items()}}


def _number(kind: type[int] | type[float], text: str) -> float | None:
    try:
        number = kind(text.strip())
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _context_of(question: _Question) -> str | None:
    return context_of(question.header, ((option.label, option.description) for option in question.options or ()))


def _labels(question: _Question) -> tuple[str, ...]:
    return tuple(option.label for option in question.options or ())


def _text(schema: Any, name: str) -> str | None:
    value = schema.get(name) if isinstance(schema, dict) else None
    return value if isinstance(value, str) else None


def _choices(schema: Any) -> tuple[str, ...]:
    values = schema.get("enum") if isinstance(schema, dict) else None
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
