"""The events of a run, as `Agent.run_stream` yields them.

The order within a run:

    loop_start
      message_injected ...                                      the prompts
      turn_start
        text_delta / thinking_delta / tool_input_delta ...      while the answer is streamed
        reasoning?, text?                                       complete, after the answer (no text in the last turn)
        tool_call_start, tool_call, tool_update ..., tool_result, tool_call_end      per tool call
      turn_end
      message_injected?                                         steering, follow-ups, reminders, budgets
      ... more turns
      final?                                                    unless aborted or failed
    loop_end                                                    always, and last

After a handoff, `handed_off` follows the events of its call, and the `loop_start` of the next agent follows `loop_end`:
a run has one loop for each agent that has the conversation.

Events of concurrent tool calls may be interleaved; those of one call stay in order.
"""

from typing import Any, Literal

import msgspec

from agent_loop.errors import ProviderErrorKind
from agent_loop.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agent_loop.tools.effects import OutputStream, ToolEffect
from agent_loop.tools.tool import McpOrigin
from agent_loop.usage import Usage

ContinuationKind = Literal["default", "rerun", "branch"]
TurnTrigger = Literal["user", "sub_agent", "continuation", "branch"]
LoopStatus = Literal["completed", "rejected", "aborted", "failed", "limited"]
"""How a loop ended. "limited": at one of its limits, with or without a final summary."""


LoopLimit = Literal["iterations", "turns", "tokens", "duration", "cost", "output", "repetition"]
"""A limit that ends a loop. "output": `max_tokens` cut the answer; "repetition": a failing call was repeated."""


class _Event(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True):
    loop_id: str


class LoopStart(_Event, frozen=True, tag="loop_start"):
    """A run started; the first event of each run."""

    agent_id: str
    session_id: str
    parent_loop_id: str | None = None
    """The loop that this one continues."""
    base: int | None = None
    """Number of messages that it keeps of the parent's history, as `LoopRecord.base`; None: all."""
    continuation_kind: ContinuationKind | None = None
    """None for a run with a prompt of its own."""
    model: str = ""
    provider: str = ""
    prior_turns: int = 0
    """Number of model calls in the session before this run."""
    timestamp: int = 0
    """Milliseconds since the Unix epoch."""
    metadata: Any = None
    agent: str = ""
    """The name of the agent that has the conversation; empty for an agent without handoffs."""
    agent_since: int = 0
    """Number of messages in the history before that agent got the conversation."""


class InputRejected(_Event, frozen=True, tag="input_rejected"):
    """An input filter rejected the prompt; the run ends without a turn."""

    reason: str


class InputWarning(_Event, frozen=True, tag="input_warning"):
    """An input filter accepted the prompt with a warning, which is sent to the model as well."""

    message: str


class TurnStart(_Event, frozen=True, tag="turn_start"):
    """A turn started: one model call and the tools that it calls."""

    turn: int
    """Number of the turn within the run, from 0."""
    trigger: TurnTrigger


class MessageInjected(_Event, frozen=True, tag="message_injected"):
    """The loop added a user message to the history; `message.origin` states the reason."""

    message: UserMessage


class TextDelta(_Event, frozen=True, tag="text_delta"):
    """A fragment of the answer's text."""

    text: str


class ThinkingDelta(_Event, frozen=True, tag="thinking_delta"):
    """A fragment of the model's reasoning."""

    text: str


class ToolInputDelta(_Event, frozen=True, tag="tool_input_delta"):
    """A fragment of a tool call's arguments."""

    call_id: str
    name: str
    delta: str
    mcp: McpOrigin | None = None
    """As in `ToolCalled`."""


class MessageAbandoned(_Event, frozen=True, tag="message_abandoned"):
    """The streamed answer was interrupted: its deltas are void, and the call may be repeated."""


class Reasoning(_Event, frozen=True, tag="reasoning"):
    """The complete reasoning of one answer."""

    text: str


class TextSaid(_Event, frozen=True, tag="text"):
    """The complete text of an answer that is not the last one."""

    text: str


class ToolCallStart(_Event, frozen=True, tag="tool_call_start"):
    """Processing of a tool call started; gates and validation follow."""

    call_id: str
    name: str


