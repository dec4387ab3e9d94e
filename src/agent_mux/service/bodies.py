"""JSON that programs send, made into what everything behind can take: numbers of one kind, texts without NUL."""

from typing import Any

from agent_mux.errors import FieldError, ValidationError

LARGEST = 1 << 53  # beyond it, not every whole number is a float
NO_NUL = "text without NUL characters"


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


def _check(text: str, path: str) -> None:
    if "\0" in text:
        raise ValidationError([FieldError(path or "(body)", "a NUL character", NO_NUL)])
