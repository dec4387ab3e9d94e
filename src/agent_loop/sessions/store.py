"""The interface of session stores, and the JSON form of a session: `{"format": 1, "session": {...}}`.

Unknown fields are ignored, so that older programs can read additions of newer ones. An incompatible change increases
the format number.
"""

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from agent_loop.errors import SessionError
from agent_loop.messages.formatting import encode_json
from agent_loop.sessions.session import Session

FORMAT = 1
MAX_ID = 200
"""Characters of a session id: file names are limited to 255, and stores add a prefix and a suffix."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class SessionStore(Protocol):
    """Interface of session stores. Methods raise `SessionError` if the store cannot be read or written."""

    async def save(self, session: Session) -> None:
        """Store the session atomically. Raises `SessionLockedError` if another process is writing it."""
        ...

    async def load(self, session_id: str) -> Session:
        """Return the session. Raises `SessionNotFoundError`."""
        ...

    async def list_ids(self) -> Sequence[str]:
        """Return all session ids, the last active one first."""
        ...

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Return the sessions of one agent, the last active one first."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session. Raises `SessionNotFoundError`."""
        ...

    async def hold(self, session_id: str) -> None:
        """Lock the session until `release`. Raises `SessionLockedError` if another agent holds the lock."""
        ...

    async def release(self, session_id: str) -> None:
        """Release the lock; do nothing if the session is not locked."""
        ...


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
    """Return the id if it can be used as a file name. Raises `SessionError`."""
    if len(session_id) <= MAX_ID and _ID.fullmatch(session_id):
        return session_id
    raise SessionError(
        f"{session_id[:MAX_ID]!r} is not a valid session id: use up to {MAX_ID} letters, digits, '_', '-' and '.', "
        "not starting with '.' or '-'"
    )


def encode_session(session: Session) -> bytes:
    """Return the session as JSON. Raises `SessionError` if it could not be decoded again."""
    _check_loops(session, f"session {session.session_id!r}")
    try:
        return encode_json(_StoredSession(FORMAT, session))
    except ValueError as error:
        raise SessionError(f"session {session.session_id!r} cannot be stored: {error}") from error


def decode_session(data: bytes, place: str) -> Session:
    """Return the session in this JSON. Raises `SessionError`, naming `place`, for invalid data."""
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if envelope.format > FORMAT:
            raise SessionError(f"{place} was written by a newer version (format {envelope.format}); use that one")
        session = msgspec.json.decode(envelope.session, type=Session)
    except (ValueError, RecursionError) as error:
        raise SessionError(f"{place} is not a stored session: {error}; delete it or restore a copy") from error
    _check_loops(session, place)
    return session


def read_agent_id(data: bytes) -> str | None:
    """Return the agent's id without decoding the whole session; None for invalid data."""
    try:
        return msgspec.json.decode(data, type=_HeadEnvelope).session.agent_id
    except (ValueError, RecursionError):
        return None


def _check_loops(session: Session, place: str) -> None:
    """Raise `SessionError` for duplicate loop ids and for loops before their parents.

    `Session.history` would not terminate for cyclic parents.
    """
    all_ids = {loop.loop_id for loop in session.loops}
    seen: set[str] = set()
    for loop in session.loops:
        if loop.loop_id in seen:
            raise SessionError(f"{place} has two loops {loop.loop_id!r}; loop ids must be unique")
        if loop.parent_loop_id in all_ids and loop.parent_loop_id not in seen:
            raise SessionError(f"{place} has a loop {loop.loop_id!r} that precedes its parent")
        if loop.base < 0:
            raise SessionError(f"{place} has a loop {loop.loop_id!r} with the invalid base {loop.base}")
        seen.add(loop.loop_id)
