"""The abstract steps of a model that solves a coding task. `harnesses` compiles them to the tools of each harness.

Names of files are relative to the workspace; `{workspace}` is its absolute path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Answer",
    "Change",
    "Create",
    "Fault",
    "Files",
    "Find",
    "Look",
    "Mistake",
    "MultiChange",
    "Run",
    "Step",
    "Task",
]

Fault = Literal["rate limited", "overloaded", "broken stream", "cut", "empty"]
"""What happens instead of an answer, which the model gives when it is called again.

`cut`: the output limit ends the answer in the middle of its last call. `broken stream`: so does the connection.
"""
MistakeKind = Literal["unknown tool", "missing argument", "additional argument", "wrong type", "invalid JSON"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expectation:
    shows: str = ""
    """A text that the result must contain, so that the model can continue."""
    otherwise: tuple["Step", ...] = ()
    """What the model does if the step fails; empty: it gives up."""


@dataclass(frozen=True, slots=True)
class Find(_Expectation):
    """Search all files for a regular expression."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Files(_Expectation):
    """List the files whose name matches a pattern, such as `*.py`."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Look(_Expectation):
    """Read a file, page after page until `shows` is visible."""

    name: str


@dataclass(frozen=True, slots=True)
class Change(_Expectation):
    """Replace a text that occurs once in a file.

    After an error, the model reads the file and tries again with the exact text, twice at most.
    """

    name: str
    old: str
    new: str
    wrong: str = ""
    """What the model writes instead of `old` at first."""
    repeats: bool = False
    """Whether the model writes `wrong` at each attempt, because it cannot produce the exact text."""
    wrong_new: str = ""
    """What the model writes instead of `new` as long as it writes `wrong`."""


@dataclass(frozen=True, slots=True)
class MultiChange(_Expectation):
    """Replace several texts in a file: in one call where the harness has a tool for it, else in one answer."""

    name: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Create(_Expectation):
    """Write a whole file."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Run(_Expectation):
    """Run a command line."""

    command: str
    seconds: int | None = None
    """The time limit that the model sets."""
    background: bool = False
    """Whether the command continues while the model works."""


@dataclass(frozen=True, slots=True)
class Mistake(_Expectation):
    """A malformed call for a step. If it fails, the model makes the call without the mistake."""

    kind: MistakeKind
    step: "Step"


Step = Find | Files | Look | Change | MultiChange | Create | Run | Mistake


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model: the calls of these steps."""

    steps: tuple[Step, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A repository with a failing hidden test, and the work of a model that solves it."""

    name: str
    quirk: str
    """What the model or the machine does that a harness must cope with."""
    prompt: str
    files: Mapping[str, str | bytes]
    hidden: str
    """The module with the hidden tests."""
    work: tuple[Answer | Step, ...]
    """The answers of the model; a step is an answer with one call."""
    executable: tuple[str, ...] = ()
    """Files with the executable bit."""
    links: Mapping[str, str] | None = None
    """Symbolic links: name and target."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers of the model, in order."""
        return tuple(each if isinstance(each, Answer) else Answer((each,)) for each in self.work)
