"""Edit JSON, TOML and YAML texts in place: comments, order, unknown keys and spacing remain unchanged.

Each format has a class that implements `Document`. Only `formats.read_header` reads files; nothing here writes any.
"""

from agent_mux.sdk.documents.document import Document, DocumentError, FieldPath, Format, field_name, parse_field
from agent_mux.sdk.documents.formats import empty_text, open_document, with_field, without_field

__all__ = [
    "Document",
    "DocumentError",
    "FieldPath",
    "Format",
    "empty_text",
    "field_name",
    "open_document",
    "parse_field",
    "with_field",
    "without_field",
]
