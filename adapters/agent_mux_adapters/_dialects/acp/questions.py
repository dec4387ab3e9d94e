"""Questions of the agent: forms of `elicitation/create`, and permission requests that are really questions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.sdk.facts import ApprovalRequested, InputRequested
from agent_mux_adapters._dialects.tolerant import mapping, rows, text


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpQuestion:
    """A request with one or more questions; the response is sent when the last of them is answered."""

    asked: tuple[InputRequested, ...]
    reply: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Builds the result for the agent from the answers by request id."""
    decline: Mapping[str, Any] | None = None
    """The result that declines; None: the request is rejected like a permission request."""
    optional: frozenset[str] = frozenset()
    """Request ids of questions that may stay unanswered."""
    parse: Callable[[str, str], Any] = lambda _request_id, answer: answer
    """Converts the answer to a question (by request id) to the agent's type; None when the answer is invalid."""
    describe: Callable[[str], str] = lambda _request_id: "a text"
    """Describes the allowed answers of a question (by request id)."""


def choice_question(
    request_id: str, question: str, options: Mapping[str, str], context: str | None = None
) -> AcpQuestion:
    """Return the question of a permission request whose options (id to name) are the answers."""
    ids = {name: option_id for option_id, name in reversed(tuple(options.items()))} | {key: key for key in options}

    def reply(answers: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"outcome": {"outcome": "selected", "optionId": answers[request_id]}}

    return AcpQuestion(
        asked=(InputRequested(request_id, question, context, tuple(options.values())),),
        reply=reply,
        parse=lambda _, answer: ids.get(answer),
        describe=lambda _: ", ".join(options.values()),
    )


# -- `elicitation/create`: a form with one question per field, or a link to open

ELICITATION_DECLINED = {"action": "decline"}
ELICITATION_CANCELLED = {"action": "cancel"}
_BOOLEANS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}


def link_approval(key: str, params: Mapping[str, Any]) -> ApprovalRequested:
    """Return the approval that asks whether to open a link."""
    detail = f"{text(params.get('message'))}\n{text(params.get('url'))}".strip()
    return ApprovalRequested(key, "Open a link", detail, "medium")


def form_question(key: str, params: Mapping[str, Any]) -> AcpQuestion:
    """Return the questions of a form.

    A form without fields asks for consent with a single yes-or-no question.
    """
    schema, message = mapping(params.get("requestedSchema")), text(params.get("message"))
    fields = mapping(schema.get("properties"))
    if not fields:
        return _consent_asked(key, message)
    names = {f"{key}/{name}": name for name in fields}
    required = schema.get("required")

    def reply(answers: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"action": "accept", "content": {names[request_id]: value for request_id, value in answers.items()}}

    return AcpQuestion(
        asked=tuple(_field_asked(key, name, fields, message) for name in fields),
        reply=reply,
        decline=ELICITATION_DECLINED,
        optional=frozenset(key for key, name in names.items() if isinstance(required, list) and name not in required),
        parse=lambda request_id, answer: parse_answer(fields[names[request_id]], answer),
        describe=lambda request_id: describe_field(fields[names[request_id]]),
    )


def _field_asked(key: str, name: str, fields: Mapping[str, Any], message: str) -> InputRequested:
    schema, is_only = mapping(fields[name]), len(fields) == 1
    question = text(schema.get("title")) or (message if is_only else name) or name
    context = text(schema.get("description")) or message
    return InputRequested(
        f"{key}/{name}", question, context if context != question else None, tuple(field_choices(schema))
    )


def _consent_asked(key: str, message: str) -> AcpQuestion:
    return AcpQuestion(
        asked=(InputRequested(key, message, None, ("yes", "no")),),
        reply=lambda answers: {"action": "accept", "content": {}} if answers[key] else ELICITATION_DECLINED,
        decline=ELICITATION_DECLINED,
        parse=lambda _, answer: parse_answer({"type": "boolean"}, answer),
        describe=lambda _: "yes, no",
    )


def parse_answer(schema: Any, answer: str) -> Any:
    """Convert an answer to the type of the field's schema; None when it is invalid."""
    fields = mapping(schema)
    match fields.get("type"):
        case "boolean":
            return _BOOLEANS.get(answer.strip().lower())
        case "integer":
            return _number(int, answer)
        case "number":
            return _number(float, answer)
        case "array":
            return _several(fields, answer)
    allowed = field_choices(schema)
    return _chosen(allowed, answer) if allowed else answer


def field_choices(schema: Any) -> dict[str, str]:
    """Return the allowed choices: the label shown to a person, mapped to the value."""
    fields = mapping(schema)
    fields = mapping(fields.get("items")) if fields.get("type") == "array" else fields
    plain = fields.get("enum")
    named = rows(fields.get("oneOf")) or rows(fields.get("anyOf"))
    found = {text(row.get("title")) or text(row.get("const")): text(row.get("const")) for row in named}
    return found or {value: value for value in (plain if isinstance(plain, list) else ()) if isinstance(value, str)}


def describe_field(schema: Any) -> str:
    """Describe in words what the field allows."""
    return ", ".join(field_choices(schema)) or f"a {text(mapping(schema).get('type')) or 'text'}"


def _chosen(allowed: Mapping[str, str], answer: str) -> str | None:
    return allowed.get(answer, answer if answer in allowed.values() else None)


def _several(schema: Mapping[str, Any], answer: str) -> list[str] | None:
    parts = [part.strip() for part in answer.split(",") if part.strip()]
    allowed = field_choices(schema)
    found = [_chosen(allowed, part) for part in parts] if allowed else parts
    return None if any(value is None for value in found) else [value for value in found if value is not None]


def _number(kind: type[int] | type[float], answer: str) -> float | None:
    try:
        number = kind(answer.strip())
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
