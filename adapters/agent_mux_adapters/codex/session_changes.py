"""How Codex changes its stored sessions: requests to `codex app-server`.

`codex delete` does the same as `thread/delete`, but reports no reason when it fails. Measured with 0.171.0.
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
)
from agent_mux_adapters._dialects.session_calls import SessionRpc


def _open_server(session: StoredSessionRef) -> SessionSteps[SessionRpc]:
    rpc = SessionRpc(with_version=False)
    yield StartProgram((session.executable, "app-server"))
    client = {"name": "agent_mux", "title": "agent-mux", "version": __version__}
    yield from rpc.call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
    yield SendMessage({"method": "initialized"})
    return rpc


def _delete(session: StoredSessionRef) -> SessionSteps[None]:
    rpc = yield from _open_server(session)
    yield from rpc.call("thread/delete", {"threadId": session.native_id})


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    rpc = yield from _open_server(session)
    yield from rpc.call("thread/name/set", {"threadId": session.native_id, "name": title})


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    rpc = yield from _open_server(session)
    yield from rpc.call("thread/resume", {"threadId": session.native_id})
    yield from rpc.call("thread/revert", {"threadId": session.native_id, "beforeTurnId": request.checkpoint})
    return RewindOutcome()


SESSIONS = SessionCommands(
    delete=_delete,
    rename=_rename,
    rewind=_rewind,
)
