"""Open a document by its format, change one field and check the result; read the header of a definition file.

The header of a skill or sub-agent is YAML front matter between two `---` lines, or a whole TOML file.
"""

import re
from pathlib import Path
from typing import Any, Literal

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents.document import Document, DocumentError, FieldPath, Format, with_value, without_value

_EMPTY: dict[Format, str] = {"json": "{}\n", "toml": "", "yaml": ""}


def open_document(text: str, form: Format) -> Document:
    """The document that a text is. Raises `DocumentError` with the place where it is none."""
    match form:
        case "json":
            from agent_mux.sdk.documents.json_document import JsonDocument  # noqa: PLC0415  # each needs its own library

            return JsonDocument(text)
        case "toml":
            from agent_mux.sdk.documents.toml_document import TomlDocument  # noqa: PLC0415

            return TomlDocument(text)
        case "yaml":
            from agent_mux.sdk.documents.yaml_document import YamlDocument  # noqa: PLC0415

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


LARGEST = 1 << 20  # bytes of a file whose header is read
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)


def read_header(path: Path, kind: Literal["yaml", "toml"]) -> dict[str, Any]:
    """The header of a file. Raises CONFIG_ERROR where it has none, or none that can be read."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error
    front = _FRONT.match(text)
    if kind == "yaml" and front is None:
        missing = f"{path} has no header; it begins with a line ---, name: and description:, and another line ---"
        raise AgentMuxError("CONFIG_ERROR", missing)
    try:
        return open_document(front.group(1) if front is not None and kind == "yaml" else text, kind).data()
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"the header of {path} cannot be read: {error}") from error
