"""How Copilot changes its stored sessions: requests to `copilot --headless --stdio`. Measured with 1.0.102.

A rewind restores no files: Copilot saves them only for clients that request it before the first turn of a session.
"""

from typing import Any

from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
)
from agent_mux_adapters._dialects.session_calls import SessionRpc
from agent_mux_adapters._dialects.tolerant import mapping, text

_FLAGS = ("--headless", "--no-auto-update", "--stdio")
_MAX_NAME = 100
_REWOUND = frozenset({"success", "checkpoint-cleanup-failed", "snapshot-prune-failed"})
"""Outcomes after which the conversation is shorter; the last two concern only Copilot's own copies."""


def _connect(session: StoredSessionRef) -> SessionSteps[SessionRpc]:
    rpc = SessionRpc(with_version=True)
    yield StartProgram((session.executable, *_FLAGS), framing="content-length")
    yield from rpc.call("connect", {})
    return rpc


def _resume(session: StoredSessionRef) -> SessionSteps[SessionRpc]:
    rpc = yield from _connect(session)
    yield from rpc.call("session.resume", {"sessionId": session.native_id, "workingDirectory": session.cwd})
    return rpc


def _delete(session: StoredSessionRef) -> SessionSteps[None]:
    rpc = yield from _connect(session)
    yield from rpc.call("sessions.delete", {"sessionId": session.native_id})


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    if len(title) > _MAX_NAME:
        raise SessionChangeRefusedError(f"its names have at most {_MAX_NAME} characters")
    rpc = yield from _resume(session)
    yield from rpc.call("session.name.set", {"sessionId": session.native_id, "name": title})
    yield from _close(rpc, session)


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    rpc = yield from _resume(session)
    params: dict[str, Any] = {
        "sessionId": session.native_id, "eventId": request.checkpoint, "mode": "conversation",
    }  # fmt: skip
    done = yield from rpc.call("session.history.rewind", params)
    if text(done.get("outcome")) not in _REWOUND:
        reason = text(mapping(done.get("error")).get("message")) or text(done.get("error")) or text(done.get("outcome"))
        raise SessionChangeRefusedError(f"session.history.rewind: {reason}")
    yield from _close(rpc, session)
    return RewindOutcome()


def _close(rpc: SessionRpc, session: StoredSessionRef) -> SessionSteps[None]:
    """Have Copilot write the session to its file: it would lose the last events at the end of its input."""
    yield from rpc.call("sessions.close", {"sessionId": session.native_id})


SESSIONS = SessionCommands(delete=_delete, rename=_rename, rewind=_rewind)
