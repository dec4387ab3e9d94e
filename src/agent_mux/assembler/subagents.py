"""Sub-agents: spawned once, ended once, possibly turns later; their inside is shown only on request. §13."""

from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.figures import possible_cost
from agent_mux.assembler.scope import Scope
from agent_mux.events.subagent import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent
from agent_mux.sdk import facts

NEVER_REPORTED = "no result: the run ended before the sub-agent reported"


class Subagents:
    """The open sub-agents of a run, each with the scope of its inside when that is shown."""

    def __init__(self, emitter: Emitter, context: StreamContext, used_ids: set[str]) -> None:
        self._emitter = emitter
        self._context = context
        self._used_ids = used_ids
        self._names: dict[str, str] = {}
        self._scopes: dict[str, Scope] = {}
        self._used: set[str] = set()

    @property
    def any_open(self) -> bool:
        """At least one has not reported."""
        return bool(self._names)

    def is_new(self, subagent_id: str) -> bool:
        """No sub-agent had this id yet."""
        return subagent_id not in self._used

    def is_open(self, subagent_id: str) -> bool:
        """This one has not reported."""
        return subagent_id in self._names

    def begin(self, fact: facts.SubagentBegin) -> None:
        """A task was delegated."""
        self._used.add(fact.subagent_id)
        self._names[fact.subagent_id] = fact.name
        if self._context.include_subagent_events:
            self._scopes[fact.subagent_id] = Scope(self._emitter, self._context, self._used_ids, fact.subagent_id)
        self._emitter.emit(SubagentSpawnEvent, fact.subagent_id, fact.name, fact.prompt)

    def accept(self, fact: facts.InSubagent) -> None:
        """Something happened inside."""
        scope = self._scopes.get(fact.subagent_id)
        if scope is not None:
            scope.accept(fact.fact)

    def end(self, fact: facts.SubagentDone) -> None:
        """It reported, or failed."""
        name = self._names.pop(fact.subagent_id)
        scope = self._scopes.pop(fact.subagent_id, None)
        if scope is not None:
            scope.close()
        if fact.error is None:
            self._emitter.emit(SubagentResultEvent, fact.subagent_id, name, fact.summary, possible_cost(fact.cost))
        else:
            self._emitter.emit(SubagentErrorEvent, fact.subagent_id, name, fact.error)

    def close(self) -> None:
        """Nobody will report any more."""
        for subagent_id in list(self._names):
            self.end(facts.SubagentDone(subagent_id, error=NEVER_REPORTED))
