"""Data of a stored conversation: a session and its loops."""

from typing import Any, Literal

import msgspec

from agent_loop.events import ContinuationKind, LoopEvent
from agent_loop.messages import Message
from agent_loop.state import AgentState
from agent_loop.usage import Usage

Formation = Literal["explicit", "first_loop", "inactivity"]
RecordStatus = Literal["running", "completed", "rejected", "aborted", "failed", "limited"]


class LoopConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """Model configuration of a loop as plain data, without secrets."""

    config_id: str = ""
    name: str = ""
    """The name by which `provider_named` finds the model: "provider:model"."""
    provider: str = ""
    model: str = ""
    api: str = ""
    """The API that the provider speaks, for example "anthropic-messages"; empty if unknown."""
    base_url: str | None = None
    """The address of the API, without user and query."""
    reasoning: bool | None = None
    """Whether the model can think before it answers."""
    context_window: int | None = None
    """Tokens; None if unknown."""
    thinking: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None


class ParallelGroup(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The loops that ran in parallel over one context, and their evaluation."""

    loop_ids: tuple[str, ...]
    """All loops of the group, in the order of their configurations."""
    selected_loop_id: str | None = None
    """The loop that the session continues; None while none is selected."""
    note: str = ""
    """Why the loop was selected, or why none was."""
    evaluation_usage: Usage = Usage()
    is_selected: bool = False
    """Whether the record with this group is the selected loop."""

    @property
    def selected_index(self) -> int | None:
        """Position of the selected loop in `loop_ids`; None while none is selected."""
        return None if self.selected_loop_id is None else self.loop_ids.index(self.selected_loop_id)


class ChildLoopRef(msgspec.Struct, frozen=True, kw_only=True):
    """The link from a loop to the loop of a sub-agent that one of its tool calls started."""

    tool_call_id: str
    tool_name: str
    child_loop_id: str
    child_session_id: str


class SpawnRef(msgspec.Struct, frozen=True, kw_only=True):
    """The link from the session of a sub-agent to the tool call that started it."""

    parent_session_id: str
    parent_loop_id: str
    tool_call_id: str
    tool_name: str
    depth: int = 1
    """1 for a sub-agent of the main agent, 2 for its sub-agents."""


class LoopRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One run of the loop."""

    loop_id: str
    parent_loop_id: str | None = None
    continuation_kind: ContinuationKind | None = None
    started_at: int = 0
    """Milliseconds since the Unix epoch."""
    ended_at: int | None = None
    status: RecordStatus = "running"
    rejection: str | None = None
    error: str | None = None
    config: LoopConfig | None = None
    base: int = 0
    """Number of messages that it keeps of the parent's history; a branch keeps fewer than all."""
    messages: list[Message] = []
    """The messages that this loop added."""
    usage: Usage = Usage()
    turns: int = 0
    metadata: Any = None
    agent: str = ""
    """The name of the agent that had the conversation; empty for an agent without handoffs."""
    agent_since: int = 0
    """Number of messages in the history before that agent got the conversation."""
    handed_off_to: str | None = None
    """The agent that continues the conversation after this loop, if the loop handed it off."""
    parallel_group: ParallelGroup | None = None
    """The parallel run that this loop is part of."""
    child_loop_refs: list[ChildLoopRef] = []
    """The loops of sub-agents, which are in sessions of their own."""
    events: list[LoopEvent] = []
    """The events, without fragments unless the recorder keeps them."""


class Session(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One conversation with all its loops."""

    session_id: str
    agent_id: str
    created_at: int = 0
    last_active_at: int = 0
    """Milliseconds since the Unix epoch."""
    formation: Formation = "first_loop"
    forked_from: str | None = None
    """Id of the session from which this one was forked."""
    parent_spawn_ref: SpawnRef | None = None
    """The tool call that started this session as a sub-agent."""
    cwd: str | None = None
    """Working directory of the agent, if it had a workspace."""
    state: AgentState = msgspec.field(default_factory=AgentState)
    loops: list[LoopRecord] = []
    """The loops in the order they were started."""

    def get_loop(self, loop_id: str) -> LoopRecord | None:
        """Return the loop with this id, or None."""
        return next((loop for loop in self.loops if loop.loop_id == loop_id), None)

    def head(self) -> LoopRecord | None:
        """Return the loop that the next one continues: the last one, or the selected one of a parallel run.

        A parallel run without a selected loop continues from the loop before it.
        """
        last = self.loops[-1] if self.loops else None
        if last is None or last.parallel_group is None:
            return last
        return self.get_loop(last.parallel_group.selected_loop_id or last.parent_loop_id or "")

    def history(self, loop_id: str | None = None) -> list[Message]:
        """Return the messages up to the end of this loop, or of the `head`.

        Raises `KeyError` if the loop is not in this session.
        """
        messages: list[Message] = []
        for loop in self._path(loop_id):
            del messages[loop.base :]
            messages += loop.messages
        return messages

    def holder(self, length: int, loop_id: str | None = None) -> tuple[str, int]:
        """Return the agent that continues a history of this length, and its number of messages before that agent.

        The history is that of `head`, or the one up to the end of the loop. The name is empty for the agent with which
        the conversation began. Raises `KeyError` if the loop is not in this session.
        """
        found = ("", 0)
        for loop in self._path(loop_id):
            if loop.base > length:
                break
            found, end = (loop.agent, loop.agent_since), loop.base + len(loop.messages)
            if loop.handed_off_to is not None and length >= end:
                found = (loop.handed_off_to, end)
        return found

    def _path(self, loop_id: str | None) -> list[LoopRecord]:
        """Return the loops from the beginning of the conversation to this one, or to the `head`."""
        by_id = {loop.loop_id: loop for loop in self.loops}
        end = self.head() if loop_id is None else by_id[loop_id]
        path = [] if end is None else [end]
        while path and (parent := path[-1].parent_loop_id) is not None and parent in by_id:
            path.append(by_id[parent])
        return path[::-1]

    def root_loops(self) -> list[LoopRecord]:
        """Return the loops without a parent in this session."""
        return [loop for loop in self.loops if self.get_loop(loop.parent_loop_id or "") is None]

    def children_of(self, loop_id: str) -> list[LoopRecord]:
        """Return the loops that continue this one."""
        return [loop for loop in self.loops if loop.parent_loop_id == loop_id]

    def parallel_siblings(self, loop_id: str) -> list[LoopRecord]:
        """Return the other loops of the parallel run that this loop is part of, in the order of configurations."""
        loop = self.get_loop(loop_id)
        if loop is None or loop.parallel_group is None:
            return []
        siblings = (self.get_loop(one) for one in loop.parallel_group.loop_ids if one != loop_id)
        return [one for one in siblings if one is not None]

    def total_usage(self) -> Usage:
        """Return the usage of all loops together, those that were not selected and their evaluation included."""
        total = Usage()
        groups: set[tuple[str, ...]] = set()
        for loop in self.loops:
            total += loop.usage
            group = loop.parallel_group
            if group is not None and group.loop_ids not in groups:
                groups.add(group.loop_ids)
                total += group.evaluation_usage
        return total
