"""Delete and rename stored sessions with the agents' own commands; agent-mux never changes their files itself."""

import os
from pathlib import Path

from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.installation import CommandArguments, SessionCommands
from agent_mux.sessions.library import StoredSession

TIMEOUT = 120.0  # seconds; some CLIs start for several seconds
MAX_TITLE_LENGTH = 200


def delete_session(known: StoredSession) -> tuple[str, ...]:
    """Delete a session with its agent's own command, and return the command.

    Raises `CapabilityError` if the agent has no such command, AGENT_NOT_INSTALLED, AGENT_CRASH if it fails.
    """
    commands = _commands_of(known)
    if commands is None or commands.delete is None:
        where = f"it has no command for that; the session is stored in {known.summary.path}"
        raise CapabilityError(known.adapter.agent, "deleting sessions", hint=where)
    return _run(known, commands, commands.delete(known.summary.native_id))


def rename_session(known: StoredSession, title: str) -> tuple[str, ...]:
    """Set the title of a session with its agent's own command, and return the command. Raises like `delete_session`."""
    commands = _commands_of(known)
    if commands is None or commands.rename is None:
        hint = f"it has no command for that; `amux sessions tag {known.summary.id} TAG` marks the session here"
        raise CapabilityError(known.adapter.agent, "renaming sessions", hint=hint)
    if not title.strip() or not title.isprintable() or len(title) > MAX_TITLE_LENGTH or title.startswith("-"):
        allowed = f"1 to {MAX_TITLE_LENGTH} printable characters that do not begin with a hyphen"
        raise ValidationError([FieldError("title", title, allowed)])
    return _run(known, commands, commands.rename(known.summary.native_id, title))


def _commands_of(known: StoredSession) -> SessionCommands | None:
    return known.adapter.installation().sessions


def _run(known: StoredSession, commands: SessionCommands, words: CommandArguments) -> tuple[str, ...]:
    cwd = known.summary.cwd
    answer = run_program(
        (find_executable(known.adapter, os.environ), *words),
        environ={**os.environ, **commands.environment},
        timeout=TIMEOUT,
        cwd=cwd if cwd is not None and Path(cwd).is_dir() else None,
    )
    if answer.exit_code != 0:
        shown = " ".join((Path(answer.argv[0]).name, *words))
        message = f"`{shown}` failed (exit code {answer.exit_code}): {answer.error_line}"
        raise AgentMuxError("AGENT_CRASH", message)
    return answer.argv
