"""Why data is not the JSON form of a class: one format for the errors of msgspec and of our own readers."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from agent_mux.errors import AgentMuxError, ValidationError

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why data is not the JSON form of a class."""

    location: Location
    message: str
    is_missing: bool = False
    """Whether a required field is absent."""
    received: Any = ...
    """The invalid value with secrets hidden; `...`: the value at the location."""


class InvalidDataError(Exception):
    """Data is not the JSON form of a class."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


@contextmanager
def reported_problems(under: Location = (), *, leave_out: int = 0) -> Iterator[None]:
    """Raise `InvalidDataError` for every error of a reader.

    Args:
        under: The location of what is read.
        leave_out: Number of leading parts of a location that the data does not have.
    """
    try:
        yield
    except InvalidDataError as error:
        problems = error.problems
    except msgspec.ValidationError as error:
        problems = (_problem_of(str(error)),)
    except ValidationError as error:
        problems = tuple(
            Problem(_steps(one.path), f"allowed: {one.allowed}", received=one.received) for one in error.fields
        )
    except RecursionError:
        problems = (Problem((), "nested too deeply"),)
    except AgentMuxError as error:
        problems = (Problem((), error.message),)
    else:
        return
    raise InvalidDataError([replace(one, location=(*under, *one.location[leave_out:])) for one in problems])


_PLACE = re.compile(r"(?P<message>.*) - at `(?:key` in `)?\$(?P<path>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.+)`")
_STEP = re.compile(r"\[(\d+)\]|\[(\.\.\.)\]|([^.\[\]]+)")


def _problem_of(text: str) -> Problem:
    """Parse a message of msgspec: ``Expected `int`, got `str` - at `$.cost.inputTokens` ``."""
    placed = _PLACE.fullmatch(text)
    message, path = (placed["message"], placed["path"]) if placed else (text, "")
    missing = _MISSING.fullmatch(message)
    if missing:
        return Problem((*_steps(path), missing[1]), message, is_missing=True)
    return Problem(_steps(path), message)


def _steps(path: str) -> Location:
    if path == "(request)":
        return ()
    return tuple(int(index) if index else unknown or name for index, unknown, name in _STEP.findall(path))
