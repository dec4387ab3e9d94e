"""The lines of the protocol: events that the program prints, and control lines that we write.

See docs/reference/agent-protocol.md.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux.events import AgentEvent
from agent_mux.events.wire import UnknownEvent, event_from_dict
from agent_mux.sdk import ERROR_CODES
from agent_mux.sdk.codec import CodecContext, WriteStdin
from agent_mux.sdk.options import McpServer, RunOptions
from agent_mux_adapters._dialects.tolerant import mapping, text

_REPLACED = {"runId": "", "agent": "", "timestamp": 1}
"""Fields of an event that agent-mux sets itself, whatever the program prints."""


class Fragment(msgspec.Struct, gc=False):
    """The part of a line that is decoded on the hot path for text fragments."""

    type: str
    delta: str
    subagent: str | None = msgspec.field(name="subagentId", default=None)


_decode = msgspec.json.Decoder(Fragment).decode


def fragment_of(line: bytes) -> Fragment | None:
    """Decode a line that may be a fragment; the caller checks the type. None for any other line."""
    if b'_delta"' not in line:
        return None
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def event_of(native: Mapping[str, Any]) -> AgentEvent | None:
    """Return the event; None when the type is unknown, or a field is missing or has another type."""
    try:
        event = event_from_dict(_filled({**native, **_REPLACED}))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None
    return None if isinstance(event, UnknownEvent) else event


def _filled(plain: dict[str, Any]) -> dict[str, Any]:
    """Fill in fields of terminal events, so that an unknown or missing value does not hide the end of a run."""
    match plain.get("type"):
        case "error":
            code = plain.get("code")
            plain["code"] = code if code in ERROR_CODES else "INTERNAL"
            message = plain.get("message")
            plain["message"] = (
                message if isinstance(message, str) else f"the program reports an error {text(code)}".rstrip()
            )
            plain["recoverable"] = plain.get("recoverable") is True
        case "auth_error":
            plain["message"], plain["guidance"] = text(plain.get("message")), text(plain.get("guidance"))
        case "tool_call_start":
            plain.setdefault("inputAccumulated", "")
    return plain


# -- control lines

START = "start"
"""Key in `CodecContext.settings` of the start line's fields that the codec context does not contain."""
VERSION = 1
_IDENTITY = frozenset({"runId", "agent", "timestamp", "type"})


def control_line(kind: str, **fields: Any) -> WriteStdin:
    """Encode a control line without the fields that are None."""
    line = json.dumps({"type": kind, **_present(fields)}, ensure_ascii=False, separators=(",", ":"))
    return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def start_fields(options: RunOptions) -> dict[str, Any]:
    """Return the fields of the start line that the codec context does not contain.

    They are passed in `CodecContext.settings` under `START`.
    """
    return {
        "maxCostUsd": options.max_cost_usd,
        "maxTokensTotal": options.max_tokens_total,
        "thinkingBudgetTokens": options.thinking_budget_tokens,
        "temperature": options.temperature,
        "topP": options.top_p,
        "topK": options.top_k,
        "maxOutputTokens": options.output_limit,
        "readable": _readable(options) or None,
        "addDirs": list(map(str, options.add_dirs)) or None,
        "allowedTools": list(options.allowed_tools) or None,
        "disallowedTools": list(options.disallowed_tools) or None,
        "fallbackModels": [options.fallback_model] if options.fallback_model else None,
    }


def _readable(options: RunOptions) -> list[str]:
    """Return the directories of the run's skills, which the program must be able to read."""
    paths = [Path(path).absolute() for path in options.skills]
    return [str(path.parent if path.name == "SKILL.md" else path) for path in paths]


def start_line(context: CodecContext) -> WriteStdin:
    """Return the start line, which configures the run."""
    return control_line("start", **start_message(context))


def start_message(context: CodecContext) -> dict[str, Any]:
    """Return the fields of the start line that are set."""
    return _present(
        {
            "protocol": VERSION,
            "interactive": context.interactive or None,
            "model": context.model,
            "sessionId": context.session_id,
            "forkSessionId": context.fork_session_id,
            "noSession": context.no_session or None,
            "approvalMode": context.approval_mode,
            "asksEverything": context.asks_everything or None,
            "systemPrompt": context.system_prompt,
            "systemPromptMode": context.system_prompt_mode if context.system_prompt is not None else None,
            "maxTurns": context.max_turns,
            "thinkingEffort": context.thinking_effort,
            "outputSchema": context.output_schema,
            "mcpServers": [_server(server) for server in context.mcp_servers] or None,
            **context.settings.get(START, {}),
        }
    )


def _server(server: McpServer) -> dict[str, Any]:
    present: dict[str, Any] = {"name": server.name, "transport": server.transport}
    if server.transport == "stdio":
        return {**present, "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return {**present, "url": server.url, "headers": dict(server.headers)}


def is_agent_line(value: Any) -> bool:
    """Return whether a line can only be an AgentEvent."""
    line = mapping(value)
    return line.keys() >= _IDENTITY
