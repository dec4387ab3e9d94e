"""How pi changes its stored sessions: requests to `pi --mode rpc`, which opens the session. Measured with 0.87.1."""

from agent_mux.sdk.session_changes import SessionSteps, StartProgram, StoredSessionRef
from agent_mux_adapters._dialects.pi.session_changes import session_commands


def _open(session: StoredSessionRef) -> SessionSteps[None]:
    yield StartProgram((session.executable, "--mode", "rpc", "--session", str(session.path)))


SESSIONS = session_commands(_open, "fork", missing={"delete": "only the list of sessions in its terminal deletes them"})
