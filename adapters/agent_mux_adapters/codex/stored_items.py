"""Stored items and the older events about tools, with the field names and values that the app-server uses."""

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.codex.items import THREAD_ITEMS, Item, read_item


def read_stored_item(stored: Mapping[str, Any]) -> Item | None:
    """Return the item of an `item_completed` event; None if its type is unknown or its fields do not fit."""
    return read_item(THREAD_ITEMS, _app_server_item(text(stored.get("type")), stored))


def read_tool_event(event: Mapping[str, Any]) -> Item | None:
    """Return the item of an event at the end of a tool call, which releases before `item_completed` stored."""
    item = {**event, "id": event.get("call_id")}
    kind = _TOOL_EVENTS[text(event.get("type"))]
    match kind:
        case "McpToolCall":
            called, result = mapping(event.get("invocation")), mapping(event.get("result"))
            item.update({name: called.get(name) for name in ("server", "tool", "arguments")})
            item["result"], item["error"] = result.get("Ok"), result.get("Err")
        case "FileChange":
            item.setdefault("status", "failed" if event.get("success") is False else "completed")
        case "CommandExecution":
            item.setdefault("aggregated_output", text(event.get("stdout")) + text(event.get("stderr")))
            item.setdefault("status", "failed" if event.get("exit_code") else "completed")
    return read_item(THREAD_ITEMS, _app_server_item(kind, item))


_TOOL_EVENTS = {
    "exec_command_end": "CommandExecution",
    "patch_apply_end": "FileChange",
    "mcp_tool_call_end": "McpToolCall",
    "web_search_end": "WebSearch",
}
TOOL_EVENTS = frozenset(_TOOL_EVENTS)
"""The types of these events."""


def texts_of(content: Any) -> str:
    """Return the texts of content blocks, one per line."""
    return "\n".join(text(block.get("text")) for block in rows(content) if text(block.get("text")))


def _app_server_item(kind: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    item = {**stored, "type": kind[:1].lower() + kind[1:]}
    match kind:
        case "AgentMessage":
            item["text"] = texts_of(stored.get("content"))
        case "Reasoning":
            item["summary"], item["content"] = stored.get("summary_text") or [], stored.get("raw_content") or []
        case "CommandExecution":
            item["command"] = _command_line(stored.get("command"))
            item["cwd"] = _path_of(text(stored.get("cwd")))
            item["duration_ms"] = _milliseconds(mapping(stored.get("duration")))
        case "FileChange":
            changes = mapping(stored.get("changes"))
            item["changes"] = [_change(path, mapping(change)) for path, change in changes.items()]
        case "CollabAgentToolCall":
            states = mapping(stored.get("agents_states"))
            item["agents_states"] = {agent_id: _state(state) for agent_id, state in states.items()}
        case "McpToolCall":
            item["duration_ms"] = _milliseconds(mapping(stored.get("duration")))
    return item


def _change(path: str, change: Mapping[str, Any]) -> dict[str, Any]:
    kind = {"type": change.get("type"), "move_path": change.get("move_path")}
    return {"path": path, "kind": kind, "diff": text(change.get("unified_diff")) or text(change.get("content"))}


def _state(state: Any) -> dict[str, Any]:
    """Convert the state of a sub-agent: a status, or `{status: last message}`."""
    if isinstance(state, dict) and state:
        status, message = next(iter(state.items()))
        return {"status": status, "message": message if isinstance(message, str) else None}
    return {"status": text(state)}


def _command_line(command: Any) -> str:
    return shlex.join(map(str, command)) if isinstance(command, list) else text(command)


def _path_of(location: str) -> str | None:
    """Return the path in a path or a `file:` URL; None when it is empty."""
    return (unquote(urlsplit(location).path) if location.startswith("file:") else location) or None


def _milliseconds(duration: Mapping[str, Any]) -> int | None:
    return whole(duration.get("secs")) * 1000 + whole(duration.get("nanos")) // 1_000_000 if duration else None
