"""The conversation of one agent: its session, the session's history, and access to the store."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import msgspec

from agent_loop.errors import ConfigurationError, SessionError, SessionNotFoundError
from agent_loop.events import ContinuationKind, LoopEvent, ParallelEvent
from agent_loop.loop.run import Surroundings
from agent_loop.messages import AssistantMessage, Message, is_user_input
from agent_loop.messages.chain import restore_messages, save_messages
from agent_loop.messages.repair import answer_unanswered
from agent_loop.messages.validation import validate
from agent_loop.sessions.ids import loop_id, next_number
from agent_loop.sessions.recorder import SessionRecorder
from agent_loop.sessions.resume import repair_session
from agent_loop.sessions.session import Formation, LoopConfig, LoopRecord, Session
from agent_loop.sessions.store import SessionStore
from agent_loop.state import AgentState

if TYPE_CHECKING:
    from agent_loop.publishing.bus import EventBus

RESTORED = "restored"
"""Configuration segment in the id of a loop that holds a restored history."""


@dataclass(frozen=True, slots=True)
class LoopPosition:
    """The id of a new loop and its position in the session."""

    loop_id: str
    parent_loop_id: str | None
    base: int
    index: int
    prior_turns: int


class AgentConversation:
    """The session of an agent and its current history, kept consistent over runs."""

    def __init__(
        self,
        agent_id: str,
        store: SessionStore | None,
        session: Session | None,
        surroundings: Surroundings,
        cwd: str | None = None,
    ) -> None:
        """Adopt `session`, or create one; `cwd` is the working directory that new sessions record."""
        self.agent_id = agent_id if session is None else session.agent_id
        self.store = store
        """The store of the session; None: it is kept in memory only."""
        self.event_bus: EventBus | None = None
        """Publishes the events of the session; None: they are only recorded."""
        self._surroundings = surroundings
        self._cwd = cwd
        self._recorder = SessionRecorder()
        self.session = repair_session(session) if session is not None else self._create_session("first_loop")
        self._recorder.adopt(self.session)
        self.history: list[Message] = self.session.history()
        self._previous_history = self.history
        """The history before the last call of `start`."""
        self._previous_todos = self.session.state.todos

    def _create_session(self, formation: Formation) -> Session:
        now = self._surroundings.now_ms()
        return Session(
            session_id=self._surroundings.new_id(),
            agent_id=self.agent_id,
            created_at=now,
            last_active_at=now,
            formation=formation,
            cwd=self._cwd,
        )

    def renew(self, formation: Formation) -> str:
        """Start a new session with an empty history and return its id."""
        self.session = self._create_session(formation)
        self._recorder.adopt(self.session)
        self.history = []
        return self.session.session_id

    def is_idle(self, threshold: float) -> bool:
        """Return whether the session was inactive for more than `threshold` seconds."""
        return self._surroundings.now_ms() - self.session.last_active_at > threshold * 1000

    def to_json(self) -> bytes:
        """Return the history as JSON."""
        return save_messages(self.history)

    def restore(self, data: bytes | str) -> None:
        """Replace the history by a saved one, in a new session. Raises `MessageError`."""
        messages = restore_messages(data)
        validate(messages)
        self.renew("explicit")
        now = self._surroundings.now_ms()
        record = LoopRecord(
            loop_id=loop_id(self.session.session_id, RESTORED, 1),
            started_at=now,
            ended_at=now,
            status="completed",
            messages=list(messages),
        )
        self.session.loops.append(record)
        self.history = list(messages)

    def start(
        self, kind: ContinuationKind | None, at: int | None, *, prompted: bool, config: LoopConfig
    ) -> LoopPosition:
        """Truncate the history to the start of this loop and name the loop. Raises `ConfigurationError`."""
        previous, todos = self.history, self.session.state.todos
        self._truncate_history(kind, at, prompted)
        self._previous_history, self._previous_todos = previous, todos
        self._restore_todos(previous)
        loops, head = self.session.loops, self.session.head()
        new_loop_id = self.next_loop_id(config.config_id)
        self._recorder.set_config(new_loop_id, config)
        return LoopPosition(
            loop_id=new_loop_id,
            parent_loop_id=None if head is None else head.loop_id,
            base=len(self.history),
            index=len(loops),
            prior_turns=sum(loop.turns for loop in loops),
        )

    def holder(self, kind: ContinuationKind | None, at: int | None) -> tuple[str, int]:
        """Return the agent that continues the conversation this way, as `Session.holder` does."""
        return self.session.holder(self._kept_length(kind, at))

    def _kept_length(self, kind: ContinuationKind | None, at: int | None) -> int:
        """Return the number of messages that a loop keeps. An invalid `at` counts as the whole history."""
        if kind == "rerun":
            users = [index for index, message in enumerate(self.history) if is_user_input(message)]
            return users[-1] + 1 if users else 0
        return len(self.history) if kind != "branch" or at is None else at

    def next_loop_id(self, config_id: str) -> str:
        """Return the id of the next loop with this configuration."""
        session_id = self.session.session_id
        return loop_id(
            session_id, config_id, next_number((loop.loop_id for loop in self.session.loops), session_id, config_id)
        )

    def _restore_todos(self, previous: Sequence[Message]) -> None:
        """Restore the todo list of the kept history if a removed message changed it."""
        removed = previous[sum(one is other for one, other in zip(previous, self.history, strict=False)) :]
        if not any(isinstance(message, AssistantMessage) and message.tool_calls for message in removed):
            return
        from agent_loop.tools.builtin.todos import written_todos  # noqa: PLC0415  # imported only if needed

        if written_todos(removed) is not None:
            self.session.state.todos = written_todos(self.history) or []

    def _truncate_history(self, kind: ContinuationKind | None, at: int | None, prompted: bool) -> None:
        if at is not None and kind != "branch":
            raise ConfigurationError("`at` is the position of a branch; use it with kind='branch'")
        kept = self.history
        if kind == "rerun":
            kept = kept[: self._kept_length(kind, at)]
        if kind == "branch":
            if at is None or not 0 <= at <= len(kept):
                raise ConfigurationError(f"a branch must start at a message from 0 to {len(kept)}, not {at!r}")
            kept = answer_unanswered(kept[:at])
        if kind is not None and not prompted and (not kept or isinstance(kept[-1], AssistantMessage)):
            raise ConfigurationError(
                "nothing to continue: the history is empty or ends with an answer; use run(prompt)"
            )
        self.history = list(kept)

    def on_event(self, event: LoopEvent | ParallelEvent) -> None:
        """Add the event to the session's record, and publish it."""
        self._recorder.on_event(event)
        if self.event_bus is not None:
            self.event_bus.publish(self.session.session_id, event)

    def copy(self) -> "AgentConversation":
        """Return a conversation with the same id and history, without a store and a bus, that changes independently."""
        session = msgspec.structs.replace(self.session, state=deepcopy(self.session.state))
        return AgentConversation(self.agent_id, None, session, self._surroundings, self._cwd)

    def set_config(self, loop_id: str, config: LoopConfig) -> None:
        """Set the configuration of a loop that another conversation started."""
        self._recorder.set_config(loop_id, config)

    def mark(self) -> None:
        """Mark the current history as the one to restore if `hold` fails."""
        self._previous_history, self._previous_todos = self.history, self.session.state.todos

    def continue_from(self, state: AgentState) -> None:
        """Continue the selected loop of a parallel run, with the state that it left."""
        self.session.state = state
        self.history = self.session.history()

    async def save(self) -> None:
        """Save the session to the store, if one is configured. Raises `SessionError`."""
        if self.store is not None:
            await self.store.save(self.session)

    async def hold(self) -> None:
        """Lock the session for a run.

        Raises `SessionLockedError` if another agent holds the lock, and `SessionError` if the stored session has loops
        that are missing here: saving would overwrite them. On failure, the history from before `start` is restored.
        """
        try:
            if self.store is not None:
                await self.store.hold(self.session.session_id)
                await self._check_stored(self.store)
        except BaseException:
            self.history, self.session.state.todos = self._previous_history, self._previous_todos
            raise

    async def _check_stored(self, store: SessionStore) -> None:
        try:
            _check_not_diverged(await store.load(self.session.session_id), self.session)
        except SessionNotFoundError:
            return
        except BaseException:
            with anyio.CancelScope(shield=True):
                await store.release(self.session.session_id)
            raise

    async def release(self) -> None:
        """Release the lock of the session."""
        if self.store is not None:
            await self.store.release(self.session.session_id)


def _check_not_diverged(stored: Session, session: Session) -> None:
    if not _loop_keys(stored) <= _loop_keys(session):
        raise SessionError(f"session {session.session_id!r} was continued elsewhere; resume it again from the store")


def _loop_keys(session: Session) -> set[tuple[str, int]]:
    """Return the ids and start times of the session's loops: separately started loops may share an id."""
    return {(loop.loop_id, loop.started_at) for loop in session.loops}
