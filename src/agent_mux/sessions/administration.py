"""Delete, rename and rewind stored sessions by the agents' own programs; agent-mux never changes their files itself."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar, assert_never

from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.process.messages import MessageProgram
from agent_mux.sdk.session_changes import (
    ProgramOutput,
    ReceiveMessage,
    RewindOutcome,
    RewindRequest,
    RunProgram,
    SendMessage,
    SessionChange,
    SessionChangeRefusedError,
    SessionCommands,
    SessionStep,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
)
from agent_mux.sessions.library import StoredSession

TIMEOUT = 120.0  # seconds for one change; some CLIs start for many seconds
MAX_TITLE_LENGTH = 200
_NO_COMMAND = "it has no command for that"
_Result = TypeVar("_Result")


def delete_session(known: StoredSession) -> None:
    """Delete a session with its agent's own program.

    Raises `CapabilityError` if the agent cannot, AGENT_NOT_INSTALLED, AGENT_CRASH if it fails, TIMEOUT.
    """
    commands = commands_of(known)
    if commands.delete is None:
        raise cannot_delete(known)
    _perform(known, commands, commands.delete(_ref(known)))


def rename_session(known: StoredSession, title: str) -> None:
    """Set the title of a session with its agent's own program. Raises like `delete_session`."""
    commands = commands_of(known)
    if commands.rename is None:
        hint = f"{_reason(commands, 'rename')}; `amux sessions tag {known.summary.id} TAG` marks the session here"
        raise CapabilityError(known.adapter.agent, "renaming sessions", hint=hint)
    if not title.strip() or not title.isprintable() or len(title) > MAX_TITLE_LENGTH or title.startswith("-"):
        allowed = f"1 to {MAX_TITLE_LENGTH} printable characters that do not begin with a hyphen"
        raise ValidationError([FieldError("title", title, allowed)])
    _perform(known, commands, commands.rename(_ref(known), title))


def rewind_session(known: StoredSession, request: RewindRequest) -> RewindOutcome:
    """Rewind a session with its agent's own program. Raises like `delete_session`."""
    commands = commands_of(known)
    if commands.rewind is None:
        raise cannot_rewind(known)
    return _perform(known, commands, commands.rewind(_ref(known), request))


def commands_of(known: StoredSession) -> SessionCommands:
    """Return how the agent changes its sessions."""
    return known.adapter.installation().sessions or SessionCommands()


def cannot_delete(known: StoredSession) -> CapabilityError:
    """Return the error for an agent whose sessions cannot be deleted."""
    hint = f"{_reason(commands_of(known), 'delete')}; the session is stored in {known.summary.path}"
    return CapabilityError(known.adapter.agent, "deleting sessions", hint=hint)


def cannot_rewind(known: StoredSession) -> CapabilityError:
    """Return the error for an agent whose sessions cannot be rewound."""
    hint = (
        f"{_reason(commands_of(known), 'rewind')}; `amux sessions fork {known.summary.id} PROMPT` starts a new session"
        " from its history"
    )
    return CapabilityError(known.adapter.agent, "rewinding sessions", hint=hint)


def _reason(commands: SessionCommands, change: SessionChange) -> str:
    return commands.missing.get(change, _NO_COMMAND)


def _ref(known: StoredSession) -> StoredSessionRef:
    cwd = known.summary.cwd
    has_own_cwd = cwd is not None and Path(cwd).is_dir()
    return StoredSessionRef(
        executable=find_executable(known.adapter, os.environ),
        native_id=known.summary.native_id,
        path=known.found.path,
        cwd=cwd if cwd is not None and has_own_cwd else str(Path.cwd()),
        has_own_cwd=has_own_cwd,
    )


def _perform(known: StoredSession, commands: SessionCommands, steps: SessionSteps[_Result]) -> _Result:
    """Perform the steps of a change; return its result."""
    ref = _ref(known)
    with ExitStack() as stack:
        performer = _StepPerformer(ref, commands, stack)
        answer: Any = None
        try:
            while True:
                answer = performer.perform(steps.send(answer))
        except StopIteration as done:
            result: _Result = done.value
            return result
        except SessionChangeRefusedError as error:
            raise AgentMuxError(
                "AGENT_CRASH", f"{known.adapter.agent} did not change {known.summary.id}: {error}"
            ) from None


class _StepPerformer:
    """Performs the steps of one change, within one time limit."""

    def __init__(self, session: StoredSessionRef, commands: SessionCommands, stack: ExitStack) -> None:
        self._session = session
        self._environ = {**os.environ, **commands.environment}
        self._deadline = time.monotonic() + TIMEOUT
        self._stack = stack
        self._program: MessageProgram | None = None

    def perform(self, step: SessionStep) -> Any:
        match step:
            case RunProgram(argv):
                return self._run(argv)
            case StartProgram(argv, framing, environment):
                program = MessageProgram(
                    argv,
                    environ={**self._environ, **environment},
                    cwd=self._session.cwd,
                    framing=framing,
                    deadline=self._deadline,
                )
                self._program = self._stack.enter_context(program)
                return None
            case SendMessage(message):
                return self._started.send(message)
            case ReceiveMessage():
                return self._started.receive()
            case _:
                assert_never(step)

    @property
    def _started(self) -> MessageProgram:
        assert self._program is not None, "the adapter starts a program first"  # noqa: S101
        return self._program

    def _run(self, argv: tuple[str, ...]) -> ProgramOutput:
        remaining = max(1.0, self._deadline - time.monotonic())
        answer = run_program(argv, environ=self._environ, timeout=remaining, cwd=self._session.cwd)
        if answer.exit_code != 0:
            shown = " ".join((Path(argv[0]).name, *argv[1:]))
            message = f"`{shown}` failed (exit code {answer.exit_code}): {answer.error_line}"
            raise AgentMuxError("AGENT_CRASH", message)
        return ProgramOutput(answer.stdout, answer.stderr)
