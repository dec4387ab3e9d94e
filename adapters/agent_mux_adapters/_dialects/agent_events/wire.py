"""One line of a program: an event of the union, checked, or nothing. Source: docs/reference/agent-protocol.md."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux.adapter import CodecContext
from agent_mux.effects import WriteStdin
from agent_mux.errors import ERROR_CODES
from agent_mux.events import AgentEvent
from agent_mux.events.wire import UnknownEvent, event_from_dict
from agent_mux.options import McpServer, RunOptions
from agent_mux_adapters._dialects.tolerant import text

_OURS = {"runId": "", "agent": "", "timestamp": 1}
"""Not the program's to say: the mux has its own."""


class Fragment(msgspec.Struct, gc=False):
    """The hot path: all that is read of a line which plainly is a fragment."""

    type: str
    delta: str
    subagent: str | None = msgspec.field(name="subagentId", default=None)


_decode = msgspec.json.Decoder(Fragment).decode


def fragment_of(line: bytes) -> Fragment | None:
    """The fragment that a line may be; its type is still to be looked at."""
    if b'_delta"' not in line:
        return None
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def event_of(native: Mapping[str, Any]) -> AgentEvent | None:
    """The event, or None where the type is not known, or a field is missing or of another type."""
    try:
        event = event_from_dict(_filled({**native, **_OURS}))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None
    return None if isinstance(event, UnknownEvent) else event


def _filled(plain: dict[str, Any]) -> dict[str, Any]:
    """What ends a run is not lost because of a word that is not ours, or because one is missing."""
    match plain.get("type"):
        case "error":
            code = plain.get("code")
            plain["code"] = code if code in ERROR_CODES else "INTERNAL"
            said = plain.get("message")
            plain["message"] = said if isinstance(said, str) else f"the program reports an error {text(code)}".rstrip()
            plain["recoverable"] = plain.get("recoverable") is True
        case "auth_error":
            plain["message"], plain["guidance"] = text(plain.get("message")), text(plain.get("guidance"))
        case "tool_call_start":
            plain.setdefault("inputAccumulated", "")
    return plain


# TODO The lines that go to a program. Source: docs/reference/agent-protocol.md.

START = "start"
"""In `CodecContext.settings`: the fields of the first line that the codec cannot know otherwise."""
VERSION = 1
_IDENTITY = frozenset({"runId", "agent", "timestamp", "type"})


def control_line(kind: str, **fields: Any) -> WriteStdin:
    """One control line; what is None is left out."""
    told = {name: value for name, value in fields.items() if value is not None}
    line = json.dumps({"type": kind, **told}, ensure_ascii=False, separators=(",", ":"))
    return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def start_fields(options: RunOptions) -> dict[str, Any]:
    """What the first line says besides what every codec knows: for `CodecContext.settings`, under `START`."""
    return {
        "maxCostUsd": options.max_cost_usd,
        "maxTokensTotal": options.max_tokens_total,
        "thinkingBudgetTokens": options.thinking_budget_tokens,
        "temperature": options.temperature,
        "topP": options.top_p,
        "topK": options.top_k,
        "maxOutputTokens": options.output_limit,
        "readable": _readable(options) or None,
    }


def _readable(options: RunOptions) -> list[str]:
    """Where the skills of the run are: their files are named in the system prompt, and are to be read."""
    paths = [Path(path).absolute() for path in options.skills]
    return [str(path.parent if path.name == "SKILL.md" else path) for path in paths]


def start_line(context: CodecContext) -> WriteStdin:
    """The first line: what this run is to be like."""
    extra: Mapping[str, Any] = context.settings.get(START, {})
    return control_line(
        "start",
        protocol=VERSION,
        interactive=context.interactive or None,
        model=context.model,
        sessionId=context.session_id,
        forkSessionId=context.fork_session_id,
        noSession=context.no_session or None,
        approvalMode=context.approval_mode,
        asksEverything=context.asks_everything or None,
        systemPrompt=context.system_prompt,
        systemPromptMode=context.system_prompt_mode if context.system_prompt is not None else None,
        maxTurns=context.max_turns,
        thinkingEffort=context.thinking_effort,
        outputSchema=context.output_schema,
        mcpServers=[_server(server) for server in context.mcp_servers] or None,
        **extra,
    )


def _server(server: McpServer) -> dict[str, Any]:
    told: dict[str, Any] = {"name": server.name, "transport": server.transport}
    if server.transport == "stdio":
        return {**told, "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return {**told, "url": server.url, "headers": dict(server.headers)}


def is_agent_line(line: Mapping[str, Any]) -> bool:
    """A line that can only be an event of ours."""
    return line.keys() >= _IDENTITY
