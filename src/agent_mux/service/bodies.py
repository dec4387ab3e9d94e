"""What programs send, made into what everything behind can take: numbers of one kind, texts without NUL."""

from collections import Counter
from typing import Any

from starlette.requests import HTTPConnection

from agent_mux.errors import FieldError, ValidationError

LARGEST = 1 << 53  # beyond it, not every whole number is a float
NO_NUL = "text without NUL characters"
REPEATED = frozenset({"tag", "state"})
"""Query parameters that may stand several times."""


def tidied(value: Any, path: str = "") -> Any:
    """The same with `5.0` as 5: JSON knows one kind of numbers. Source: RFC 8259, section 6.

    Raises `ValidationError` for a NUL character: databases, paths and arguments of programs cannot have one.
    """
    match value:
        case float() if value.is_integer() and abs(value) < LARGEST:
            return int(value)
        case str():
            _check(value, path)
        case dict():
            for key in value:
                _check(key, path)
            return {key: tidied(part, f"{path}.{key}" if path else key) for key, part in value.items()}
        case list():
            return [tidied(part, f"{path}[{index}]") for index, part in enumerate(value)]
    return value


def check_target(connection: HTTPConnection) -> None:
    """Refuse a path or a query with a NUL character, and a parameter that is said twice: which one would count?"""
    query = connection.query_params.multi_items()
    if "\0" in connection.scope["path"] or any("\0" in text for pair in query for text in pair):
        raise ValidationError([FieldError("(path)", "a NUL character", NO_NUL)])
    counted = Counter(name for name, _ in query if name not in REPEATED)
    twice = [FieldError(name, f"{count} times", "once") for name, count in counted.items() if count > 1]
    if twice:
        raise ValidationError(twice)


def _check(text: str, path: str) -> None:
    if "\0" in text:
        raise ValidationError([FieldError(path or "(body)", "a NUL character", NO_NUL)])
