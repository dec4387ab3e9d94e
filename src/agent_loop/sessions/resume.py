"""Resuming and forking stored sessions, and the repair of sessions whose process ended during a run."""

import copy
from dataclasses import dataclass

import msgspec

from agent_loop.messages import ABORTED, ExtensionMessage, ToolMessage
from agent_loop.messages.repair import HistoryRepair
from agent_loop.sessions.ids import loop_id
from agent_loop.sessions.session import LoopRecord, Session
from agent_loop.sessions.store import SessionStore

FORK = "fork"
"""Configuration segment in the id of the loop that holds the history of a fork."""

PROCESS_ENDED = "the process ended before the loop did"
"""Error of a loop that never reported its end."""


async def resume(store: SessionStore, session_id: str) -> Session:
    """Return the stored session, repaired. Raises `SessionNotFoundError` or `SessionError`.

    The repaired session is not written to the store.
    """
    return repair_session(await store.load(session_id))


def fork(
    session: Session, session_id: str, *, from_loop: str | None = None, length: int | None = None, now_ms: int = 0
) -> Session:
    """Return a new session that begins with a copy of this session's history.

    `from_loop`: use the history up to the end of this loop instead of the last; `length`: keep only this number of
    messages. Usage is not copied. Raises `KeyError` if `from_loop` is not in the session.
    """
    forked = Session(
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
    return repair_session(forked)


def is_idle(session: Session, now_ms: int, threshold_seconds: float) -> bool:
    """Return whether the session was unused for more than `threshold_seconds` and has no running loop."""
    if any(loop.status == "running" for loop in session.loops):
        return False
    return now_ms - session.last_active_at > threshold_seconds * 1000


def _history_as_loop(
    session: Session, session_id: str, from_loop: str | None, length: int | None, now_ms: int
) -> LoopRecord:
    messages = session.history(from_loop)[:length]
    agent, agent_since = session.holder(len(messages), from_loop)
    return LoopRecord(
        loop_id=loop_id(session_id, FORK, 1),
        started_at=now_ms,
        ended_at=now_ms,
        status="completed",
        messages=copy.deepcopy(messages),
        agent=agent,
        agent_since=agent_since,
    )


@dataclass(frozen=True, slots=True)
class _RepairedLoop:
    """A repaired loop, and the mapping of its history's positions."""

    parent: "_RepairedLoop | None"
    old_start: int
    """Length of the parent's history that precedes the loop; `new_start`: the same after the repair."""
    new_start: int
    places: list[int]
    """For each n, the number of repaired messages that the first n original messages became."""
    new_length: int
    """Number of the loop's own messages, including results added at the end."""

    @property
    def old_total(self) -> int:
        return self.old_start + len(self.places) - 1

    def map_length(self, length: int, *, closed: bool) -> int:
        """Return the repaired length of a history with this original length.

        `closed`: whether the whole history includes the results that were added at its end.
        """
        if length >= self.old_total and closed:
            return self.new_start + self.new_length
        length = min(length, self.old_total)
        owner = self
        while owner.parent is not None and length < owner.old_start:
            owner = owner.parent
        return owner.new_start + owner.places[length - owner.old_start]


def repair_session(session: Session, text: str = ABORTED) -> Session:
    """Return a copy of the session whose histories providers accept.

    Loops without an end are marked as aborted, and calls without a result get an error result with `text`. Valid loops
    stay unchanged. Messages are shared with the original, because they are immutable.
    """
    result = msgspec.structs.replace(session, loops=[])
    repaired_loops: dict[str, _RepairedLoop] = {}
    for loop in session.loops:
        parent = repaired_loops.get(loop.parent_loop_id or "")
        record, repaired_loops[loop.loop_id] = _repair_loop(result, loop, parent, text)
        result.loops.append(record)
    return result


def _repair_loop(
    repaired_session: Session, loop: LoopRecord, parent: _RepairedLoop | None, text: str
) -> tuple[LoopRecord, _RepairedLoop]:
    old_start, new_start = _starts(loop, parent)
    repair = HistoryRepair(text, timestamp=loop.ended_at or loop.started_at)
    if parent is not None and new_start < parent.new_start + parent.new_length:
        # A branch may start between a call and its result, which then belongs to this loop.
        for message in repaired_session.history(loop.parent_loop_id)[:new_start]:
            repair.take(message)
    before = len(repair.messages)
    places = [0]
    for message in loop.messages:
        repair.take(message)
        places.append(len(repair.messages) - before)
    repair.close()
    messages = repair.messages[before:]
    since = loop.agent_since if parent is None else parent.map_length(loop.agent_since, closed=True)
    record = msgspec.structs.replace(loop, base=new_start, messages=messages, agent_since=since)
    return _mark_aborted(record), _RepairedLoop(parent, old_start, new_start, places, len(messages))


def _starts(loop: LoopRecord, parent: _RepairedLoop | None) -> tuple[int, int]:
    """Return the length of the parent's history that precedes the loop, before and after the repair."""
    if parent is None:
        return 0, 0
    return min(loop.base, parent.old_total), parent.map_length(loop.base, closed=not _begins_with_a_result(loop))


def _begins_with_a_result(loop: LoopRecord) -> bool:
    visible = (message for message in loop.messages if not isinstance(message, ExtensionMessage))
    return isinstance(next(visible, None), ToolMessage)


def _mark_aborted(loop: LoopRecord) -> LoopRecord:
    if loop.status != "running":
        return loop
    return msgspec.structs.replace(loop, status="aborted", error=loop.error or PROCESS_ENDED)
