"""Events as a bus publishes them: numbered, with their session, and those that only a bus has."""

from typing import get_args

import msgspec

from agent_loop.events import (
    LoopEvent,
    ParallelEvent,
    ParallelLoopEnd,
    ParallelLoopStart,
    SubAgentEnd,
    SubAgentEvent,
    SubAgentStart,
)


class QuestionAsked(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="question_asked"):
    """A tool asks the user, and waits for `EventBus.answer`. Exactly one `QuestionClosed` follows."""

    loop_id: str
    """The loop of the agent, also if one of its sub-agents asks."""
    question_id: str
    question: str
    options: tuple[str, ...] = ()
    """Answers to choose from; empty: any text."""


class QuestionClosed(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="question_closed"):
    """A question was answered, or its run does not wait for the answer any more."""

    loop_id: str
    question_id: str
    is_answered: bool


AnyEvent = LoopEvent | ParallelEvent | QuestionAsked | QuestionClosed


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a run, as a bus publishes it."""

    number: int
    """Position in the events of the bus, from 0."""
    session_id: str
    """The session of the agent that published the event. Events of its sub-agents are `SubAgentEvent`."""
    event: AnyEvent

    @property
    def sessions(self) -> tuple[str, ...]:
        """The session, and those of the sub-agents whose event it is."""
        return (self.session_id, *_sub_agents_of(self.event))

    @property
    def loops(self) -> tuple[str, ...]:
        """The loop, and those of the sub-agents whose event it is; all loops of a parallel run."""
        return loops_of(self.event)


class Gap(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="gap"):
    """Events that a subscriber did not get, because the buffer no longer has them; not all may have matched."""

    first: int
    """Number of the first missing event."""
    last: int
    """Number of the last missing event."""


def type_of(event: AnyEvent) -> str:
    """Return the value of the event's field `type` in JSON."""
    return str(type(event).__struct_config__.tag)


EVENT_TYPES = frozenset(str(each.__struct_config__.tag) for each in get_args(AnyEvent))
"""All values of `type_of`."""


def loops_of(event: AnyEvent) -> tuple[str, ...]:
    """Return the loops of an event: its own first, then those of sub-agents; all loops of a parallel run."""
    match event:
        case ParallelLoopStart() | ParallelLoopEnd():
            return event.loop_ids
        case SubAgentEvent():
            return (event.loop_id, *loops_of(event.event))
        case _:
            return (event.loop_id,)


def _sub_agents_of(event: AnyEvent) -> tuple[str, ...]:
    match event:
        case SubAgentEvent():
            return (event.subagent_id, *_sub_agents_of(event.event))
        case SubAgentStart() | SubAgentEnd():
            return (event.subagent_id,)
        case _:
            return ()
