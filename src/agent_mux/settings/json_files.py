"""Reading, caching and editing our own JSON files.

Reading is strict: a file that is not valid JSON, or has a duplicate key, raises CONFIG_ERROR with its path, line and
column. Editing changes the named keys only and preserves the rest of the text.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from agent_mux._util.files import read_text
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents import DocumentError, with_field, without_field

EMPTY = "{}\n"
_Value = TypeVar("_Value")
_FileStamp = tuple[int, int, int]  # modification time, size, inode


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None if the file does not exist. Raises CONFIG_ERROR."""
    text = read_text(path)
    return None if text is None else parse_object(text, str(path))


def parse_object(text: str, where: str) -> dict[str, Any]:
    """Parse one JSON object, strictly. `where` names the source in errors. Raises CONFIG_ERROR."""
    try:
        value = parse_value(text)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise _config_error(f"{where} is not JSON: {position}: {error.msg}; correct it or move it away") from error
    except (ValueError, RecursionError) as error:
        raise _config_error(f"{where} is not valid JSON: {error}; correct it or move it away") from error
    if not isinstance(value, dict):
        raise _config_error(f"{where} is not a JSON object (line 1, column 1); write {{...}}")
    return value


def parse_value(text: str) -> Any:
    """Parse one value of strict JSON: no NaN, no infinity, no duplicate keys. Raises ValueError or RecursionError."""
    return json.loads(
        text, parse_constant=_reject_constant, parse_float=_parse_finite, object_pairs_hook=_reject_duplicates
    )


def edit_object(text: str, changes: Mapping[str, Any]) -> str:
    """Return the text of an object with some keys set, or removed (None); the rest of the text is unchanged.

    `a.b` means the key `b` of the object `a`. Raises VALIDATION_ERROR if a parent of the key is not an object.
    """
    for key, value in changes.items():
        path = tuple(key.split("."))
        try:
            text = without_field(text, "json", path) if value is None else with_field(text, "json", path, value)
        except DocumentError as error:
            raise AgentMuxError("VALIDATION_ERROR", f"{key} cannot be set: {error.problem}") from error
    return text


class FileCache(Generic[_Value]):
    """Values read from files, read again only when a file has changed."""

    def __init__(self, read: Callable[[Path], _Value]) -> None:
        """Use `read` to produce the value of a file; it is also called for paths that do not exist."""
        self._read = read
        self._values: dict[Path, tuple[_FileStamp | None, _Value]] = {}

    def get(self, path: Path) -> _Value:
        """Return the value of a file. Raises what `read` raises."""
        stamp = _stamp(path)
        cached = self._values.get(path)
        if cached is None or cached[0] != stamp:
            cached = self._values[path] = (stamp, self._read(path))
        return cached[1]


def _stamp(path: Path) -> _FileStamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _config_error(message: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", message)


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large a number")
    return number


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"duplicate key {name!r} in one object")
        result[name] = value
    return result
