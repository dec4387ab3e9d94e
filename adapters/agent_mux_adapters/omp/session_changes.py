"""How omp changes its stored sessions: requests to `omp --mode=rpc`, which opens the session. Measured with 18.2.3.

Its command `/session delete` is a prompt that omp executes itself, without its model.
"""

from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StoredSessionRef,
)
from agent_mux_adapters._dialects.pi.session_changes import ask, open_session, rename, rewind
from agent_mux_adapters.omp.argv import COMMON


def _open(session: StoredSessionRef) -> SessionSteps[None]:
    yield from open_session(session, "--mode=rpc", *COMMON, f"--resume={session.path}")


def _delete(session: StoredSessionRef) -> SessionSteps[None]:
    yield from _open(session)
    if (yield from ask("get_state")).get("sessionId") != session.native_id:
        raise SessionChangeRefusedError("it opened another session")
    if (yield from ask("prompt", message="/session delete")).get("agentInvoked") is not False:
        raise SessionChangeRefusedError("it has no command `/session delete`")
    # At its exit omp writes an entry into the open session, which would create the deleted file again.
    yield from ask("new_session")


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    yield from _open(session)
    yield from rename(title)


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    yield from _open(session)
    return (yield from rewind("branch", request))


SESSIONS = SessionCommands(delete=_delete, rename=_rename, rewind=_rewind, rewind_creates_session=True)
