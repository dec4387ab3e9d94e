"""How OpenCode changes its stored sessions: `opencode session delete`, and requests to `opencode serve`.

Measured with 1.18.33. A rewind marks the messages as reverted, and restores the files that OpenCode edited from its own
snapshots; the next prompt removes the marked messages. A session can be reverted again before that.
"""

import sys
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.session_changes import (
    ReceiveMessage,
    RewindOutcome,
    RewindRequest,
    SendMessage,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
    run_words,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.argv import BRIDGE

_OK = range(200, 300)


def _request(session: StoredSessionRef, method: str, path: str, body: Mapping[str, Any]) -> SessionSteps[Any]:
    """Start the server, send one request, and return the body of the response."""
    yield StartProgram((sys.executable, "-I", "-S", str(BRIDGE), session.executable, session.cwd))
    yield SendMessage({"id": 1, "method": method, "path": path, "body": body})
    while True:
        message = yield ReceiveMessage()
        if message.get("id") != 1 or "status" not in message:
            continue
        if message["status"] not in _OK:
            answered = mapping(message.get("body"))
            reason = text(message.get("error")) or text(mapping(answered.get("data")).get("message"))
            raise SessionChangeRefusedError(f"{method} {path}: {reason or message['status']}")
        return message.get("body")


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    yield from _request(session, "PATCH", f"/session/{session.native_id}", {"title": title})


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    path = f"/session/{session.native_id}/revert"
    yield from _request(session, "POST", path, {"messageID": request.checkpoint})
    return RewindOutcome()


SESSIONS = SessionCommands(
    delete=lambda session: run_words(session, "session", "delete", session.native_id),
    rename=_rename,
    rewind=_rewind,
    scopes=("both",),
)
