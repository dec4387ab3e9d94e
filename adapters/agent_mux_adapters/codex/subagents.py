"""Sub-agents. A spawned agent gets its id when the item of the spawn call completes; later items report its outcome.

Codex has two generations of sub-agent tools. Both protocols report the first one (`spawn_agent` and `wait`) as items
with ids and states. The second one, which newer models use, appears in the app-server as `subAgentActivity` items and
not at all in `codex exec --json`.
"""

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Fact, Ignored, SubagentBegin, SubagentDone, ToolDone, ToolReady

UNNAMED = "agent"  # sub-agents of the first generation have no names


class SubagentState(msgspec.Struct, frozen=True, gc=False):
    """The state of a sub-agent in an item of another tool."""

    status: str
    message: str | None = None
    """Its last message once it completed, or why it failed."""


class CollabCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call of a first-generation tool."""

    id: str
    tool: str
    status: str = "completed"
    receiver_thread_ids: list[str] = []
    prompt: str | None = None
    agents_states: dict[str, SubagentState] = {}


class SubagentActivity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of a second-generation sub-agent: started, interacted, interrupted or completed."""

    id: str
    kind: str
    agent_thread_id: str
    agent_path: str = UNNAMED


class CodexSubagents:
    """The sub-agents of one run. Each begins once and reports once."""

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._reported: set[str] = set()
        self.spawning: set[str] = set()
        """Ids of the spawn calls whose agent has no id yet."""

    def has_begun(self, agent_id: str) -> bool:
        """Return whether a sub-agent with this id has begun."""
        return agent_id in self._begun

    def call_started(self, call: CollabCall) -> tuple[Fact, ...]:
        """Return the facts for the start of a sub-agent tool call."""
        tool = _snake_case(call.tool)
        if tool == "spawn_agent":
            self.spawning.add(call.id)
            return (Ignored("spawn_agent", "the sub-agent has no id before it is spawned"),)
        if tool == "wait":
            return (Ignored("wait", "the end of the wait reports the sub-agents"),)
        return (ToolReady(call.id, tool, {"agents": call.receiver_thread_ids, "prompt": call.prompt}),)

    def call_completed(self, call: CollabCall) -> tuple[Fact, ...]:
        """Return the facts for the end of a call and for the states of sub-agents that it lists."""
        tool = _snake_case(call.tool)
        facts: list[Fact] = []
        if tool == "spawn_agent":
            self.spawning.discard(call.id)
            facts += self._spawned(call)
        elif tool != "wait":
            failed = "the call failed" if call.status == "failed" else None
            facts += [*self.call_started(call), ToolDone(call.id, error=failed, name=tool)]
        for agent_id, state in call.agents_states.items():
            facts += self._report_state(agent_id, state)
        return tuple(facts) or (Ignored(tool, "no sub-agent reported"),)

    def begin(self, agent_id: str, name: str, prompt: str) -> tuple[Fact, ...]:
        """Return the begin fact of a sub-agent; empty when it has begun before."""
        if agent_id in self._begun:
            return ()
        self._begun.add(agent_id)
        return (SubagentBegin(agent_id, name, prompt),)

    def report(
        self, agent_id: str, summary: str = "", error: str | None = None, cost: CostRecord | None = None
    ) -> tuple[Fact, ...]:
        """Return the end fact of a sub-agent; empty when it has reported before: the first report counts."""
        if agent_id in self._reported:
            return ()
        self._reported.add(agent_id)
        return (SubagentDone(agent_id, summary, error, cost),)

    def _spawned(self, call: CollabCall) -> list[Fact]:
        prompt = call.prompt or ""
        if call.receiver_thread_ids:
            return [fact for agent in call.receiver_thread_ids for fact in self.begin(agent, UNNAMED, prompt)]
        return [*self.begin(call.id, UNNAMED, prompt), *self.report(call.id, error="the sub-agent was not spawned")]

    def _report_state(self, agent_id: str, state: SubagentState) -> tuple[Fact, ...]:
        match _snake_case(state.status):
            case "completed":
                return self.report(agent_id, state.message or "")
            case "errored" | "interrupted" | "shutdown" | "not_found" as ending:
                return self.report(agent_id, error=state.message or ending.replace("_", " "))
        return ()


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
