"""Texts of configuration, changed so that what is not touched stays as it is: comments, order, unknown keys, spacing.

One class for each format; all are a `Document`. Nothing here reads or writes a file.
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
