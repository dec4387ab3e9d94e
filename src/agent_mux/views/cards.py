"""The cards of a run. A card is updated in place; its `version` counts the changes.

`card_to_dict` returns the JSON form, which has the tag `kind` and keys in camelCase.
"""

from typing import Any, Literal

import msgspec

from agent_mux.events import BaseEvent, CostRecord, QuotaWindow
from agent_mux.views.bounded_text import BoundedText

MESSAGE_LIMIT = 100_000
"""Characters kept of the beginning, and of the end, of a message."""
OUTPUT_LIMIT = 20_000
"""Characters kept of the beginning, and of the end, of a tool's output and of thinking."""

TextState = Literal["streaming", "done", "abandoned"]
CallState = Literal["preparing", "waiting", "running", "succeeded", "failed", "denied"]
"""The input arrives; an approval is pending; the tool runs; how the call ended."""
Decision = Literal["pending", "granted", "denied"]
FileAction = Literal["read", "wrote", "created", "deleted", "changed"]
RunActivity = Literal["starting", "working", "waiting", "delayed", "paused", "idle", "ended"]
"""`waiting`: for a person; `delayed`: for the provider or the next attempt; `idle`: between two turns."""


def _message_text() -> BoundedText:
    return BoundedText(head=MESSAGE_LIMIT, tail=MESSAGE_LIMIT)


def _output_text() -> BoundedText:
    return BoundedText(head=OUTPUT_LIMIT, tail=OUTPUT_LIMIT)


class Card(msgspec.Struct, rename="camel", tag_field="kind", kw_only=True):
    """The fields that all cards share."""

    id: str
    """Unique within the timeline: `tool-4`. Numbers increase in the order of creation."""
    agent: str
    started_at: int
    """Time of the first event, in milliseconds since the Unix epoch."""
    ended_at: int | None = None
    """Time of the last event; None while the card is open."""
    subagent_id: str | None = None
    """Id of the sub-agent inside which this occurred."""
    version: int = 0
    """Number of changes since the card was created."""

    @property
    def kind(self) -> str:
        """Tag of the card's class: `message`, `tool`, ..."""
        return str(self.__struct_config__.tag)

    @property
    def is_open(self) -> bool:
        """Whether events may still change the card."""
        return self.ended_at is None


class MessageCard(Card, tag="message", kw_only=True):
    """A text message of the agent."""

    state: TextState = "streaming"
    text: BoundedText = msgspec.field(default_factory=_message_text)


class ThinkingCard(Card, tag="thinking", kw_only=True):
    """A thinking block of the agent."""

    state: TextState = "streaming"
    effort: str | None = None
    text: BoundedText = msgspec.field(default_factory=_output_text)


class FileChange(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a tool call did with a file."""

    path: str
    action: FileAction
    byte_count: int | None = None
    diff: str | None = None


class ToolCard(Card, tag="tool", kw_only=True):
    """A call of a native tool or of a tool of an MCP server."""

    tool_call_id: str
    tool_name: str
    server: str | None = None
    """Name of the MCP server; None for native tools."""
    state: CallState = "preparing"
    input: Any = None
    input_text: BoundedText = msgspec.field(default_factory=_output_text)
    """The input as JSON text while it arrives."""
    command: str | None = None
    """The command line, once the tool runs it."""
    cwd: str | None = None
    output: BoundedText = msgspec.field(default_factory=_output_text)
    """Output of the command, else the result that the model receives."""
    exit_code: int | None = None
    error: str | None = None
    """Why the call failed, as the model receives it."""
    decision: Decision | None = None
    """The decision about its approval; None if none was requested."""
    denial_reason: str | None = None
    files: list[FileChange] = msgspec.field(default_factory=list)
    omitted_files: int = 0
    """Number of further files that are not kept."""
    duration_ms: int | None = None


class SubagentCard(Card, tag="subagent", kw_only=True):
    """A task that the agent delegates to a sub-agent."""

    agent_name: str
    prompt: str
    state: Literal["running", "succeeded", "failed"] = "running"
    summary: str | None = None
    error: str | None = None
    cost: CostRecord | None = None
    tool_calls: int = 0
    """Number of tool calls inside; 0 unless the run includes events of sub-agents."""


class ApprovalCard(Card, tag="approval", kw_only=True):
    """A request for permission and its decision."""

    interaction_id: str
    action: str
    detail: str
    risk_level: Literal["low", "medium", "high"] | None = None
    tool_call_id: str | None = None
    command: str | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    diff: str | None = None
    state: Decision = "pending"
    reason: str | None = None


class QuestionCard(Card, tag="question", kw_only=True):
    """A question of the agent. It ends when the agent continues; events do not contain the answer."""

    interaction_id: str
    question: str
    context: str | None = None


class ErrorCard(Card, tag="error", kw_only=True):
    """An error of the agent, its provider or agent-mux. `recoverable`: the run continues."""

    code: str
    """Error code, or the type of the event: `timeout`, `crash`."""
    message: str
    guidance: str | None = None
    recoverable: bool = False


class NoticeCard(Card, tag="notice", kw_only=True):
    """An event that is shown as one line: a retry, a compaction, a log line, the start of the session."""

    event: BaseEvent


class CostCard(Card, tag="cost", kw_only=True):
    """The cost of the run so far; one per timeline."""

    cost: CostRecord


class StatusCard(Card, tag="status", kw_only=True):
    """The state of the run; one per timeline."""

    activity: RunActivity = "starting"
    agent_version: str | None = None
    session_id: str | None = None
    model: str | None = None
    """The model, where an event names it: after a fallback."""
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: CostRecord | None = None
    quota: tuple[QuotaWindow, ...] = ()
    context_used: float | None = None
    """Share of the context window in use, 0 to 100, where reported."""
    running: list[str] = msgspec.field(default_factory=list)
    """Ids of the open cards of messages, thinking, tool calls and sub-agents, in order."""
    ended_by: str | None = None
    """Type of the terminal event, if the run did not complete."""
    updated_at: int = 0
    """Time of the last event."""


AnyCard = (
    MessageCard
    | ThinkingCard
    | ToolCard
    | SubagentCard
    | ApprovalCard
    | QuestionCard
    | ErrorCard
    | NoticeCard
    | CostCard
    | StatusCard
)


def card_to_dict(card: Card) -> dict[str, Any]:
    """Return the JSON form of a card: a copy that later events do not change."""
    plain: dict[str, Any] = msgspec.to_builtins(card, enc_hook=_encode)
    return {name: value for name, value in plain.items() if value is not None}


def _encode(value: Any) -> Any:
    if isinstance(value, BoundedText):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is not part of a card")
