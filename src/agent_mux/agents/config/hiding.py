"""Configuration as people are shown it: agents keep keys in theirs."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux.agents.config.editing import Change
from agent_mux.redaction import HIDDEN, is_secret_name, redact_text, secret_values, without_secret_values
from agent_mux.sdk.documents import DocumentError, Format, open_document

_ALWAYS = frozenset({"headers", "http_headers", "env_http_headers"})
"""Tables whose values are hidden, whatever they are called."""
SHORTEST = 4  # characters of a value that is hidden wherever it stands in a diff


def hidden(value: Any, name: str = "", *, inside: str = "") -> Any:
    """The same without its secrets: by the names of keys, and by the shape of values. `name`: its own key."""
    match value:
        case dict():
            return {key: hidden(item, str(key), inside=name) for key, item in value.items()}
        case list():
            words = list(without_secret_values(value)) if all(isinstance(item, str) for item in value) else value
            return [hidden(item, name, inside=inside) for item in words]
        case str() if value and (is_secret_name(name) or inside in _ALWAYS):
            return HIDDEN
        case str():
            return HIDDEN if secret_values({"": value}) else redact_text(value)
    return value


def hidden_diff(change: Change) -> str:
    """What a change does, without the secrets of the file."""
    told = change.diff()
    for secret in sorted(
        {*_secrets(change.before, change.form), *_secrets(change.after, change.form)}, key=len, reverse=True
    ):
        told = told.replace(secret, HIDDEN)
    return redact_text(told)


def _secrets(text: str | None, form: Format) -> Iterator[str]:
    """The strings of a text that are not shown."""
    try:
        data = open_document(text or "", form).data()
    except DocumentError:  # it is being mended
        return
    waiting: list[tuple[Any, Any]] = [(data, hidden(data))]
    while waiting:
        value, shown = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(value[key], shown[key]) for key in value]
        elif isinstance(value, list):
            waiting += zip(value, shown, strict=True)
        elif isinstance(value, str) and value != shown and len(value) >= SHORTEST:
            yield from value.splitlines()
