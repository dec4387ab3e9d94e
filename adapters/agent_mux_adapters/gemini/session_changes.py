"""How Gemini CLI changes its stored sessions: `gemini --delete-session`. Measured with 0.61.0.

It takes the id of a session or its number in `--list-sessions`, which lists those of the project. An argument that is
not an id in this list is parsed as a number by its leading digits, and the exit code is 0 in any case. So the id must
be in the list, and the output is read.
"""

import re

from agent_mux.sdk.session_changes import (
    ProgramOutput,
    RunProgram,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StoredSessionRef,
)

_LISTED = re.compile(r"^ +(\d+)\. .* \[([^\[\]]+)\]$", re.MULTILINE)
_DELETED = re.compile(r"^Deleted session (\d+):", re.MULTILINE)


def _delete(session: StoredSessionRef) -> SessionSteps[None]:
    if not session.has_own_cwd:
        raise SessionChangeRefusedError("its directory is gone, and gemini finds sessions by their directory")
    listed: ProgramOutput = yield RunProgram((session.executable, "--list-sessions"))
    numbers = {found[2]: found[1] for found in _LISTED.finditer(listed.stdout)}
    if session.native_id not in numbers:
        raise SessionChangeRefusedError("`gemini --list-sessions` does not list it in its directory")
    argument = delete_argument(session.native_id, numbers)
    done: ProgramOutput = yield RunProgram((session.executable, f"--delete-session={argument}"))
    if _DELETED.search(done.stdout) is None:
        reason = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
        raise SessionChangeRefusedError(f"`gemini --delete-session`: {reason}")


def delete_argument(native_id: str, numbers: dict[str, str]) -> str:
    """Return an unambiguous argument for this session, also for releases that accept only numbers.

    It is the id, which stays valid if another process deletes a session meanwhile. An id that begins with the number of
    another session is replaced by its own number.
    """
    digits = re.match(r"\d+", native_id)
    is_ambiguous = digits is not None and str(int(digits[0])) in numbers.values()
    return numbers[native_id] if is_ambiguous else native_id


SESSIONS = SessionCommands(
    delete=_delete,
    missing={
        "rename": "it has no titles of the user",
        "rewind": "its `/rewind` and `/restore` change a session that is open in its terminal, not a stored one",
    },
)
