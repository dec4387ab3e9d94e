"""Our own JSON files: read strictly, remembered while they stay what they are, written whole.

Source: run API, section 1 (a corrupt file is CONFIG_ERROR naming file, line and column).
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from agent_mux.errors import AgentMuxError
from agent_mux.storage import read_text, write_text

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


def write_object(path: Path, value: dict[str, Any], *, private: bool) -> None:
    """Replace what a file says. Raises CONFIG_ERROR."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", private=private)


def parse_value(text: str) -> Any:
    """One value of strict JSON. Raises `ValueError`, or `RecursionError`."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)


def changed(before: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """An object with some of its keys set, or removed (None). `a.b` is the key `b` of the object `a`."""
    after = dict(before)
    for key, value in told.items():
        head, dot, rest = key.partition(".")
        inner = after.get(head)
        new = changed(inner if isinstance(inner, Mapping) else {}, {rest: value}) or None if dot else value
        if new is None:
            after.pop(head, None)
        else:
            after[head] = new
    return after


class Remembered(Generic[_Made]):
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
