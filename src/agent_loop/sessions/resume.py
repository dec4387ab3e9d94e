"""Going on with a stored conversation, going another way from it, and when to begin a new one.

Source: phi-core, `new_session`, `check_and_rotate`; zidane, "resume".
"""
# DOC: """Stored sessions are made fit to go on, however their process ended.
#
#      Source: zidane, `synthesizeMissingToolResults`.
#      """

import copy
from dataclasses import dataclass

import msgspec

from agent_loop.messages import ABORTED, ExtensionMessage, ToolMessage
from agent_loop.messages.repair import HistoryRepair
from agent_loop.sessions.ids import loop_id
from agent_loop.sessions.session import LoopRecord, Session
from agent_loop.sessions.store import SessionStore

FORK = "fork"
"""Configuration segment of the loop that holds what a fork began with."""


async def resume(store: SessionStore, session_id: str) -> Session:
    """The stored session, fit to go on from: see `repaired`. Raises `SessionNotFoundError`, `SessionError`.

    Nothing is written: save it when something was added.
    """
    return repair_session(await store.load(session_id))


def fork(
    session: Session, session_id: str, *, from_loop: str | None = None, length: int | None = None, now_ms: int = 0
) -> Session:
    """A new session that begins with the history of this one: a copy, the two know nothing of each other's future.

    `from_loop`: up to the end of this loop, instead of the last; `length`: the first so many messages of it. What it
    cost stays with the first session. Raises `KeyError` for a loop that is not of the session.
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


PROCESS_ENDED = "the process ended before the loop did"
"""Why a loop was aborted that nobody ended."""


@dataclass(frozen=True, slots=True)
class _RepairedLoop:
    """A loop, and where the messages of its history went."""

    parent: "_RepairedLoop | None"
    old_start: int
    """How much of the parent's history comes before its own messages; `new_start`: after the repair."""
    new_start: int
    places: list[int]
    """How many of the new own messages there are once the first n old ones are taken, for each n."""
    new_length: int
    """All own messages, with the results at the end that were missing."""

    @property
    def old_total(self) -> int:
        return self.old_start + len(self.places) - 1

    def map_length(self, length: int, *, closed: bool) -> int:
        """How long a history is now that had this length. `closed`: the whole one, with the results at its end."""
        if length >= self.old_total and closed:
            return self.new_start + self.new_length
        length = min(length, self.old_total)
        owner = self
        while owner.parent is not None and length < owner.old_start:
            owner = owner.parent
        return owner.new_start + owner.places[length - owner.old_start]


def repair_session(session: Session, text: str = ABORTED) -> Session:
    """A session whose every history a provider would take: loops that nobody ended are aborted, calls are answered.

    `text` is what the model reads of a call without a result. What is whole stays as it is. The session itself is left
    alone; messages are shared, they are values.
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
        # A branch may go on from between a call and its result: the result is this loop's then.
        for message in repaired_session.history(loop.parent_loop_id)[:new_start]:
            repair.take(message)
    before = len(repair.messages)
    places = [0]
    for message in loop.messages:
        repair.take(message)
        places.append(len(repair.messages) - before)
    repair.close()
    messages = repair.messages[before:]
    record = msgspec.structs.replace(loop, base=new_start, messages=messages)
    return _mark_aborted(record), _RepairedLoop(parent, old_start, new_start, places, len(messages))


def _starts(loop: LoopRecord, parent: _RepairedLoop | None) -> tuple[int, int]:
    """How much of the parent's history comes before: as it was, and as it is now."""
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
