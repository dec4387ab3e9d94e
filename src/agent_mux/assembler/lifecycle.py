"""Session, turn and step events. See docs/spec/events.md, sections 5, 6 and 25.2.

Which turn is open is the state of the stream (`transitions`); the classes here emit the events.
"""

from agent_mux.assembler.costs import add_costs
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.versions import VersionAssembler
from agent_mux.events.base import CostRecord, StopReason
from agent_mux.events.run import DebugEvent, PausedEvent, ResumedEvent
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


class SessionAssembler:
    """Emits the session events, and the events that belong between `session_start` and the first turn."""

    def __init__(self, emitter: Emitter, context: StreamContext, version: VersionAssembler) -> None:
        self._emitter = emitter
        self._version = version
        self._resumed = context.resumed
        self._forked_from = context.forked_from
        self._prior_turns = 0
        self._announced_id = ""
        self._is_paused = False
        self._has_restarted = False
        self.id: str | None = None
        """The agent's own session id; None until the agent reports it."""
        self.model: str | None = None
        """The model that the agent reports; None until it reports one."""

    def start(self) -> None:
        """Emit `session_start` and what belongs to it, unless that has happened."""
        if self._announced_id:
            return
        self._announced_id = self.id or f"transient-{self._emitter.run_id}"
        resumed = self._resumed and self.id is not None
        forked_from = self._forked_from if self.id is not None else None
        self._emitter.emit(SessionStartEvent, self._announced_id, resumed, forked_from, self._version.version)
        if resumed:
            self._emitter.emit(SessionResumeEvent, self._announced_id, self._prior_turns)
        if forked_from is not None:
            self._emitter.emit(SessionForkEvent, self._announced_id, forked_from)
        self._version.session_announced()

    def identify(self, fact: facts.SessionKnown) -> None:
        """Store the model and the session id that the agent reports. The first id starts the session."""
        self.model = fact.model or self.model
        if self.id is not None or not fact.session_id:
            return
        self.id = fact.session_id
        if self._announced_id:
            if self.id != self._announced_id:
                self._emitter.emit(DebugEvent, "info", self._note_on_id())
            return
        self._resumed = self._resumed or fact.resumed
        self._forked_from = self._forked_from or fact.forked_from
        self._prior_turns = max(fact.prior_turns, 0)
        self.start()

    def _note_on_id(self) -> str:
        if self._has_restarted:
            return f"the session of this attempt is {self.id}"
        return f"the agent named its session late: {self.id}"

    def forget(self) -> None:
        """Forget the model and the id of the agent's session, because a new process of an agent names its own."""
        self.id = self.model = None
        self._has_restarted = True

    def pause(self) -> None:
        """Emit `paused`, unless the run is paused."""
        if not self._is_paused:
            self._is_paused = True
            self.start()
            self._emitter.emit(PausedEvent)

    def resume(self) -> None:
        """Emit `resumed`, if the run is paused."""
        if self._is_paused:
            self._is_paused = False
            self._emitter.emit(ResumedEvent)

    def save_checkpoint(self, fact: facts.CheckpointSaved) -> None:
        """Emit `session_checkpoint` with the agent's own id of the checkpoint."""
        self._emitter.emit(SessionCheckpointEvent, self._announced_id, fact.checkpoint_id)

    def load(self, fact: facts.PluginLoaded | facts.SkillLoaded | facts.AgentdocRead) -> None:
        """Emit what the agent loaded while the session started."""
        self.start()
        match fact:
            case facts.PluginLoaded(plugin_id, name, version):
                self._emitter.emit(PluginLoadedEvent, plugin_id, name, version)
            case facts.SkillLoaded(name, source):
                self._emitter.emit(SkillLoadedEvent, name, source)
            case facts.AgentdocRead(path):
                self._emitter.emit(AgentdocReadEvent, path)

    def end(self, turns: int, cost: CostRecord | None) -> None:
        """Emit `session_end`. `turns` and `cost` are those of this run."""
        self._emitter.emit(SessionEndEvent, self._announced_id, self._prior_turns + turns, cost)


class TurnAssembler:
    """Emits turn and step events. A held turn is one whose `turn_end` waits for a sub-agent of the turn."""

    __slots__ = (
        "_emitter",
        "_held_cost",
        "_is_step_due",
        "_is_step_open",
        "_step",
        "count",
        "step_count",
        "stop_reason",
    )

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.count = 0
        """Number of turns that ended."""
        self.step_count = 0
        """Number of steps of all turns."""
        self.stop_reason: StopReason | None = None
        """Why the last answer of the current turn ended; None until its closing message reports it."""
        self._held_cost: CostRecord | None = None
        self._step = 0
        self._is_step_open = False
        self._is_step_due = False

    def open(self) -> None:
        """Start the next turn; no turn may be open or held."""
        self._step = 0
        self._is_step_due = False
        self.stop_reason = None
        self._emitter.emit(TurnStartEvent, self.count)

    def hold(self, cost: CostRecord | None) -> None:
        """Delay the `turn_end` of the open turn until `release`."""
        self.end_step()
        self._held_cost = cost

    def release(self, cost: CostRecord | None) -> None:
        """End the held turn; `cost` is that of what the agent reported since it handed back the turn."""
        self.close(add_costs(self._held_cost, cost))

    def close(self, cost: CostRecord | None) -> None:
        """Emit the end of the open turn, after that of its step; `cost` is what the turn cost."""
        self.end_step()
        if self.stop_reason == "length":
            self._emitter.emit(DebugEvent, "warn", facts.CUT_ANSWER)
        self._emitter.emit(TurnEndEvent, self.count, cost, self.stop_reason)
        self.count += 1

    def schedule_step(self) -> None:
        """End the open step. The first content after this starts the next step and determines its type."""
        self.end_step()
        self._is_step_due = True

    def begin_step_if_due(self, step_type: str) -> None:
        """Start the scheduled step, if any, with the type of its first content."""
        if self._is_step_due:
            self._is_step_due = False
            self._is_step_open = True
            self.step_count += 1
            self._emitter.emit(StepStartEvent, self.count, self._step, step_type)

    def end_step(self) -> None:
        """End the open step, if any, and drop a scheduled one."""
        self._is_step_due = False
        if self._is_step_open:
            self._is_step_open = False
            self._emitter.emit(StepEndEvent, self.count, self._step)
            self._step += 1
