"""What an adapter can tell the dialect about its agent: data, and small functions for what data cannot say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_mux.adapter import CodecContext
from agent_mux.events.cost import CostRecord
from agent_mux.facts import Fact, Failure, Note, Usage
from agent_mux_adapters._dialects.acp.requests import AcpRequest, OpenedSession, default_settings
from agent_mux_adapters._dialects.acp.tool_reader import ToolReader
from agent_mux_adapters._dialects.acp.usage import default_usage
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import text

NOTHING_OFFERED: Mapping[str, Any] = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
"""We offer the agent no file system and no terminal: it uses its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOutcome:
    """How the agent answered a prompt."""

    stop_reason: str
    """end_turn, max_tokens, max_turn_requests, refusal, cancelled, or whatever the agent says."""
    result: Mapping[str, Any]
    """The whole answer."""
    spoke: bool
    """There was a message in this turn, or a tool was called."""
    failure: Failure | None = None
    """What an aside (`AcpQuirks.asides`) said about the turn."""
    cost: CostRecord | None = None
    """Of the turn, where the agent told it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpQuirks:
    """Where one agent differs from the protocol, or says more. Without any it is an agent as the protocol wants it."""

    agent: str = "the agent"
    """Its name in notes and refusals."""
    tools: ToolReader = field(default_factory=ToolReader)
    """What its tool calls mean."""
    client_capabilities: Mapping[str, Any] = field(default_factory=lambda: NOTHING_OFFERED)
    """`clientCapabilities` of the handshake. Questions (`elicitation`) are added where somebody can answer them."""
    asks_questions: bool = True
    """Announce that we answer `elicitation/create`. False for an agent that stumbles over it."""
    login: Callable[[CodecContext, Sequence[str]], str | None] = lambda _context, _offered: None
    """Which of the offered login methods (ids) to `authenticate` with before a session is opened."""
    continues_with: Literal["load", "resume"] = "load"
    """What continues a session where the agent offers both: only `load` tells how many turns there were."""
    history_ends_with: str = ""
    """The kind of update after which the history is all told, where that is after the answer to `session/load`."""
    settings: Callable[[CodecContext, OpenedSession], Sequence[AcpRequest | Note]] = default_settings
    """Between the opening of the session and the first prompt: what to ask for (model, effort, mode), and what cannot
    be asked for."""
    takes_system_prompt: bool = True
    """The system prompt is put before the first prompt. False: the adapter hands it over in another way."""
    asides: Mapping[str, Callable[[str], Fact | Failure]] = field(default_factory=dict)
    """Messages that the agent itself makes, by how they begin: told as a fact instead of a message. With a `Failure`
    the turn fails, however it ends."""
    closing_fact: Callable[[PromptOutcome], Fact | None] = lambda _: None
    """The closing fact, for an answer to a prompt that does not say what it means. None: it does."""
    failure: Callable[[RpcError], Failure | None] = lambda _: None
    """What an error of the agent means. None: as usual."""
    usage: Callable[[Mapping[str, Any]], Usage | None] = default_usage
    """The tokens in the answer to a prompt."""
    usage_is_cumulative: bool = False
    """The answer counts the tokens of the whole session."""
    cost_is_of_process: bool = False
    """`usage_update.cost` counts from the start of the process, also in a session that is continued."""
    plan_repeats_tool_call: bool = False
    """`plan` updates repeat the input of a tool call."""
    signal_at_end: int | None = None
    """Sent to the process group after the end of input, for an agent that does not leave by itself."""
    signal_with_servers: int | None = None
    """As `signal_at_end`, for an agent that leaves by itself unless MCP servers are connected."""
    acknowledged: frozenset[str] = frozenset()
    """Requests that are answered as done, though we do not offer them: the agent does the thing by itself, too."""
    parent_call_of: Callable[[Mapping[str, Any]], str] = lambda meta: text(meta.get("parentToolCallId"))
    """The id of the call that delegated, from the `_meta` of what a sub-agent does; empty for the agent itself."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Its own methods, requests and kinds of updates that say nothing about a run -> why."""
