"""Recording of sessions from the events of runs.

Sessions and loops may be interleaved: each event names its loop. Messages are stored once, in `LoopRecord.messages`;
the recorded `turn_end` and `loop_end` events have none.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent_loop.errors import SessionError
from agent_loop.events import (
    HandedOff,
    LoopEnd,
    LoopEvent,
    LoopStart,
    MessageInjected,
    ParallelEvent,
    ParallelLoopEnd,
    ParallelLoopStart,
    SubAgentEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallEnd,
    ToolInputDelta,
    ToolProgress,
    ToolUpdate,
    TurnEnd,
)
from agent_loop.sessions.resume import is_idle
from agent_loop.sessions.session import ChildLoopRef, Formation, LoopConfig, LoopRecord, ParallelGroup, Session

FRAGMENTS = SubAgentEvent | TextDelta | ThinkingDelta | ToolInputDelta | ToolUpdate | ToolProgress
"""Streaming events, which complete events or the record of a sub-agent repeat, or which are of temporary interest."""


class PerSessionId(msgspec.Struct, frozen=True):
    """Add a loop to the session that its event names."""


class Inactivity(msgspec.Struct, frozen=True):
    """Add a loop to the agent's latest session, whatever its id, unless that was idle for too long.

    A continuation is added to the session of its parent loop.
    """

    seconds: float


FormationPolicy = PerSessionId | Inactivity


def session_for(
    event: LoopStart, sessions: Mapping[str, Session], latest: Mapping[str, str], policy: FormationPolicy
) -> Session:
    """Return the session of a new loop: one of `sessions`, or a new one that is not in `sessions` yet.

    `latest`: agent id -> id of its latest session.
    """
    last = sessions.get(latest.get(event.agent_id, ""))
    match policy:
        case PerSessionId():
            return sessions.get(event.session_id) or _create_session(
                event, event.session_id, "explicit" if last else "first_loop"
            )
        case Inactivity():
            return _by_inactivity(event, sessions, last, policy.seconds)


def _by_inactivity(event: LoopStart, sessions: Mapping[str, Session], last: Session | None, seconds: float) -> Session:
    if event.continuation_kind is not None and event.parent_loop_id is not None:
        for session in sessions.values():
            if session.get_loop(event.parent_loop_id) is not None:
                return session
    if last is None:
        return sessions.get(event.session_id) or _create_session(event, event.session_id, "first_loop")
    if not is_idle(last, event.timestamp, seconds):
        return last
    return _create_session(event, _unused_id(event.session_id, sessions), "inactivity")


def _unused_id(session_id: str, sessions: Mapping[str, Session]) -> str:
    """Return the id, with a number appended if a session has it already."""
    number, free = 1, session_id
    while free in sessions:
        number += 1
        free = f"{session_id}-{number}"
    return free


def _create_session(event: LoopStart, session_id: str, formation: Formation) -> Session:
    return Session(
        session_id=session_id,
        agent_id=event.agent_id,
        created_at=event.timestamp,
        last_active_at=event.timestamp,
        formation=formation,
    )


class SessionRecorder:
    """Builds sessions from all events, in order. Returned sessions are live and change with later events."""

    def __init__(
        self,
        *,
        formation_policy: FormationPolicy = PerSessionId(),  # noqa: B008  # a frozen value
        include_streaming_events: bool = False,
        sessions: Iterable[Session] = (),
    ) -> None:
        """Create a recorder that continues `sessions`; `include_streaming_events` keeps fragments."""
        self.ignored = 0
        """Number of events of loops without a recorded `loop_start`."""
        self._policy = formation_policy
        self._fragments = include_streaming_events
        self._sessions: dict[str, Session] = {}
        self._open: dict[str, tuple[Session, LoopRecord]] = {}
        self._configs: dict[str, LoopConfig] = {}
        self._groups: dict[str, ParallelGroup] = {}
        """The parallel run of each loop that has not started yet."""
        self._latest: dict[str, str] = {}
        self._flushed: set[str] = set()
        for session in sessions:
            self.adopt(session)

    def adopt(self, session: Session) -> None:
        """Continue a stored session: loops that name it are added to it."""
        self._sessions[session.session_id] = session
        self._latest[session.agent_id] = session.session_id

    def set_config(self, loop_id: str, config: LoopConfig) -> None:
        """Set the configuration of a loop, before or after its first event."""
        if loop_id in self._open:
            self._open[loop_id][1].config = config
        else:
            self._configs[loop_id] = config

    def on_event(self, event: LoopEvent | ParallelEvent) -> None:
        """Record an event. Raises `SessionError` if a loop id is used twice."""
        match event:
            case ParallelLoopStart():
                group = ParallelGroup(loop_ids=event.loop_ids)
                self._groups.update(dict.fromkeys(event.loop_ids, group))
            case ParallelLoopEnd():
                self._end_group(event)
            case _:
                self._record(event)

    def _end_group(self, event: ParallelLoopEnd) -> None:
        session = self._sessions.get(event.session_id)
        for loop_id in event.loop_ids:
            self._groups.pop(loop_id, None)
            loop = None if session is None else session.get_loop(loop_id)
            if loop is not None:
                loop.parallel_group = ParallelGroup(
                    loop_ids=event.loop_ids,
                    selected_loop_id=event.selected_loop_id,
                    note=event.note,
                    evaluation_usage=event.evaluation_usage,
                    is_selected=loop_id == event.selected_loop_id,
                )

    def _record(self, event: LoopEvent) -> None:
        if isinstance(event, LoopStart):
            self._begin(event)
        if event.loop_id not in self._open:
            self.ignored += 1
            return
        session, loop = self._open[event.loop_id]
        if self._fragments or not isinstance(event, FRAGMENTS):
            loop.events.append(_without_history(event))
        match event:
            case MessageInjected():
                loop.messages.append(event.message)
            case TurnEnd():
                loop.messages += (*event.messages, *event.tool_results)
                loop.usage += event.usage
                loop.turns += 1
            case ToolCallEnd(child_loop_id=str(child), child_session_id=str(child_session)):
                loop.child_loop_refs.append(
                    ChildLoopRef(
                        tool_call_id=event.call_id,
                        tool_name=event.name,
                        child_loop_id=child,
                        child_session_id=child_session,
                    )
                )
            case HandedOff():
                loop.handed_off_to = event.target
            case LoopEnd():
                self._end(session, loop, event)
            case _:
                pass

    def flush(self, now_ms: int | None = None) -> None:
        """Mark unfinished loops as aborted and all sessions as complete."""
        for session, loop in self._open.values():
            loop.status = "aborted"
            loop.ended_at = now_ms
            session.last_active_at = max(session.last_active_at, now_ms or 0)
        self._open.clear()
        self._flushed.update(self._sessions)

    def drain_completed(self) -> list[Session]:
        """Remove and return the sessions that are complete.

        A session is complete if it was flushed, or if its agent has started another one and none of its loops is
        running. Before a loop continues such a session, call `adopt` again; otherwise a new session with its id is
        created.
        """
        complete = [session for session in self._sessions.values() if self._is_complete(session)]
        for session in complete:
            del self._sessions[session.session_id]
            self._flushed.discard(session.session_id)
        return complete

    def sessions(self) -> Sequence[Session]:
        """Return all sessions in the order they were created."""
        return tuple(self._sessions.values())

    def get_session(self, session_id: str) -> Session | None:
        """Return the session with this id, or None."""
        return self._sessions.get(session_id)

    def current_loop(self, loop_id: str) -> LoopRecord | None:
        """Return the running loop with this id, or None."""
        return self._open[loop_id][1] if loop_id in self._open else None

    def _begin(self, event: LoopStart) -> None:
        session = session_for(event, self._sessions, self._latest, self._policy)
        if session.get_loop(event.loop_id) is not None or event.loop_id in self._open:
            raise SessionError(f"a loop {event.loop_id!r} is recorded already; number the next one with `next_number`")
        loop = LoopRecord(
            loop_id=event.loop_id,
            parent_loop_id=event.parent_loop_id,
            continuation_kind=event.continuation_kind,
            started_at=event.timestamp,
            config=self._configs.pop(event.loop_id, None),
            base=_history_base(session, event),
            metadata=event.metadata,
            agent=event.agent,
            agent_since=event.agent_since,
            parallel_group=self._groups.pop(event.loop_id, None),
        )
        session.loops.append(loop)
        session.last_active_at = max(session.last_active_at, event.timestamp)
        self._open[event.loop_id] = (session, loop)
        self.adopt(session)
        self._flushed.discard(session.session_id)

    def _end(self, session: Session, loop: LoopRecord, event: LoopEnd) -> None:
        loop.status = event.status
        loop.ended_at = event.timestamp
        loop.rejection = event.rejection
        loop.error = event.error
        loop.usage = event.usage
        loop.turns = event.turns
        loop.messages = list(event.messages)
        session.last_active_at = max(session.last_active_at, event.timestamp)
        del self._open[loop.loop_id]

    def _is_complete(self, session: Session) -> bool:
        if any(session is other for other, _ in self._open.values()):
            return False
        return session.session_id in self._flushed or self._latest.get(session.agent_id) != session.session_id


def _history_base(session: Session, event: LoopStart) -> int:
    parent = event.parent_loop_id
    if parent is None or session.get_loop(parent) is None:
        return 0
    length = len(session.history(parent))
    return length if event.base is None else min(event.base, length)


def _without_history(event: LoopEvent) -> LoopEvent:
    match event:
        case TurnEnd():
            return msgspec.structs.replace(event, messages=(), tool_results=())
        case LoopEnd():
            return msgspec.structs.replace(event, messages=())
        case _:
            return event