class ToolCalled(_Event, frozen=True, tag="tool_call"):
    """The tool call with the arguments of the model, before gates, validation and coercion."""

    call: ToolCall
    shell_command: str | None = None
    """The command line that runs during the call; None for other tools, and for a command in the background."""
    mcp: McpOrigin | None = None
    """The server and its name for the tool, if it is an MCP tool."""


class ToolUpdate(_Event, frozen=True, tag="tool_update"):
    """A part of the result of a running tool."""

    call_id: str
    name: str
    text: str
    stream: OutputStream = "stdout"
    """The stream of the command that printed the text; always "stdout" for tools without a command."""


class ToolProgress(_Event, frozen=True, tag="tool_progress"):
    """A progress message of a running tool, for people."""

    call_id: str
    name: str
    text: str


class ToolResulted(_Event, frozen=True, tag="tool_result"):
    """The result of a tool call, with the effects that the tool reported."""

    message: ToolMessage
    effects: tuple[ToolEffect, ...] = ()
    duration_ms: int = 0


class ToolCallEnd(_Event, frozen=True, tag="tool_call_end"):
    """Processing of a tool call ended."""

    call_id: str
    name: str
    status: Literal["completed", "error"]
    child_loop_id: str | None = None
    """The loop of the sub-agent that the call started."""
    child_session_id: str | None = None


class SubAgentStart(_Event, frozen=True, tag="sub_agent_start"):
    """A tool call starts a sub-agent. Exactly one `SubAgentEnd` follows."""

    call_id: str
    subagent_id: str
    name: str
    """The kind of sub-agent."""
    prompt: str
    depth: int = 1
    """1 for a sub-agent of the main agent, 2 for its sub-agents."""


class SubAgentEvent(_Event, frozen=True, tag="sub_agent_event"):
    """An event of a sub-agent's loop. The record of the parent does not contain it, that of the sub-agent does."""

    subagent_id: str
    event: "LoopEvent"


def is_failed_delegation(status: LoopStatus, text: str) -> bool:
    """Return whether a sub-agent that ended with this status and report failed, or stopped without any text."""
    return status not in {"completed", "limited"} or not text


class SubAgentEnd(_Event, frozen=True, tag="sub_agent_end"):
    """A sub-agent ended, whatever the outcome; precedes the result of its tool call."""

    call_id: str
    subagent_id: str
    name: str
    status: LoopStatus
    text: str = ""
    """The report of the sub-agent."""
    error: str | None = None
    """Why it has no report."""
    child_loop_id: str | None = None
    child_session_id: str | None = None
    model: str = ""
    usage: Usage = Usage()

    @property
    def is_error(self) -> bool:
        """Whether the sub-agent failed, or stopped without any text."""
        return is_failed_delegation(self.status, self.text)


class HandedOff(_Event, frozen=True, tag="handed_off"):
    """A tool call passed the conversation to another agent, which continues it in the next loop of the same run."""

    call_id: str
    source: str
    """The name of the agent that had the conversation."""
    target: str
    """The name of the agent that gets it."""
    message: str
    """What the model states for the target."""


class UsageReported(_Event, frozen=True, tag="usage"):
    """Token usage and cost of one model call."""

    usage: Usage
    total: Usage
    """Total of the loop up to this call."""


class Retrying(_Event, frozen=True, tag="retrying"):
    """A model call failed and is repeated after a delay."""

    attempt: int
    """Number of the next attempt, from 2."""
    max_attempts: int
    kind: ProviderErrorKind
    message: str
    delay: float
    """Delay in seconds."""


class ModelChanged(_Event, frozen=True, tag="model_changed"):
    """The calls of a model failed after all retries; the rest of the run uses the next of `Agent(fallbacks=)`."""

    provider: str
    model: str
    """The model that is used from now on."""
    kind: ProviderErrorKind
    reason: str
    """The error of the model before."""


class ContextFilling(_Event, frozen=True, tag="context_filling"):
    """The context is close to its maximum size."""

    used_tokens: int
    max_tokens: int


class ContextCompacted(_Event, frozen=True, tag="context_compacted"):
    """The context of the next request was compacted."""

    tier: str
    """"tool_outputs", "summary", "middle", "tail", the name that a custom strategy reports, or that of an edit
    that the provider applied to the request.
    """
    tokens_before: int
    tokens_after: int
    summary: str = ""


