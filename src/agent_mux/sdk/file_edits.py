"""The edits in the input of a tool that changes files, by the field names that agents use."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux.sdk.facts import FileEdit

_PATHS = ("file_path", "filePath", "path", "notebook_path", "filename", "fileName")
_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text")
_WHOLE = ("content", "file_text", "contents", "newFileContents")
_ALL = ("replace_all", "replaceAll", "allowMultiple", "allow_multiple")
_SOURCE, _CELL, _EDIT_MODE = "new_source", "cell_id", "edit_mode"


def edits_of(tool_input: Any) -> tuple[FileEdit, ...]:
    """Return the edits in the input of a tool that writes or edits a file; empty if it has another shape."""
    if not isinstance(tool_input, Mapping):
        return ()
    path = _first_text(tool_input, _PATHS)
    if not path:
        return ()
    listed = tool_input.get("edits")
    parts = [tool_input, *(listed if isinstance(listed, list) else [])]
    return tuple(edit for part in parts if isinstance(part, Mapping) for edit in _edit_in(path, part))


def _edit_in(path: str, fields: Mapping[str, Any]) -> Iterator[FileEdit]:
    old, new = _first_text(fields, _OLD), _first_text(fields, _NEW)
    whole = _first_text(fields, _WHOLE)
    if old is not None or new is not None:
        yield FileEdit(path, new or "", old or "", any(fields.get(name) is True for name in _ALL))
    elif whole is not None:
        yield FileEdit(path, whole)
    elif isinstance(fields.get(_SOURCE), str):
        mode = fields.get(_EDIT_MODE)
        cell = _first_text(fields, (_CELL,)) or "new"
        yield FileEdit(path, "" if mode == "delete" else fields[_SOURCE], "" if mode == "insert" else None, cell=cell)


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), None)
