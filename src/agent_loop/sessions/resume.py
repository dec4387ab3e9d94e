"""Going on with a stored conversation, going another way from it, and when to begin a new one.

Source: phi-core, `new_session`, `check_and_rotate`; zidane, "resume".
"""

import copy

from agent_loop.sessions.ids import loop_id
from agent_loop.sessions.repair import repaired
from agent_loop.sessions.session import LoopRecord, Session
from agent_loop.sessions.store import SessionStore

FORK = "fork"
"""Configuration segment of the loop that holds what a fork began with."""


async def resume(store: SessionStore, session_id: str) -> Session:
    """The stored session, fit to go on from: see `repaired`. Raises `SessionNotFoundError`, `SessionError`.

    Nothing is written: save it when something was added.
    """
    return repaired(await store.load(session_id))


def fork(
    session: Session, session_id: str, *, from_loop: str | None = None, length: int | None = None, now_ms: int = 0
) -> Session:
    """A new session that begins with the history of this one: a copy, the two know nothing of each other's future.

    `from_loop`: up to the end of this loop, instead of the last; `length`: the first so many messages of it. What it
    cost stays with the first session. Raises `KeyError` for a loop that is not of the session.
    """
    whole = Session(
        session_id=session_id,
        agent_id=session.agent_id,
        created_at=now_ms,
        last_active_at=now_ms,
        formation="explicit",
        forked_from=session.session_id,
        cwd=session.cwd,
        state=copy.deepcopy(session.state),
        loops=[_history_as_loop(session, session_id, from_loop, length, now_ms)] if session.loops else [],
    )
    return repaired(whole)


def is_idle(session: Session, now_ms: int, threshold_seconds: float) -> bool:
    """Nobody used it for longer than that, and nothing runs in it: time for a new one."""
    if any(loop.status == "running" for loop in session.loops):
        return False
    return now_ms - session.last_active_at > threshold_seconds * 1000


def _history_as_loop(
    session: Session, session_id: str, from_loop: str | None, length: int | None, now_ms: int
) -> LoopRecord:
    return LoopRecord(
        loop_id=loop_id(session_id, FORK, 1),
        started_at=now_ms,
        ended_at=now_ms,
        status="completed",
        messages=copy.deepcopy(session.history(from_loop)[:length]),
    )
