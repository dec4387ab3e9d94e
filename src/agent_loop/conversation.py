"""The conversation of one agent: its session, the history of it, and the way to the store.

Source: phi-core, "BasicAgent state relevant to session management", "SessionRecorder".
"""

from dataclasses import dataclass

import anyio

from agent_loop.errors import ConfigurationError, SessionError, SessionNotFoundError
from agent_loop.events import ContinuationKind, LoopEvent
from agent_loop.loop.run import Surroundings
from agent_loop.messages import AssistantMessage, Message, UserMessage
from agent_loop.messages.chain import restore_messages, save_messages
from agent_loop.messages.repair import answer_unanswered
from agent_loop.messages.validation import validate
from agent_loop.sessions.ids import loop_id, next_number
from agent_loop.sessions.recorder import SessionRecorder
from agent_loop.sessions.resume import repair_session
from agent_loop.sessions.session import Formation, LoopConfig, LoopRecord, Session
from agent_loop.sessions.store import SessionStore

RESTORED = "restored"
"""Configuration segment of the loop that holds a history which was put in place."""


@dataclass(frozen=True, slots=True)
class LoopPosition:
    """Where a loop begins."""

    loop_id: str
    parent_loop_id: str | None
    base: int
    index: int
    prior_turns: int


class AgentConversation:
    """Keeps session and history together while runs go on."""

    def __init__(
        self,
        agent_id: str,
        store: SessionStore | None,
        session: Session | None,
        surroundings: Surroundings,
        cwd: str | None = None,
    ) -> None:
        """`cwd`: the directory that new sessions are about."""
        self.agent_id = agent_id if session is None else session.agent_id
        self._store = store
        self._surroundings = surroundings
        self._cwd = cwd
        self._recorder = SessionRecorder()
        self.session = repair_session(session) if session is not None else self._create_session("first_loop")
        self._recorder.adopt(self.session)
        self.history: list[Message] = self.session.history()
        self._previous_history = self.history
        """What the history was before the last loop was begun."""

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
        """A new session with an empty history; its id."""
        self.session = self._create_session(formation)
        self._recorder.adopt(self.session)
        self.history = []
        return self.session.session_id

    def is_idle(self, threshold: float) -> bool:
        """Nobody said anything for so many seconds."""
        return self._surroundings.now_ms() - self.session.last_active_at > threshold * 1000

    def to_json(self) -> bytes:
        """The history as JSON."""
        return save_messages(self.history)

    def restore(self, data: bytes | str) -> None:
        """Put a saved history in place of this one, in a new session. Raises `MessageError`."""
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
        """Cut the history to where this loop begins, and name the loop. Raises `ConfigurationError`."""
        previous = self.history
        self._truncate_history(kind, at, prompted)
        self._previous_history = previous
        loops = self.session.loops
        config_id, session_id = config.config_id, self.session.session_id
        new_loop_id = loop_id(
            session_id, config_id, next_number((loop.loop_id for loop in loops), session_id, config_id)
        )
        self._recorder.set_config(new_loop_id, config)
        return LoopPosition(
            loop_id=new_loop_id,
            parent_loop_id=loops[-1].loop_id if loops else None,
            base=len(self.history),
            index=len(loops),
            prior_turns=sum(loop.turns for loop in loops),
        )

    def _truncate_history(self, kind: ContinuationKind | None, at: int | None, prompted: bool) -> None:
        if at is not None and kind != "branch":
            raise ConfigurationError("`at` says where a branch begins: use it with kind='branch'")
        kept = self.history
        if kind == "rerun":
            users = [index for index, message in enumerate(kept) if _is_user_input(message)]
            kept = kept[: users[-1] + 1 if users else 0]
        if kind == "branch":
            if at is None or not 0 <= at <= len(kept):
                raise ConfigurationError(f"a branch begins at a message from 0 to {len(kept)}, not {at!r}")
            kept = answer_unanswered(kept[:at])
        if kind is not None and not prompted and (not kept or isinstance(kept[-1], AssistantMessage)):
            raise ConfigurationError("there is nothing to go on from: the last word is the agent's; use run(prompt)")
        self.history = list(kept)

    def on_event(self, event: LoopEvent) -> None:
        """Part of the record now."""
        self._recorder.on_event(event)

    async def save(self) -> None:
        """Store the session as it is. Raises `SessionError`."""
        if self._store is not None:
            await self._store.save(self.session)

    async def hold(self) -> None:
        """Keep others from going on with this session while a run goes on.

        Raises `SessionLockedError` where somebody does, `SessionError` where somebody did since we know it: what they
        stored would be written over. The history is then what it was before `start`.
        """
        try:
            if self._store is not None:
                await self._store.hold(self.session.session_id)
                await self._check_stored(self._store)
        except BaseException:
            self.history = self._previous_history
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
        """Let others go on with it again."""
        if self._store is not None:
            await self._store.release(self.session.session_id)


def _is_user_input(message: Message) -> bool:
    """What a person said, not the loop in their place."""
    return isinstance(message, UserMessage) and message.origin in {"user", "steering", "follow_up"}


def _check_not_diverged(stored: Session, session: Session) -> None:
    if not _loop_keys(stored) <= _loop_keys(session):
        raise SessionError(
            f"session {session.session_id!r} was gone on with by somebody else; resume it again from the store"
        )


def _loop_keys(session: Session) -> set[tuple[str, int]]:
    """Its loops: two that were begun apart may have one name."""
    return {(loop.loop_id, loop.started_at) for loop in session.loops}
