"""How pi changes its stored sessions: requests to `pi --mode rpc`, which opens the session. Measured with 0.87.1."""

from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SessionCommands,
    SessionSteps,
    StoredSessionRef,
)
from agent_mux_adapters._dialects.pi.session_changes import open_session, rename, rewind


def _open(session: StoredSessionRef) -> SessionSteps[None]:
    yield from open_session(session, "--mode", "rpc", "--session", str(session.path))


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    yield from _open(session)
    yield from rename(title)


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    yield from _open(session)
    return (yield from rewind("fork", request))


SESSIONS = SessionCommands(
    rename=_rename,
    rewind=_rewind,
    rewind_creates_session=True,
    missing={"delete": "only the list of sessions in its terminal deletes them"},
)
