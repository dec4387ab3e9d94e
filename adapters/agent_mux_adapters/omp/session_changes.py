"""How omp changes its stored sessions: requests to `omp --mode=rpc`, which opens the session. Measured with 18.2.3.

Its command `/session delete` is a prompt that omp executes itself, without its model.
"""

from agent_mux.sdk.session_changes import SessionChangeRefusedError, SessionSteps, StartProgram, StoredSessionRef
from agent_mux_adapters._dialects.pi.session_changes import ask, session_commands
from agent_mux_adapters.omp.argv import COMMON


def _open(session: StoredSessionRef) -> SessionSteps[None]:
    yield StartProgram((session.executable, "--mode=rpc", *COMMON, f"--resume={session.path}"))


def _delete(session: StoredSessionRef) -> SessionSteps[None]:
    yield from _open(session)
    if (yield from ask("get_state")).get("sessionId") != session.native_id:
        raise SessionChangeRefusedError("it opened another session")
    if (yield from ask("prompt", message="/session delete")).get("agentInvoked") is not False:
        raise SessionChangeRefusedError("it has no command `/session delete`")
    # At its exit omp writes an entry into the open session, which would create the deleted file again.
    yield from ask("new_session")


SESSIONS = session_commands(_open, "branch", delete=_delete)
