"""The settings of an event stream, and the emitter that adds run id, agent, time and labels to each event."""

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux._util.ulids import ulid_from_bytes
from agent_mux.assembler.text_limit import WHOLE_TEXTS, LimitedText, cut_value, new_text
from agent_mux.events import AgentEvent
from agent_mux.events.base import BaseEvent
from agent_mux.sdk.facts import Capability
from agent_mux.sdk.models import Price


class StreamContext(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that shape the event stream of one run. The journal stores them."""

    run_id: str
    agent: str
    display_name: str = ""
    cwd: str = ""
    streams: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
    """The kinds of output that the native protocol delivers in fragments."""
    buffered: bool = False
    """Whether every message, thinking block and tool input is emitted whole (`stream=False`)."""
    show_approvals: bool = True
    """Whether approval events are emitted; False in plain `yolo` mode."""
    show_requests: bool = True
    """Whether `approval_request` and `approval_granted` are emitted; False in `deny` mode, which shows denials only."""
    permission_pending: bool = False
    """Whether a ready tool call may still be denied; its `shell_start` then waits for evidence that it runs."""
    interactive: bool = False
    """Whether the run continues after a failed or interrupted turn."""
    include_subagent_events: bool = False
    resumed: bool = False
    forked_from: str | None = None
    max_turns: int = 0
    model: str | None = None
    """The requested model; the agent may report another one."""
    prices: dict[str, Price] = {}
    """Prices by model name, for usage that the agent reports without an amount."""
    agent_version: str | None = None
    """The version of the program, if it is known without starting it; the agent may report another one."""
    tested_versions: tuple[str, ...] = ()
    """The versions that the adapter's recordings cover, oldest first; empty: they do not apply to the program."""
    max_text_bytes: int = 0
    """Bytes of UTF-8 after which a text is cut in events; 0: no limit, as in recordings of older versions."""
    auth_guidance: str = ""
    """What a person can do about an authentication failure of this agent."""
    limits: dict[str, str] = {}
    """The limits of the run by the names of their options: the value and where it was set, as people read it."""


class Emitter:
    """Collects the events of one run. The caller sets the time, which never decreases."""

    __slots__ = ("_ids", "_max_text_bytes", "agent", "kinds", "now", "out", "raw", "run_id")

    def __init__(self, run_id: str, agent: str, max_text_bytes: int = 0) -> None:
        self.run_id = run_id
        self._max_text_bytes = max_text_bytes
        self.agent = agent
        self.now = 1
        self.raw: str | None = None
        """The native line that produces the next events; None unless the run is in debug mode."""
        self.out: list[AgentEvent] = []
        self.kinds: set[type[BaseEvent]] = set()
        """The types of the events since the caller cleared this set."""
        self._ids = 0

    def emit(self, kind: type[BaseEvent], *values: Any, subagent: str | None = None) -> None:
        """Append an event. `values` are the event's own fields, in order."""
        self.kinds.add(kind)
        position = WHOLE_TEXTS.get(kind) if self._max_text_bytes > 0 else None
        left_out = 0
        if position is not None:
            cut, left_out = cut_value(values[position], self._max_text_bytes)
            values = (*values[:position], cut, *values[position + 1 :])
        event: Any = kind(self.run_id, self.agent, self.now, *values)
        if left_out:
            event = replace(event, truncated_bytes=left_out)
        if subagent is not None or self.raw is not None:
            event = _with_labels(event, subagent, self.raw)
        self.out.append(event)

    def new_text(self) -> LimitedText:
        """Return an empty text with the limit of the stream."""
        return new_text(self._max_text_bytes)

    def new_id(self) -> str:
        """Return a new ULID, derived from run id, time and a counter only, so that replaying yields the same ids."""
        self._ids += 1
        seed = blake2b(f"{self.run_id}/{self._ids}".encode(), digest_size=10).digest()
        return ulid_from_bytes(self.now.to_bytes(6, "big") + seed)


def _with_labels(event: BaseEvent, subagent: str | None, raw: str | None) -> BaseEvent:
    labels = {"raw": raw} if raw is not None else {}
    return replace(event, **labels, **({"subagent_id": subagent} if subagent is not None else {}))
