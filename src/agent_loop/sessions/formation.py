"""Which session a loop belongs to. Source: phi-core, "SessionFormationPolicy"."""

from collections.abc import Mapping

import msgspec

from agent_loop.events import LoopStart
from agent_loop.sessions.resume import is_idle
from agent_loop.sessions.session import Formation, Session


class PerSessionId(msgspec.Struct, frozen=True):
    """The one that the loop names."""


class Inactivity(msgspec.Struct, frozen=True):
    """The agent's last one, whatever it is called, until nothing happened in it for so long.

    A continuation stays with the loop it goes on from. phi-core's `InactivityTimeout`.
    """

    seconds: float


FormationPolicy = PerSessionId | Inactivity


def session_for(
    event: LoopStart, sessions: Mapping[str, Session], latest: Mapping[str, str], policy: FormationPolicy
) -> Session:
    """The session of a loop that begins: one of these, or a new one, which is not among them yet.

    `latest`: agent id -> id of its last session.
    """
    last = sessions.get(latest.get(event.agent_id, ""))
    match policy:
        case PerSessionId():
            return sessions.get(event.session_id) or _new(event, event.session_id, "explicit" if last else "first_loop")
        case Inactivity():
            return _by_inactivity(event, sessions, last, policy.seconds)


def _by_inactivity(event: LoopStart, sessions: Mapping[str, Session], last: Session | None, seconds: float) -> Session:
    if event.continuation_kind is not None and event.parent_loop_id is not None:
        for session in sessions.values():
            if session.get_loop(event.parent_loop_id) is not None:
                return session
    if last is None:
        return sessions.get(event.session_id) or _new(event, event.session_id, "first_loop")
    if not is_idle(last, event.timestamp, seconds):
        return last
    return _new(event, _free(event.session_id, sessions), "inactivity")


def _free(session_id: str, sessions: Mapping[str, Session]) -> str:
    """The id, with a number behind it where there is such a session already."""
    number, free = 1, session_id
    while free in sessions:
        number += 1
        free = f"{session_id}-{number}"
    return free


def _new(event: LoopStart, session_id: str, formation: Formation) -> Session:
    return Session(
        session_id=session_id,
        agent_id=event.agent_id,
        created_at=event.timestamp,
        last_active_at=event.timestamp,
        formation=formation,
    )
