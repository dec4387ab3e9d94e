"""The kinds of items a thread consists of, by the names of both protocols, and how to read one."""

from typing import Any

import msgspec

from agent_mux_adapters.codex import calls
from agent_mux_adapters.codex.delegation import Activity, CollabCall
from agent_mux_adapters.codex.wire import read

_SNAKE = {
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


class Message(msgspec.Struct, frozen=True, gc=False):
    """The agent says something (`exec`: text; app-server: text that was streamed before), or proposes a plan."""

    id: str
    text: str


class Reasoning(msgspec.Struct, frozen=True, gc=False):
    """A thought: `text` in `exec`, the parts of a summary or of the raw thought in the app-server."""

    id: str
    text: str = ""
    summary: list[str] = []
    content: list[str] = []


class Warned(msgspec.Struct, frozen=True, gc=False):
    """An `error` item of `exec`: harmless, or it would not be an item."""

    message: str


class TodoStep(msgspec.Struct, frozen=True, gc=False):
    """A line of the plan."""

    text: str
    completed: bool = False


class TodoList(msgspec.Struct, frozen=True, gc=False):
    """The plan in `exec`; the app-server has `turn/plan/updated` instead."""

    id: str
    items: list[TodoStep]


class Compaction(msgspec.Struct, frozen=True, gc=False):
    """The context was compressed."""

    id: str


Item = Message | Reasoning | Warned | TodoList | Compaction | CollabCall | Activity | calls.Call

EXEC_ITEMS: dict[str, type[Item]] = {
    "agent_message": Message,
    "reasoning": Reasoning,
    "error": Warned,
    "todo_list": TodoList,
    "collab_tool_call": CollabCall,
    "command_execution": calls.Command,
    "file_change": calls.PathChanges,
    "mcp_tool_call": calls.McpCall,
    "web_search": calls.WebSearch,
}
THREAD_ITEMS: dict[str, type[Item]] = {
    "agentMessage": Message,
    "plan": Message,
    "reasoning": Reasoning,
    "contextCompaction": Compaction,
    "collabAgentToolCall": CollabCall,
    "subAgentActivity": Activity,
    "commandExecution": calls.Command,
    "fileChange": calls.FileChanges,
    "mcpToolCall": calls.McpCall,
    "webSearch": calls.WebSearch,
    "dynamicToolCall": calls.DynamicCall,
    "imageView": calls.ImageView,
    "sleep": calls.Sleep,
    "imageGeneration": calls.ImageGeneration,
}
SILENT_ITEMS = {
    "userMessage": "our own prompt",
    "hookPrompt": "what a hook told the model",
    "functionCallOutput": "the answer to a call that another client makes",
    "enteredReviewMode": "the review is told by its messages",
    "exitedReviewMode": "the review was told by its messages",
}
"""Items of the app-server that say nothing, and why."""


def load(kinds: dict[str, type[Item]], item: dict[str, Any]) -> Item | None:
    """Read an item of one of these kinds; None when its kind is not among them or its fields do not fit."""
    kind = item.get("type")
    shape = kinds.get(kind) if isinstance(kind, str) else None
    return None if shape is None else read(shape, {_SNAKE.get(name, name): value for name, value in item.items()})
