"""The session: announced once, before anything else, with the agent's own id if it said one in time. §5.

Turns and the steps inside them: consecutive from zero, properly nested. §6, §25.2.
"""

from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.events.base import CostRecord
from agent_mux.events.run import DebugEvent
from agent_mux.events.session import (
    AgentdocReadEvent,
    PluginLoadedEvent,
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
    SkillLoadedEvent,
    StepEndEvent,
    StepStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.sdk import facts


class Session:
    """What is known of the session, and what was said of it."""

    def __init__(self, emitter: Emitter, context: StreamContext) -> None:
        self._emitter = emitter
        self._resumed = context.resumed
        self._forked_from = context.forked_from
        self._prior_turns = 0
        self._announced_id = ""
        self.id: str | None = None
        """The agent's own id, once it said one."""
        self.model: str | None = None
        """The model the agent says it uses."""

    def start(self) -> None:
        """Announce the session, if that was not done yet."""
        if self._announced_id:
            return
        self._announced_id = self.id or f"transient-{self._emitter.run_id}"
        resumed = self._resumed and self.id is not None
        forked_from = self._forked_from if self.id is not None else None
        self._emitter.emit(SessionStartEvent, self._announced_id, resumed, forked_from)
        if resumed:
            self._emitter.emit(SessionResumeEvent, self._announced_id, self._prior_turns)
        if forked_from is not None:
            self._emitter.emit(SessionForkEvent, self._announced_id, forked_from)

    def known(self, fact: facts.SessionKnown) -> None:
        """The agent named its session."""
        self.model = fact.model or self.model
        if self.id is not None or not fact.session_id:
            return
        self.id = fact.session_id
        if self._announced_id:
            self._emitter.emit(DebugEvent, "info", f"the agent named its session late: {fact.session_id}")
            return
        self._resumed = self._resumed or fact.resumed
        self._forked_from = self._forked_from or fact.forked_from
        self._prior_turns = max(fact.prior_turns, 0)
        self.start()

    def checkpoint(self, fact: facts.CheckpointSaved) -> None:
        """The agent saved a checkpoint."""
        self._emitter.emit(SessionCheckpointEvent, self._announced_id, fact.checkpoint_id)

    def loaded(self, fact: facts.PluginLoaded | facts.SkillLoaded | facts.AgentdocRead) -> None:
        """Something became available while the session started."""
        self.start()
        match fact:
            case facts.PluginLoaded(plugin_id, name, version):
                self._emitter.emit(PluginLoadedEvent, plugin_id, name, version)
            case facts.SkillLoaded(name, source):
                self._emitter.emit(SkillLoadedEvent, name, source)
            case facts.AgentdocRead(path):
                self._emitter.emit(AgentdocReadEvent, path)

    def end(self, turns: int, cost: CostRecord | None) -> None:
        """The last domain event."""
        self._emitter.emit(SessionEndEvent, self._announced_id, self._prior_turns + turns, cost)


class Turns:
    """The turn and the step that are open. A turn may be held: over for the agent, but waiting for its sub-agents."""

    __slots__ = ("_emitter", "_held_cost", "_step", "_step_due", "_step_open", "count", "is_held", "is_open")

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.is_open = False
        self.is_held = False
        self.count = 0
        """Turns that ended."""
        self._held_cost: CostRecord | None = None
        self._step = 0
        self._step_open = False
        self._step_due = False

    @property
    def has_started_event(self) -> bool:
        """`turn_start` was emitted and `turn_end` was not."""
        return self.is_open or self.is_held

    def open(self) -> None:
        """Begin the next turn."""
        self.is_open = True
        self._step = 0
        self._step_due = False
        self._emitter.emit(TurnStartEvent, self.count)

    def hold(self, cost: CostRecord | None) -> None:
        """The turn is over, but what it delegated is not: `turn_end` waits."""
        self.end_step()
        self.is_open, self.is_held, self._held_cost = False, True, cost

    def close(self, cost: CostRecord | None = None) -> None:
        """End the turn, if one is open or held."""
        if not self.has_started_event:
            return
        self.end_step()
        self._emitter.emit(TurnEndEvent, self.count, self._held_cost if self.is_held else cost)
        self.is_open = self.is_held = False
        self._held_cost = None
        self.count += 1

    def step_due(self) -> None:
        """A model call begins: a step starts with the first thing that happens in it, which gives it its type."""
        self.end_step()
        self._step_due = True

    def begin_step_if_due(self, step_type: str) -> None:
        """Something happens."""
        if self._step_due:
            self._step_due = False
            self._step_open = True
            self._emitter.emit(StepStartEvent, self.count, self._step, step_type)

    def end_step(self) -> None:
        """End the open step, if any."""
        self._step_due = False
        if self._step_open:
            self._step_open = False
            self._emitter.emit(StepEndEvent, self.count, self._step)
            self._step += 1
