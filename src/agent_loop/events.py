"""What a run tells while it goes: the stream of `run_stream`. Source: loop spec, section 3; phi-core, "AgentEvent".

The order within a run, always:

    loop_start
      message_injected ...                                      the prompts
      turn_start
        text_delta / thinking_delta / tool_input_delta ...      while the model speaks
        reasoning?, text?                                       whole, once it has spoken (text not in a terminal turn)
        tool_call_start, tool_call, tool_update ..., tool_result, tool_call_end      per tool call
      turn_end
      message_injected?                                         steering, follow-ups, reminders, budgets
      ... more turns
      final?                                                    not when aborted or failed
    loop_end                                                    always, and last

Tool calls that run in parallel have their events mixed; those of one call stay in order. The loop spec's
`StepStartEvent` and `StepCompleteEvent` are our `tool_call_start` and `tool_call_end`: a step is a model call in the
AgentEvent contract, and one word must not mean two things.
"""

from typing import Any, Literal

import msgspec

from agent_loop.errors import ProviderErrorKind
from agent_loop.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agent_loop.tools.effects import OutputStream, ToolEffect
from agent_loop.usage import Usage

ContinuationKind = Literal["default", "rerun", "branch"]
TurnTrigger = Literal["user", "sub_agent", "continuation", "branch"]
LoopStatus = Literal["completed", "rejected", "aborted", "failed", "limited"]
"""How a loop ended. "limited": at one of its limits, with or without a final summary."""


class _Event(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True):
    loop_id: str


class LoopStart(_Event, frozen=True, tag="loop_start"):
    """A run begins."""

    agent_id: str
    session_id: str
    parent_loop_id: str | None = None
    """The loop this one goes on from."""
    base: int | None = None
    """How many messages of the parent's history it goes on from, as `LoopRecord.base`; None: all there are."""
    continuation_kind: ContinuationKind | None = None
    """None: an origin, with a prompt of its own."""
    model: str = ""
    provider: str = ""
    prior_turns: int = 0
    """Model calls in the session before this run."""
    timestamp: int = 0
    """Milliseconds since the Unix epoch."""
    metadata: Any = None


class InputRejected(_Event, frozen=True, tag="input_rejected"):
    """An input filter refused the prompt: nothing is run."""

    reason: str


class InputWarning(_Event, frozen=True, tag="input_warning"):
    """An input filter let the prompt through with a warning, which the model sees too."""

    message: str


class TurnStart(_Event, frozen=True, tag="turn_start"):
    """A model call, and the tools it wants."""

    turn: int
    """From 0, within the run."""
    trigger: TurnTrigger


class MessageInjected(_Event, frozen=True, tag="message_injected"):
    """The loop put a user message into the history; `message.origin` says why."""

    message: UserMessage


class TextDelta(_Event, frozen=True, tag="text_delta"):
    """A fragment of the answer."""

    text: str


class ThinkingDelta(_Event, frozen=True, tag="thinking_delta"):
    """A fragment of reasoning."""

    text: str


class ToolInputDelta(_Event, frozen=True, tag="tool_input_delta"):
    """A fragment of the arguments of a tool call."""

    call_id: str
    name: str
    delta: str


class MessageAbandoned(_Event, frozen=True, tag="message_abandoned"):
    """The model broke off: what it said so far counts for nothing, and the call may be repeated."""


class Reasoning(_Event, frozen=True, tag="reasoning"):
    """All reasoning of one answer."""

    text: str


class TextSaid(_Event, frozen=True, tag="text"):
    """All text of one answer that is not the last."""

    text: str


class ToolCallStart(_Event, frozen=True, tag="tool_call_start"):
    """A tool call is taken up: gates and validation come first. The loop spec's StepStart."""

    call_id: str
    name: str


class ToolCalled(_Event, frozen=True, tag="tool_call"):
    """The tool call, with its arguments as the model wrote them: before gates, validation and coercion."""

    call: ToolCall
    shell_command: str | None = None
    """The command line, where it runs one."""


