"""The sessions of a run: the main one and those of its sub-agents. Other sessions of the server are ignored."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.facts import Fact, Ignored, InSubagent, RunCost, SubagentBegin, SubagentDone, Usage
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.opencode.messages import OpencodeSession
from agent_mux_adapters.opencode.tools import TASK_TOOL, McpToolNames
from agent_mux_adapters.opencode.usage import OpencodeUsage


class OpencodeSessions:
    """The sessions of a run, with their usage."""

    def __init__(self, cwd: str, names: McpToolNames) -> None:
        self._cwd = cwd
        self._names = names
        self.main: OpencodeSession | None = None
        self.usage = OpencodeUsage()
        """The usage of the run, including sub-agents."""
        self.turn_usage = OpencodeUsage()
        self._subagents: dict[str, OpencodeSession] = {}
        self._titles: dict[str, str] = {}
        self._announced: set[str] = set()

    def open(self, session_id: str) -> OpencodeSession:
        """Return the run's main session, and set it at the first call."""
        if self.main is None or self.main.id != session_id:
            self.main = self._new_session(session_id)
        return self.main

    def add_subagent(self, info: Mapping[str, Any]) -> bool:
        """Add a new session if a sub-agent of this run owns it; return whether it does."""
        session_id, parent = text(info.get("id")), text(info.get("parentID"))
        if not session_id or self.find(parent) is None:
            return False
        self._subagents.setdefault(session_id, self._new_session(session_id))
        self._titles[session_id] = text(info.get("title"))
        return True

    def find(self, session_id: Any) -> OpencodeSession | None:
        """Return a session of this run; None for others."""
        if self.main is not None and session_id == self.main.id:
            return self.main
        return self._subagents.get(session_id) if isinstance(session_id, str) else None

    def is_subagent(self, session: OpencodeSession) -> bool:
        """Return whether the session belongs to a sub-agent."""
        return session is not self.main

    def attribute(self, session: OpencodeSession, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """Attribute the facts of a session: those of a sub-agent are wrapped, and the sub-agent's end gets its cost."""
        attributed: list[Fact] = []
        for fact in facts:
            match fact:
                case SubagentBegin():
                    self._announced.add(fact.subagent_id)
                    attributed.append(fact)
                case SubagentDone():
                    subagent = self._subagents.get(fact.subagent_id)
                    attributed.append(fact if subagent is None else replace(fact, cost=subagent.usage.record))
                case Ignored() | RunCost():
                    attributed.append(fact)
                case _ if session is self.main:
                    attributed.append(fact)
                case Usage():
                    attributed.append(InSubagent(session.id, fact))
                case _:
                    attributed += [*self._announce(session.id), InSubagent(session.id, fact)]
        return tuple(attributed)

    def end_turn(self) -> None:
        """Start a new usage total for the next turn."""
        self.turn_usage = OpencodeUsage()
        for session in self._all_sessions():
            session.count_usage_for(self.usage, self.turn_usage)

    def _announce(self, session_id: str) -> tuple[Fact, ...]:
        """Begin a sub-agent whose call was not seen."""
        if session_id in self._announced:
            return ()
        self._announced.add(session_id)
        return (SubagentBegin(session_id, self._titles.get(session_id) or TASK_TOOL, ""),)

    def _all_sessions(self) -> Iterable[OpencodeSession]:
        return (*([self.main] if self.main is not None else []), *self._subagents.values())

    def _new_session(self, session_id: str) -> OpencodeSession:
        return OpencodeSession(session_id, self._cwd, self._names, (self.usage, self.turn_usage))
