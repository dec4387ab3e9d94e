"""The sessions of a run: the main one, and those of its sub-agents. Others on the same server are no part of it."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.facts import Fact, Ignored, InSubagent, RunCost, SubagentBegin, SubagentDone, Usage
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.opencode.messages import Thread
from agent_mux_adapters.opencode.tools import TASK_TOOL, Names
from agent_mux_adapters.opencode.usage import Spending


class Threads:
    """All that is known of the sessions."""

    def __init__(self, cwd: str, names: Names) -> None:
        self._cwd = cwd
        self._names = names
        self.main: Thread | None = None
        self.spent = Spending()
        """By the run, sub-agents included."""
        self.spent_in_turn = Spending()
        self._inside: dict[str, Thread] = {}
        self._titles: dict[str, str] = {}
        self._begun: set[str] = set()

    def open(self, session_id: str) -> Thread:
        """The run's own session."""
        if self.main is None or self.main.id != session_id:
            self.main = self._new(session_id)
        return self.main

    def adopt(self, info: Mapping[str, Any]) -> bool:
        """A session was created. Whether it is a sub-agent's of this run."""
        session_id, parent = text(info.get("id")), text(info.get("parentID"))
        if not session_id or self.find(parent) is None:
            return False
        self._inside.setdefault(session_id, self._new(session_id))
        self._titles[session_id] = text(info.get("title"))
        return True

    def find(self, session_id: Any) -> Thread | None:
        """A session of this run."""
        if self.main is not None and session_id == self.main.id:
            return self.main
        return self._inside.get(session_id) if isinstance(session_id, str) else None

    def is_inside(self, thread: Thread) -> bool:
        """It is a sub-agent's."""
        return thread is not self.main

    def tell(self, thread: Thread, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """What happened in a session, as the run tells it: a sub-agent's inside is wrapped, its cost is the run's."""
        told: list[Fact] = []
        for fact in facts:
            match fact:
                case SubagentBegin():
                    self._begun.add(fact.subagent_id)
                    told.append(fact)
                case SubagentDone():
                    inside = self._inside.get(fact.subagent_id)
                    told.append(fact if inside is None else replace(fact, cost=inside.spent.record))
                case Ignored() | RunCost():
                    told.append(fact)
                case _ if thread is self.main:
                    told.append(fact)
                case Usage():
                    told.append(InSubagent(thread.id, fact))
                case _:
                    told += [*self._introduce(thread.id), InSubagent(thread.id, fact)]
        return tuple(told)

    def turn_over(self) -> None:
        """The next turn has its own account."""
        self.spent_in_turn = Spending()
        for thread in self._all():
            thread.count_for(self.spent, self.spent_in_turn)

    def _introduce(self, session_id: str) -> tuple[Fact, ...]:
        """A sub-agent that nobody announced."""
        if session_id in self._begun:
            return ()
        self._begun.add(session_id)
        return (SubagentBegin(session_id, self._titles.get(session_id) or TASK_TOOL, ""),)

    def _all(self) -> Iterable[Thread]:
        return (*([self.main] if self.main is not None else []), *self._inside.values())

    def _new(self, session_id: str) -> Thread:
        return Thread(session_id, self._cwd, self._names, (self.spent, self.spent_in_turn))