class BudgetExceeded(_Event, frozen=True, tag="budget_exceeded"):
    """A budget was exceeded: bytes of tool output, or calls of one tool."""

    budget: Literal["tool_output", "tool_calls"]
    limit: int
    used: int
    tool: str | None = None


class LimitReached(_Event, frozen=True, tag="limit_reached"):
    """The run ends because it reached a limit."""

    limit: LoopLimit
    reason: str


class HookFailed(_Event, frozen=True, tag="hook_failed"):
    """A hook raised; the run continues without its effect."""

    hook: str
    error: str


class Noted(_Event, frozen=True, tag="noted"):
    """A notice for the user, not a failure; for example a skipped skill file or truncated notes."""

    text: str


class OutputProduced(_Event, frozen=True, tag="output"):
    """The structured answer was produced."""

    value: Any


class McpBootstrapped(_Event, frozen=True, tag="mcp_bootstrapped"):
    """An MCP server was started and its tools were listed, or that failed."""

    server: str
    duration_ms: int
    tools: int = 0
    """The number of its tools."""
    error: str | None = None
    """The reason why its tools are not available."""


class TurnEnd(_Event, frozen=True, tag="turn_end"):
    """A turn ended, whatever the outcome."""

    turn: int
    messages: tuple[AssistantMessage, ...]
    tool_results: tuple[ToolMessage, ...] = ()
    usage: Usage = Usage()


class Final(_Event, frozen=True, tag="final"):
    """The final answer of the run."""

    text: str
    output: Any = None
    """The structured answer, if a schema was given."""


class ParallelLoopStart(msgspec.Struct, frozen=True, tag_field="type", tag="parallel_loop_start", omit_defaults=True):
    """Several loops over one context start; precedes their events, which are interleaved and name their loop."""

    session_id: str
    loop_ids: tuple[str, ...]
    """One per configuration, in their order."""
    timestamp: int = 0


class ParallelLoopEnd(msgspec.Struct, frozen=True, tag_field="type", tag="parallel_loop_end", omit_defaults=True):
    """All loops of a parallel run have ended and were evaluated; always its last event."""

    session_id: str
    loop_ids: tuple[str, ...]
    selected_loop_id: str | None = None
    """The loop that the session continues; None: nothing was selected, and it continues from before the loops."""
    selected_index: int | None = None
    """Position of its configuration."""
    note: str = ""
    """Why it was selected, or why none was."""
    evaluation_usage: Usage = Usage()
    """Usage of the model calls of a judge."""
    timestamp: int = 0


ParallelEvent = ParallelLoopStart | ParallelLoopEnd


class LoopEnd(_Event, frozen=True, tag="loop_end"):
    """The run ended; always the last event."""

    status: LoopStatus
    usage: Usage = Usage()
    turns: int = 0
    messages: tuple[Message, ...] = ()
    """All messages that this loop added to the history."""
    rejection: str | None = None
    limit: LoopLimit | None = None
    """The limit that ended a loop with the status "limited"."""
    error: str | None = None
    error_kind: ProviderErrorKind | Literal["internal"] | None = None
    error_status: int | None = None
    """HTTP status of the provider's response, if there was one."""
    retry_after: float | None = None
    """Seconds that the provider asks to wait, if it states them."""
    used_tokens: int | None = None
    """Size of a context that was too long, if the provider states it; `max_tokens` likewise."""
    max_tokens: int | None = None
    timestamp: int = 0
    handed_off_to: str | None = None
    """The agent whose loop follows in the same run; None for the last loop of a run."""


LoopEvent = (
    LoopStart | InputRejected | InputWarning | TurnStart | MessageInjected | TextDelta | ThinkingDelta | ToolInputDelta
    | MessageAbandoned | Reasoning | TextSaid | ToolCallStart | ToolCalled | ToolUpdate | ToolProgress | ToolResulted
    | ToolCallEnd | SubAgentStart | SubAgentEvent | SubAgentEnd | HandedOff | UsageReported | Retrying | ModelChanged
    | ContextFilling | ContextCompacted | BudgetExceeded
    | LimitReached | HookFailed | Noted | McpBootstrapped | OutputProduced | TurnEnd | Final | LoopEnd
)  # fmt: skip
"""Any event of a run."""
