"""The differences of one agent from the protocol, which its adapter states as data and small functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_mux.events.base import CostRecord
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.facts import Fact, Failure, Note, Usage
from agent_mux_adapters._dialects.acp.requests import AcpRequest, OpenedSession, default_settings
from agent_mux_adapters._dialects.acp.tool_reader import ToolReader
from agent_mux_adapters._dialects.acp.usage import default_usage
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import text

NOTHING_OFFERED: Mapping[str, Any] = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
"""We offer the agent no file system and no terminal; it uses its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOutcome:
    """The response of the agent to a prompt."""

    stop_reason: str
    """`end_turn`, `max_tokens`, `max_turn_requests`, `refusal`, `cancelled`, or another native value."""
    result: Mapping[str, Any]
    """The complete result of the response."""
    spoke: bool
    """Whether the turn had a message or a tool call."""
    failure: Failure | None = None
    """The failure that an aside (`AcpQuirks.asides`) reported in this turn."""
    cost: CostRecord | None = None
    """The cost of the turn, None when the agent did not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpQuirks:
    """The differences of one agent from the protocol. The defaults describe an agent that conforms to it."""

    agent: str = "the agent"
    """The agent's name in notes and refusals."""
    tools: ToolReader = field(default_factory=ToolReader)
    """Reads the meaning of the agent's tool calls."""
    client_capabilities: Mapping[str, Any] = field(default_factory=lambda: NOTHING_OFFERED)
    """The `clientCapabilities` of the handshake. `elicitation` is added when the consumer can answer questions."""
    asks_questions: bool = True
    """Whether to announce that we answer `elicitation/create`; False for an agent that fails on it."""
    login: Callable[[CodecContext, Sequence[str]], str | None] = lambda _context, _offered: None
    """Selects which of the offered login methods (ids) to `authenticate` with before a session is opened; None for
    none."""
    continues_with: Literal["load", "resume"] = "load"
    """The method that resumes a session when the agent offers both. Only `load` replays the earlier turns."""
    history_ends_with: str = ""
    """The kind of update that ends the replayed history, for agents that replay it after the response to
    `session/load`."""
    settings: Callable[[CodecContext, OpenedSession], Sequence[AcpRequest | Note]] = default_settings
    """Returns the requests between opening the session and the first prompt (model, effort, mode), and notes for
    settings that the agent does not support."""
    takes_system_prompt: bool = True
    """Whether to put the system prompt before the first prompt. False when the adapter passes it in another way."""
    asides: Mapping[str, Callable[[str], Fact | Failure]] = field(default_factory=dict)
    """Messages that the agent itself generates, by their prefix, and the fact that replaces each. A `Failure` fails the
    turn, however it ends."""
    closing_fact: Callable[[PromptOutcome], Fact | None] = lambda _: None
    """Returns the closing fact for a response whose stop reason is misleading; None to use the stop reason."""
    failure: Callable[[RpcError], Failure | None] = lambda _: None
    """Returns the failure for an error response; None for the default."""
    usage: Callable[[Mapping[str, Any]], Usage | None] = default_usage
    """Reads the tokens in the response to a prompt."""
    usage_is_cumulative: bool = False
    """Whether the response to a prompt counts the tokens of the whole session."""
    cost_is_of_process: bool = False
    """Whether `usage_update.cost` counts from the start of the process even in a resumed session."""
    plan_repeats_tool_call: bool = False
    """Whether `plan` updates repeat the input of a tool call."""
    signal_at_end: int | None = None
    """A signal for the process group after the end of input, for an agent that does not exit by itself."""
    signal_with_servers: int | None = None
    """Like `signal_at_end`, for an agent that exits by itself unless MCP servers are connected."""
    acknowledged: frozenset[str] = frozenset()
    """Requests that get an empty success response although we do not offer them, because the agent also does the work
    itself."""
    parent_call_of: Callable[[Mapping[str, Any]], str] = lambda meta: text(meta.get("parentToolCallId"))
    """Returns the id of the delegating call from the `_meta` of a sub-agent's update; empty for the main agent."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Native methods and kinds of updates that carry nothing about a run, each with the reason."""
