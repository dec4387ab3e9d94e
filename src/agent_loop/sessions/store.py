"""Where sessions are kept. Source: phi-core, "SessionStore"."""
# DOC: """A session as a file says it: one JSON object, `{"format": 1, "session": {...}}`.
#
#      Fields that we do not know are passed over, so that an older program reads what a newer one added. A change that an
#      older program would get wrong raises the number.
#      """

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from agent_loop.errors import SessionError
from agent_loop.messages.formatting import encode_json
from agent_loop.sessions.session import Session


class SessionStore(Protocol):
    """Keeps sessions. All methods raise `SessionError` (and nothing else of their own) when they cannot."""

    async def save(self, session: Session) -> None:
        """Store it, whole or not at all. Raises `SessionLockedError` while somebody else writes the same one."""
        ...

    async def load(self, session_id: str) -> Session:
        """Raises `SessionNotFoundError`."""
        ...

    async def list_ids(self) -> Sequence[str]:
        """All there are, newest first."""
        ...

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Those of one agent, newest first."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove it. Raises `SessionNotFoundError`."""
        ...

    async def hold(self, session_id: str) -> None:
        """Nobody else may go on with this session until `release`. Raises `SessionLockedError` where somebody does."""
        ...

    async def release(self, session_id: str) -> None:
        """Others may go on with it; nothing happens where it is not held."""
        ...


FORMAT = 1
MAX_ID = 200
"""Characters of a session id: file names end at 255, and ours have something before and behind it."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class _Envelope(msgspec.Struct):
    format: int
    session: msgspec.Raw


class _StoredSession(msgspec.Struct):
    format: int
    session: Session


class _Head(msgspec.Struct):
    agent_id: str


class _HeadEnvelope(msgspec.Struct):
    session: _Head


def check_session_id(session_id: str) -> str:
    """The id, where it is fit for a file name. Raises `SessionError`."""
    if len(session_id) <= MAX_ID and _ID.fullmatch(session_id):
        return session_id
    raise SessionError(
        f"{session_id[:MAX_ID]!r} is no session id: use up to {MAX_ID} letters, digits, '_', '-' and '.', no '.' first"
    )


def encode_session(session: Session) -> bytes:
    """The session as it is stored. Raises `SessionError` for one that could not be read again."""
    _check_loops(session, f"session {session.session_id!r}")
    try:
        return encode_json(_StoredSession(FORMAT, session))
    except ValueError as error:
        raise SessionError(f"session {session.session_id!r} cannot be stored: {error}") from error


def decode_session(data: bytes, place: str) -> Session:
    """The session that was stored. Raises `SessionError`, naming `place`, for anything that is none."""
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if envelope.format > FORMAT:
            raise SessionError(f"{place} was written by a newer version (format {envelope.format}); use that one")
        session = msgspec.json.decode(envelope.session, type=Session)
    except (ValueError, RecursionError) as error:
        raise SessionError(f"{place} is no stored session: {error}; remove it, or put a copy in its place") from error
    _check_loops(session, place)
    return session


def read_agent_id(data: bytes) -> str | None:
    """Whose session it is, without reading all of it; None for what is no stored session."""
    try:
        return msgspec.json.decode(data, type=_HeadEnvelope).session.agent_id
    except (ValueError, RecursionError):
        return None


def _check_loops(session: Session, place: str) -> None:
    """Parents come first: `Session.history` would go round in circles otherwise."""
    all_ids = {loop.loop_id for loop in session.loops}
    seen: set[str] = set()
    for loop in session.loops:
        if loop.loop_id in seen:
            raise SessionError(f"{place} has two loops {loop.loop_id!r}; give each loop an id of its own")
        if loop.parent_loop_id in all_ids and loop.parent_loop_id not in seen:
            raise SessionError(f"{place} has a loop {loop.loop_id!r} that comes before the one it goes on from")
        if loop.base < 0:
            raise SessionError(f"{place} has a loop {loop.loop_id!r} that goes on from {loop.base} messages")
        seen.add(loop.loop_id)
