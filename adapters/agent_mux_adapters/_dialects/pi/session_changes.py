"""How agents of this dialect change their stored sessions: requests in rpc mode to the agent, which opens the session.

A rewind is their own branch: it stores the part before the prompt as a new session, and leaves the old one as it is. A
session without a prompt is not stored, so that there is no branch before the first prompt. Measured with pi 0.87.1 and
omp 18.2.3.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk.session_changes import (
    ReceiveMessage,
    RewindOutcome,
    RewindRequest,
    SendMessage,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StoredSessionRef,
)
from agent_mux_adapters._dialects.tolerant import mapping, text


def ask(kind: str, **fields: str) -> SessionSteps[Mapping[str, Any]]:
    """Send a request and return the data of its response. Raises `SessionChangeRefusedError` if it failed."""
    yield SendMessage({"id": kind, "type": kind, **fields})
    while True:
        message = yield ReceiveMessage()
        if message.get("type") != "response" or message.get("id") != kind:
            continue
        if message.get("success") is not True:
            raise SessionChangeRefusedError(f"{kind}: {text(message.get('error'))}")
        return mapping(message.get("data"))


def session_commands(
    open_session: Callable[[StoredSessionRef], SessionSteps[None]], branch: str, **more: Any
) -> SessionCommands:
    """Return how an agent changes its sessions. Renaming and rewinding differ only in these arguments.

    Args:
        open_session: Starts the agent in rpc mode with the session.
        branch: Type of the request that branches.
        more: Other fields of `SessionCommands`.
    """

    def rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
        yield from open_session(session)
        yield from ask("set_session_name", name=title)

    def rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
        yield from open_session(session)
        return (yield from _rewind(branch, request))

    return SessionCommands(rename=rename, rewind=rewind, rewind_creates_session=True, **more)


def _rewind(kind: str, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    """Branch the open session before a prompt. `kind`: type of the request that branches."""
    before = yield from ask("get_state")
    done = yield from ask(kind, entryId=request.checkpoint)
    if done.get("cancelled") is True:
        raise SessionChangeRefusedError(f"{kind}: an extension cancelled it")
    after = text((yield from ask("get_state")).get("sessionId"))
    if not after or after == before.get("sessionId"):
        raise SessionChangeRefusedError(f"{kind}: it opened no new session")
    return RewindOutcome(session_id=after)
