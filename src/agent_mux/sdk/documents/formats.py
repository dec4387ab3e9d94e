"""Open documents by format, change single fields safely, and read the headers of definition files.

The header of a skill or sub-agent is YAML front matter between two `---` lines, or a whole TOML or YAML file.
"""

import re
from pathlib import Path
from typing import Any, Literal

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents.document import Document, DocumentError, FieldPath, Format, with_value, without_value

_EMPTY_TEXTS: dict[Format, str] = {"json": "{}\n", "toml": "", "yaml": ""}


def open_document(text: str, form: Format) -> Document:
    """Parse a text. Raises `DocumentError` with the position of the first syntax error."""
    match form:
        case "json":
            from agent_mux.sdk.documents.json_document import JsonDocument  # noqa: PLC0415  # load the library of this format only

            return JsonDocument(text)
        case "toml":
            from agent_mux.sdk.documents.toml_document import TomlDocument  # noqa: PLC0415

            return TomlDocument(text)
        case "yaml":
            from agent_mux.sdk.documents.yaml_document import YamlDocument  # noqa: PLC0415

            return YamlDocument(text)


def empty_text(form: Format) -> str:
    """Return the text of a new document without content."""
    return _EMPTY_TEXTS[form]


def with_field(text: str, form: Format, path: FieldPath, value: Any) -> str:
    """Return the text with one field set. Raises `DocumentError`, also if any other field would change."""
    document = open_document(text, form)
    expected = with_value(document.data(), path, value)
    document.set(path, value)
    return _checked(document.text, form, expected)


def without_field(text: str, form: Format, path: FieldPath) -> str:
    """Return the text without one field, unchanged if the field is not set. Raises `DocumentError`."""
    document = open_document(text, form)
    before = document.data()
    if not document.unset(path):
        return text
    return _checked(document.text, form, without_value(before, path))


def _checked(text: str, form: Format, expected: dict[str, Any]) -> str:
    """Return the text if its content is as expected: it will replace a file of the user."""
    if open_document(text, form).data() != expected:
        raise DocumentError("this change would also change other fields; make it in an editor")
    return text


MAX_HEADER_SIZE = 1 << 20  # bytes; the rest of a file is not read
HeaderFormat = Literal["yaml", "toml", "yaml_file"]
"""`yaml`: between two lines of three hyphens at the beginning; `toml`, `yaml_file`: the whole file."""
_FRONT_MATTER = r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$"


def read_header(path: Path, kind: HeaderFormat) -> dict[str, Any]:
    """Return the header of a definition file. Raises CONFIG_ERROR if it is missing or invalid."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_HEADER_SIZE).decode("utf-8", "replace")
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error
    if kind == "yaml":
        front = re.match(_FRONT_MATTER, text, re.DOTALL | re.MULTILINE)
        if front is None:
            missing = f"{path} has no header; it begins with a line ---, name: and description:, and another line ---"
            raise AgentMuxError("CONFIG_ERROR", missing)
        text = front.group(1)
    try:
        return open_document(text, "toml" if kind == "toml" else "yaml").data()
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"the header of {path} cannot be read: {error}") from error
