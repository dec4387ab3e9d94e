"""Changing a file that somebody else owns: under a lock, in one step, and as a diff first if that is wanted.

Configuration as people are shown it: agents keep keys in theirs.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.redaction import HIDDEN, hide_secret_arguments, is_secret_name, redact_text, secret_values
from agent_mux.sdk.config import config_error
from agent_mux.sdk.documents import DocumentError, Format, empty_text, open_document


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a file, or would be."""

    path: Path
    form: Format
    before: str | None
    """None: there was no file."""
    after: str | None
    """None: there is none any more."""

    @property
    def is_needed(self) -> bool:
        """It makes a difference."""
        return (self.after or "") != (self.before or "")

    def diff(self) -> str:
        """As a unified diff; empty where there is no difference. May hold secrets, as the file does."""
        before, after = (self.before or "").splitlines(keepends=True), (self.after or "").splitlines(keepends=True)
        was = "/dev/null" if self.before is None else str(self.path)
        told = difflib.unified_diff(before, after, was, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in told)


def change_file(
    path: Path, form: Format, change: Callable[[str], str], *, private: bool = True, dry_run: bool = False
) -> Change:
    """Give a file the text that `change` makes of its text (of an empty document where there is no file).

    Args:
        path: Of the file; a symbolic link stays one.
        form: Its format.
        change: Text to text; a `DocumentError` of it is a CONFIG_ERROR about the file.
        private: What is new is for its owner only.
        dry_run: Only say what would be done.

    Raises:
        AgentMuxError: CONFIG_ERROR, CONFIG_LOCK_ERROR. Then nothing was written.
    """
    planned = _planned(path, form, change)  # what cannot be done leaves not even a lock
    if dry_run or not planned.is_needed:
        return planned
    with locked(path):
        planned = _planned(path, form, change)
        if planned.is_needed:
            write_text(path, planned.after or "", private=private)
    return planned


def _planned(path: Path, form: Format, change: Callable[[str], str]) -> Change:
    before = read_text(path)
    try:
        after = change(empty_text(form) if before is None else before)
    except DocumentError as error:
        raise config_error(path, error) from error
    if before is None and after == empty_text(form):
        after = ""  # nothing is to be said: no file is made for that
    return Change(path, form, before, after)


_ALWAYS = frozenset({"headers", "http_headers", "env_http_headers"})
"""Tables whose values are hidden, whatever they are called."""
SHORTEST = 4  # characters of a value that is hidden wherever it stands in a diff


def hidden(value: Any, name: str = "", *, inside: str = "") -> Any:
    """The same without its secrets: by the names of keys, and by the shape of values. `name`: its own key."""
    match value:
        case dict():
            return {key: hidden(item, str(key), inside=name) for key, item in value.items()}
        case list():
            words = list(hide_secret_arguments(value)) if all(isinstance(item, str) for item in value) else value
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