class ToolUpdate(_Event, frozen=True, tag="tool_update"):
    """A part of the result, while the tool works."""

    call_id: str
    name: str
    text: str
    stream: OutputStream = "stdout"
    """The one of the command that printed it; of other tools it says nothing."""


class ToolProgress(_Event, frozen=True, tag="tool_progress"):
    """How it goes, for people."""

    call_id: str
    name: str
    text: str


class ToolResulted(_Event, frozen=True, tag="tool_result"):
    """What came of it."""

    message: ToolMessage
    effects: tuple[ToolEffect, ...] = ()
    duration_ms: int = 0


class ToolCallEnd(_Event, frozen=True, tag="tool_call_end"):
    """The tool call is over. The loop spec's StepComplete."""

    call_id: str
    name: str
    status: Literal["completed", "error"]


class UsageReported(_Event, frozen=True, tag="usage"):
    """Of one model call."""

    usage: Usage
    total: Usage
    """Of the run so far."""


class Retrying(_Event, frozen=True, tag="retrying"):
    """A model call failed and is repeated after a pause."""

    attempt: int
    """Of the call that comes, from 2."""
    max_attempts: int
    kind: ProviderErrorKind
    message: str
    delay: float
    """Seconds."""


class ContextFilling(_Event, frozen=True, tag="context_filling"):
    """The context is nearly full."""

    used_tokens: int
    max_tokens: int


class ContextCompacted(_Event, frozen=True, tag="context_compacted"):
    """The context was made smaller."""

    tier: str
    """"tool_outputs", "summary", "middle", "tail", or the name of a strategy of yours."""
    tokens_before: int
    tokens_after: int
    summary: str = ""


class BudgetExceeded(_Event, frozen=True, tag="budget_exceeded"):
    """A budget was used up: of tool output (bytes) or of calls of one tool."""

    budget: Literal["tool_output", "tool_calls"]
    limit: int
    used: int
    tool: str | None = None


class LimitReached(_Event, frozen=True, tag="limit_reached"):
    """The run ends at a limit."""

    limit: Literal["iterations", "turns", "tokens", "duration", "cost"]
    reason: str


class HookFailed(_Event, frozen=True, tag="hook_failed"):
    """A hook raised; the run goes on as if it were not there."""

    hook: str
    error: str


class Noted(_Event, frozen=True, tag="noted"):
    """Something that a person should know, and no failure: a skill that was passed over, a memory that was cut."""

    text: str


class OutputProduced(_Event, frozen=True, tag="output"):
    """The structured answer."""

    value: Any


class TurnEnd(_Event, frozen=True, tag="turn_end"):
    """The turn is over, in whatever way."""

    turn: int
    messages: tuple[AssistantMessage, ...]
    tool_results: tuple[ToolMessage, ...] = ()
    usage: Usage = Usage()


class Final(_Event, frozen=True, tag="final"):
    """The answer of the run. The loop spec's FinalResponseEvent."""

    text: str
    output: Any = None
    """The structured answer, where a schema was asked for."""


class LoopEnd(_Event, frozen=True, tag="loop_end"):
    """The run is over: always the last event."""

    status: LoopStatus
    usage: Usage = Usage()
    turns: int = 0
    messages: tuple[Message, ...] = ()
    """All that this loop added to the history."""
    rejection: str | None = None
    error: str | None = None
    error_kind: ProviderErrorKind | Literal["internal"] | None = None
    retry_after: float | None = None
    """Seconds, where the provider said it."""
    used_tokens: int | None = None
    """Of a context that was too long, where the provider said it; the same with `max_tokens`."""
    max_tokens: int | None = None
    timestamp: int = 0


LoopEvent = (
    LoopStart | InputRejected | InputWarning | TurnStart | MessageInjected | TextDelta | ThinkingDelta | ToolInputDelta
    | MessageAbandoned | Reasoning | TextSaid | ToolCallStart | ToolCalled | ToolUpdate | ToolProgress | ToolResulted
    | ToolCallEnd | UsageReported | Retrying | ContextFilling | ContextCompacted | BudgetExceeded | LimitReached
    | HookFailed | Noted | OutputProduced | TurnEnd | Final | LoopEnd
)  # fmt: skip
"""Anything a run tells."""
