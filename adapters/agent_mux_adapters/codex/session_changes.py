"""How Codex changes its stored sessions: `codex delete`, and requests to `codex app-server`.

Measured with 0.169.0.
"""

from agent_mux.sdk import __version__
from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SendMessage,
    SessionCommands,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
    run_words,
)
from agent_mux_adapters._dialects.session_calls import SessionRpc


def _open_server(session: StoredSessionRef) -> SessionSteps[SessionRpc]:
    rpc = SessionRpc(with_version=False)
    yield StartProgram((session.executable, "app-server"))
    client = {"name": "agent_mux", "title": "agent-mux", "version": __version__}
    yield from rpc.call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
    yield SendMessage({"method": "initialized"})
    return rpc


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    rpc = yield from _open_server(session)
    yield from rpc.call("thread/name/set", {"threadId": session.native_id, "name": title})


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    rpc = yield from _open_server(session)
    yield from rpc.call("thread/resume", {"threadId": session.native_id})
    yield from rpc.call("thread/revert", {"threadId": session.native_id, "beforeTurnId": request.checkpoint})
    return RewindOutcome()


SESSIONS = SessionCommands(
    delete=lambda session: run_words(session, "delete", "--force", session.native_id),
    rename=_rename,
    rewind=_rewind,
)
