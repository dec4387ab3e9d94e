"""A text becomes a document; and what a change may have done to it is looked at."""

from typing import Any

from agent_mux.documents.document import Document, DocumentError, FieldPath, Format
from agent_mux.documents.values import with_value, without_value

_EMPTY: dict[Format, str] = {"json": "{}\n", "toml": "", "yaml": ""}


def open_document(text: str, form: Format) -> Document:
    """The document that a text is. Raises `DocumentError` with the place where it is none."""
    match form:
        case "json":
            from agent_mux.documents.json_document import JsonDocument  # noqa: PLC0415  # each needs its own library

            return JsonDocument(text)
        case "toml":
            from agent_mux.documents.toml_document import TomlDocument  # noqa: PLC0415

            return TomlDocument(text)
        case "yaml":
            from agent_mux.documents.yaml_document import YamlDocument  # noqa: PLC0415

            return YamlDocument(text)


def empty_text(form: Format) -> str:
    """A document that says nothing, for a file that is not there yet."""
    return _EMPTY[form]


def with_field(text: str, form: Format, path: FieldPath, value: Any) -> str:
    """The text with another value at one place. Raises `DocumentError`, also when it would say anything else then."""
    document = open_document(text, form)
    wanted = with_value(document.data(), path, value)
    document.set(path, value)
    return _checked(document.text, form, wanted)


def without_field(text: str, form: Format, path: FieldPath) -> str:
    """The text without the value at one place; the same text where there is none. Raises `DocumentError`."""
    document = open_document(text, form)
    before = document.data()
    if not document.unset(path):
        return text
    return _checked(document.text, form, without_value(before, path))


def _checked(text: str, form: Format, wanted: dict[str, Any]) -> str:
    """What was written says what it should, and nothing else: a file of somebody's is about to be replaced by it."""
    if open_document(text, form).data() != wanted:
        raise DocumentError("the change cannot be made without changing something else; make it with an editor")
    return text
