"""Changing a file that somebody else owns: atomically, under a lock, with a diff that hides secrets."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.redaction import HIDDEN, hide_secret_arguments, is_secret_name, redact_text, secret_values
from agent_mux.sdk.config import config_error
from agent_mux.sdk.documents import DocumentError, Format, empty_text, open_document

_SECRET_TABLES = frozenset({"headers", "http_headers", "env_http_headers"})
"""Tables whose values are all hidden, whatever their keys."""
SHORTEST = 4  # characters of a secret that is hidden wherever it occurs in a diff


@dataclass(frozen=True, slots=True)
class ConfigFileChange:
    """A change of a file, done or planned."""

    path: Path
    """Absolute path of the file."""
    form: Format
    """Format of the file."""
    before: str | None
    """The old text; None: the file did not exist."""
    after: str | None
    """The new text; None: the file is deleted."""

    @property
    def is_needed(self) -> bool:
        """Whether the old and the new text differ."""
        return (self.after or "") != (self.before or "")

    def diff(self) -> str:
        """Return a unified diff; empty if there is no difference. May contain secrets of the file."""
        before, after = (self.before or "").splitlines(keepends=True), (self.after or "").splitlines(keepends=True)
        from_name = "/dev/null" if self.before is None else str(self.path)
        lines = difflib.unified_diff(before, after, from_name, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def change_file(
    path: Path, form: Format, change: Callable[[str], str], *, private: bool = True, dry_run: bool = False
) -> ConfigFileChange:
    """Replace the text of a file by what `change` returns for it (for an empty document if the file is missing).

    Args:
        path: The file; a symbolic link is preserved.
        form: The format of the file.
        change: Returns the new text; a `DocumentError` that it raises is reported as CONFIG_ERROR of the file.
        private: Create a new file readable by its owner only.
        dry_run: Only return the change.

    Raises:
        AgentMuxError: CONFIG_ERROR, CONFIG_LOCK_ERROR. Nothing was written.
    """
    planned = _plan(path, form, change)  # before locking: a failed change leaves no lock file
    if dry_run or not planned.is_needed:
        return planned
    with locked(path):
        planned = _plan(path, form, change)
        if planned.is_needed:
            write_text(path, planned.after or "", private=private)
    return planned


def _plan(path: Path, form: Format, change: Callable[[str], str]) -> ConfigFileChange:
    before = read_text(path)
    try:
        after = change(empty_text(form) if before is None else before)
    except DocumentError as error:
        raise config_error(path, error) from error
    if before is None and after == empty_text(form):
        after = ""  # do not create a file without content
    return ConfigFileChange(path, form, before, after)


def hide_secrets(value: Any, name: str = "", *, inside: str = "") -> Any:
    """Return a JSON-like value with secrets hidden, recognized by the names of keys and the shape of values.

    Args:
        value: The value.
        name: The key of the value.
        inside: The key of the table that contains it.
    """
    match value:
        case dict():
            return {key: hide_secrets(item, str(key), inside=name) for key, item in value.items()}
        case list():
            items = list(hide_secret_arguments(value)) if all(isinstance(item, str) for item in value) else value
            return [hide_secrets(item, name, inside=inside) for item in items]
        case str() if value and (is_secret_name(name) or inside in _SECRET_TABLES):
            return HIDDEN
        case str():
            return HIDDEN if secret_values({"": value}) else redact_text(value)
    return value


def diff_without_secrets(change: ConfigFileChange) -> str:
    """Return the diff of a change with the secrets of both texts hidden."""
    diff = change.diff()
    secrets = {*_find_secrets(change.before, change.form), *_find_secrets(change.after, change.form)}
    for secret in sorted(secrets, key=len, reverse=True):
        diff = diff.replace(secret, HIDDEN)
    return redact_text(diff)


def _find_secrets(text: str | None, form: Format) -> Iterator[str]:
    """Yield the strings in a document that `hide_secrets` hides, line by line."""
    try:
        data = open_document(text or "", form).data()
    except DocumentError:  # an invalid file that is being repaired
        return
    waiting: list[tuple[Any, Any]] = [(data, hide_secrets(data))]
    while waiting:
        value, shown = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(value[key], shown[key]) for key in value]
        elif isinstance(value, list):
            waiting += zip(value, shown, strict=True)
        elif isinstance(value, str) and value != shown and len(value) >= SHORTEST:
            yield from value.splitlines()
