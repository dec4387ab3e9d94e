"""Sub-agents. A spawned agent has its id when its item completes; what became of it is told by later items.

Codex has two generations of these tools. The first (`spawn_agent` and `wait` as items that carry ids and states) is
told by both protocols. The second, which the newer models use, shows in the app-server as `subAgentActivity` items
and in `exec --json` not at all.
"""

import msgspec

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Fact, Ignored, SubagentBegin, SubagentDone, ToolDone, ToolReady

UNNAMED = "agent"  # the first generation has no names


class AgentState(msgspec.Struct, frozen=True, gc=False):
    """How a sub-agent does, as another item last saw it."""

    status: str
    message: str | None = None
    """Its last message once it completed, or why it failed."""


class CollabCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call of one of the first generation's tools."""

    id: str
    tool: str
    status: str = "completed"
    receiver_thread_ids: list[str] = []
    prompt: str | None = None
    agents_states: dict[str, AgentState] = {}


class Activity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a sub-agent of the second generation did: started, interacted, interrupted or completed."""

    id: str
    kind: str
    agent_thread_id: str
    agent_path: str = UNNAMED


class Delegation:
    """The sub-agents of one run, each begun once and reported once."""

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._reported: set[str] = set()
        self.spawning: set[str] = set()
        """Items of spawn calls that have not told their agent's id yet."""

    def knows(self, agent_id: str) -> bool:
        """This one was begun."""
        return agent_id in self._begun

    def call_started(self, call: CollabCall) -> tuple[Fact, ...]:
        """One of the tools is called."""
        tool = _snake(call.tool)
        if tool == "spawn_agent":
            self.spawning.add(call.id)
            return (Ignored("spawn_agent", "the sub-agent has no id before it is spawned"),)
        if tool == "wait":
            return (Ignored("wait", "what became of the sub-agents is told when the wait is over"),)
        return (ToolReady(call.id, tool, {"agents": call.receiver_thread_ids, "prompt": call.prompt}),)

    def call_completed(self, call: CollabCall) -> tuple[Fact, ...]:
        """The call returned, with what it saw of the sub-agents."""
        tool = _snake(call.tool)
        facts: list[Fact] = []
        if tool == "spawn_agent":
            self.spawning.discard(call.id)
            facts += self._spawned(call)
        elif tool != "wait":
            failed = "the call failed" if call.status == "failed" else None
            facts += [*self.call_started(call), ToolDone(call.id, error=failed, name=tool)]
        for agent_id, state in call.agents_states.items():
            facts += self._seen(agent_id, state)
        return tuple(facts) or (Ignored(tool, "no sub-agent reported"),)

    def begin(self, agent_id: str, name: str, prompt: str) -> tuple[Fact, ...]:
        """A task was delegated."""
        if agent_id in self._begun:
            return ()
        self._begun.add(agent_id)
        return (SubagentBegin(agent_id, name, prompt),)

    def report(
        self, agent_id: str, summary: str = "", error: str | None = None, cost: CostRecord | None = None
    ) -> tuple[Fact, ...]:
        """A sub-agent is done; the first one to say so is believed."""
        if agent_id in self._reported:
            return ()
        self._reported.add(agent_id)
        return (SubagentDone(agent_id, summary, error, cost),)

    def _spawned(self, call: CollabCall) -> list[Fact]:
        prompt = call.prompt or ""
        if call.receiver_thread_ids:
            return [fact for agent in call.receiver_thread_ids for fact in self.begin(agent, UNNAMED, prompt)]
        return [*self.begin(call.id, UNNAMED, prompt), *self.report(call.id, error="the sub-agent was not spawned")]

    def _seen(self, agent_id: str, state: AgentState) -> tuple[Fact, ...]:
        match _snake(state.status):
            case "completed":
                return self.report(agent_id, state.message or "")
            case "errored" | "interrupted" | "shutdown" | "not_found" as ending:
                return self.report(agent_id, error=state.message or ending.replace("_", " "))
        return ()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
