"""What checks receive: the trial, and its public part for functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The result of a trial, for a function that is a check.

    The function runs in a process of its own, whose working directory is the checkout. It returns None or True if the
    trial passes, False or a sentence if it fails; an exception is a failure with its message. Code of the checkout is
    written by an agent: run it as a program of its own instead of importing it.
    """

    checkout: Path
    """The working directory of the task in a fresh checkout with the changes of the trial."""
    result: Mapping[str, Any] | None
    """The result of the run (`RunResult.to_dict()`); None if there was no run."""
    changed: tuple[str, ...]
    """Paths of the files that the trial changed, relative to the checkout."""
    arguments: Mapping[str, Any]
    """`arguments` of the definition of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTrial:
    """What all checks of one trial share."""

    checkout: Path
    """Without symbolic links."""
    result: Mapping[str, Any] | None
    changed: tuple[str, ...]
    is_wanted: Callable[[], bool]
