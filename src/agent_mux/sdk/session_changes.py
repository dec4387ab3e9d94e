"""How an adapter changes a stored session: with commands of its agent, or a conversation with its program.

A change is a generator of steps that performs no I/O: it yields what must happen next and receives the answer. The
core performs the steps; agent-mux never changes the agents' files itself. See docs/spec/run-api.md, section 6.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.framing import Framing

RewindScope = Literal["both", "conversation", "files"]
"""What a rewind changes: the conversation, the files that the agent edited, or both."""
SessionChange = Literal["delete", "rename", "rewind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessionRef:
    """A stored session, and the program that changes it."""

    executable: str
    """Absolute path of the agent's program."""
    native_id: str
    path: Path
    """File that contains the session, possibly with others."""
    cwd: str
    """Directory in which the steps run: that of the session."""
    has_own_cwd: bool
    """Whether `cwd` is the session's directory. False: that is unknown or gone, and `cwd` is another one."""


# -- steps


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program to its end. The answer is a `ProgramOutput`; an exit code other than 0 fails the change."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartProgram:
    """Start a program that reads and writes JSON messages until the change is complete. The answer is None."""

    argv: tuple[str, ...]
    framing: Framing = "lines"
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Write one message to the program. The answer is None."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceiveMessage:
    """Wait for the next JSON object of the program, which is the answer. Lines of other text are skipped."""


class ProgramOutput(NamedTuple):
    """What a program printed that ended with exit code 0."""

    stdout: str
    stderr: str


_Result = TypeVar("_Result")
SessionStep = RunProgram | StartProgram | SendMessage | ReceiveMessage
SessionSteps = Generator[SessionStep, Any, _Result]


class SessionChangeRefusedError(Exception):
    """The agent refused a change. The message is a phrase with the reason."""


def run_words(session: StoredSessionRef, *words: str) -> SessionSteps[None]:
    """Run the agent's program with these arguments."""
    yield RunProgram((session.executable, *words))


# -- what an agent offers


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindRequest:
    """Where to rewind a session, and what."""

    checkpoint: str
    """The agent's own id of the prompt before which the session is restored."""
    previous: str | None
    """The id of the prompt before that one; None: it is the first prompt."""
    scope: RewindScope


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindOutcome:
    """The result of a rewind, as the agent reported it."""

    session_id: str | None = None
    """The agent's own id of the session with the shorter conversation; None: the session itself."""
    files: tuple[str, ...] = ()
    """Paths of the files that the agent restored, as far as it names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommands(Declaration):
    """How an agent changes its stored sessions, without asking. None: the agent cannot."""

    delete: Callable[[StoredSessionRef], SessionSteps[None]] | None = None
    rename: Callable[[StoredSessionRef, str], SessionSteps[None]] | None = None
    """Takes the session and its new title."""
    rewind: Callable[[StoredSessionRef, RewindRequest], SessionSteps[RewindOutcome]] | None = None
    scopes: tuple[RewindScope, ...] = ("conversation",)
    """What a rewind can change; the first one is the default."""
    rewind_creates_session: bool = False
    """Whether a rewind leaves the session as it is, and stores the shorter conversation as a new one."""
    missing: Mapping[SessionChange, str] = field(default_factory=dict)
    """Why the agent cannot make a change, as a phrase."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that keep the programs from prompting and from coloring their output."""
