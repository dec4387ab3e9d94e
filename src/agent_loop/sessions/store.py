"""Where sessions are kept. Source: phi-core, "SessionStore"."""

from collections.abc import Sequence
from typing import Protocol

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
