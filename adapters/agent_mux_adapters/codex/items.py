"""The items that a thread consists of, with the type names of both protocols."""

from typing import Any

import msgspec

from agent_mux_adapters.codex import tools
from agent_mux_adapters.codex.subagents import CollabCall, SubagentActivity
from agent_mux_adapters.codex.wire import read

_SNAKE_CASE = {
    "agentPath": "agent_path",
    "agentThreadId": "agent_thread_id",
    "agentsStates": "agents_states",
    "aggregatedOutput": "aggregated_output",
    "contentItems": "content_items",
    "durationMs": "duration_ms",
    "exitCode": "exit_code",
    "readOnlyHint": "read_only_hint",
    "receiverThreadIds": "receiver_thread_ids",
    "revisedPrompt": "revised_prompt",
    "savedPath": "saved_path",
}
"""Field names of the app-server, and of `codex exec --json`. The classes use the latter."""


class MessageItem(msgspec.Struct, frozen=True, gc=False):
    """A message or a proposed plan. The app-server has streamed its text before, `exec` has not."""

    id: str
    text: str


class ReasoningItem(msgspec.Struct, frozen=True, gc=False):
    """A thought: `text` in `exec`; in the app-server the parts of a summary or of the raw thought."""

    id: str
    text: str = ""
    summary: list[str] = []
    content: list[str] = []


class WarningItem(msgspec.Struct, frozen=True, gc=False):
    """An `error` item of `exec`. It is not fatal: fatal errors are lines of their own, not items."""

    message: str


class PlanItemStep(msgspec.Struct, frozen=True, gc=False):
    """A line of the plan in `exec`."""

    text: str
    completed: bool = False


class PlanItem(msgspec.Struct, frozen=True, gc=False):
    """The plan in `exec`; the app-server has `turn/plan/updated` instead."""

    id: str
    items: list[PlanItemStep]


class CompactionItem(msgspec.Struct, frozen=True, gc=False):
    """A compaction of the context."""

    id: str


Item = (
    MessageItem
    | ReasoningItem
    | WarningItem
    | PlanItem
    | CompactionItem
    | CollabCall
    | SubagentActivity
    | tools.CodexToolCall
)

EXEC_ITEMS: dict[str, type[Item]] = {
    "agent_message": MessageItem,
    "reasoning": ReasoningItem,
    "error": WarningItem,
    "todo_list": PlanItem,
    "collab_tool_call": CollabCall,
    "command_execution": tools.CommandCall,
    "file_change": tools.ExecPatchCall,
    "mcp_tool_call": tools.McpToolCall,
    "web_search": tools.WebSearchCall,
}
THREAD_ITEMS: dict[str, type[Item]] = {
    "agentMessage": MessageItem,
    "plan": MessageItem,
    "reasoning": ReasoningItem,
    "contextCompaction": CompactionItem,
    "collabAgentToolCall": CollabCall,
    "subAgentActivity": SubagentActivity,
    "commandExecution": tools.CommandCall,
    "fileChange": tools.PatchCall,
    "mcpToolCall": tools.McpToolCall,
    "webSearch": tools.WebSearchCall,
    "dynamicToolCall": tools.DynamicToolCall,
    "imageView": tools.ImageViewCall,
    "sleep": tools.SleepCall,
    "imageGeneration": tools.ImageGenerationCall,
}
IGNORED_ITEMS = {
    "userMessage": "our own prompt",
    "hookPrompt": "text of a hook for the model",
    "functionCallOutput": "the result of a call by another client",
    "enteredReviewMode": "the messages of the review show it",
    "exitedReviewMode": "the messages of the review show it",
}
"""Items of the app-server without facts of their own, and why."""


def read_item(kinds: dict[str, type[Item]], item: dict[str, Any]) -> Item | None:
    """Read an item of one of these kinds; None when its type is not among them or its fields do not fit."""
    kind = item.get("type")
    shape = kinds.get(kind) if isinstance(kind, str) else None
    return None if shape is None else read(shape, {_SNAKE_CASE.get(name, name): value for name, value in item.items()})
