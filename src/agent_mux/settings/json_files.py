"""Our own JSON files: read strictly, remembered while they stay what they are, changed where something changes.

Source: run API, section 1 (a corrupt file is CONFIG_ERROR naming file, line and column).
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
_Made = TypeVar("_Made")
_Mark = tuple[int, int, int]


def read_object(path: Path) -> dict[str, Any] | None:
    """What a file says; None where there is none. Raises CONFIG_ERROR."""
    text = read_text(path)
    return None if text is None else parse_object(text, str(path))


def parse_object(text: str, where: str) -> dict[str, Any]:
    """One JSON object: strict JSON, in which no key stands twice. `where` names it in errors. Raises CONFIG_ERROR."""
    try:
        value = parse_value(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _bad(f"{where} is not JSON: {place}: {error.msg}; correct it or move it away") from error
    except (ValueError, RecursionError) as error:
        raise _bad(f"{where} is not JSON that can be used: {error}; correct it or move it away") from error
    if not isinstance(value, dict):
        raise _bad(f"{where} is no JSON object (line 1, column 1); write {{...}}")
    return value


def parse_value(text: str) -> Any:
    """One value of strict JSON. Raises `ValueError`, or `RecursionError`."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)


def edit_object(text: str, told: Mapping[str, Any]) -> str:
    """The text of an object with some of its keys set, or removed (None), and everything else as it is.

    `a.b` is the key `b` of the object `a`. Raises VALIDATION_ERROR for a way that leads nowhere.
    """
    for key, value in told.items():
        way = tuple(key.split("."))
        try:
            text = without_field(text, "json", way) if value is None else with_field(text, "json", way, value)
        except DocumentError as error:
            raise AgentMuxError("VALIDATION_ERROR", f"{key} cannot be set: {error.problem}") from error
    return text


class FileCache(Generic[_Made]):
    """What was made of files, made again only when a file changed."""

    def __init__(self, make: Callable[[Path], _Made]) -> None:
        """`make` reads a file; it is called for one that is not there, too."""
        self._make = make
        self._made: dict[Path, tuple[_Mark | None, _Made]] = {}

    def of(self, path: Path) -> _Made:
        """What `make` says of this file. Raises what it raises."""
        mark = _mark_of(path)
        remembered = self._made.get(path)
        if remembered is None or remembered[0] != mark:
            remembered = self._made[path] = (mark, self._make(path))
        return remembered[1]


def _mark_of(path: Path) -> _Mark | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


def _bad(message: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", message)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large a number")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the key {name!r} stands twice in one object")
        made[name] = value
    return made
