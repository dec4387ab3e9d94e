"""The session: announced once, before anything else, with the agent's own id if it said one in time. §5."""

from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.emitter import Emitter
from agent_mux.events.cost import CostRecord
from agent_mux.events.debug import DebugEvent
from agent_mux.events.plugin import PluginLoadedEvent
from agent_mux.events.session import (
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
)
from agent_mux.events.skill import AgentdocReadEvent, SkillLoadedEvent
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
