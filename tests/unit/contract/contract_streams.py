"""Builders of small streams in JSON form, for tests of the checker."""

from itertools import accumulate
from typing import Any

Event = dict[str, Any]
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def ev(kind: str, /, **fields: Any) -> Event:
    """Return an event. `fields` have their JSON names and may include `timestamp`."""
    return {"type": kind, "runId": RUN_ID, "agent": "claude", "timestamp": 1, **fields}


def start(**fields: Any) -> Event:
    return ev("session_start", **{"sessionId": "s", "resumed": False, **fields})


def end(turns: int = 1, **fields: Any) -> Event:
    return ev("session_end", **{"sessionId": "s", "turnCount": turns, **fields})


def turn_start(index: int = 0) -> Event:
    return ev("turn_start", turnIndex=index)


def turn_end(index: int = 0) -> Event:
    return ev("turn_end", turnIndex=index)


def turn(*inside: Event, index: int = 0) -> list[Event]:
    return [turn_start(index), *inside, turn_end(index)]


def run(*inside: Event, **fields: Any) -> list[Event]:
    """Return a complete run of one turn. `fields` belong to `session_start`."""
    return [start(**fields), *turn(*inside), end()]


def step_start(index: int = 0, turn_index: int = 0) -> Event:
    return ev("step_start", turnIndex=turn_index, stepIndex=index, stepType="generation")


def step_end(index: int = 0, turn_index: int = 0) -> Event:
    return ev("step_end", turnIndex=turn_index, stepIndex=index)


def message(*deltas: str, **fields: Any) -> list[Event]:
    return [
        ev("message_start", **fields),
        *(
            ev("text_delta", delta=delta, accumulated=text, **fields)
            for delta, text in zip(deltas, accumulate(deltas), strict=True)
        ),
        ev("message_stop", text="".join(deltas), **fields),
    ]


def thought(*deltas: str, **fields: Any) -> list[Event]:
    return [
        ev("thinking_start", **fields),
        *(
            ev("thinking_delta", delta=delta, accumulated=text, **fields)
            for delta, text in zip(deltas, accumulate(deltas), strict=True)
        ),
        ev("thinking_stop", thinking="".join(deltas), **fields),
    ]


def call_start(call_id: str = "c", name: str = "Bash", text: str = "", **fields: Any) -> Event:
    return ev("tool_call_start", toolCallId=call_id, toolName=name, inputAccumulated=text, **fields)


def call_input(delta: str, text: str, call_id: str = "c", **fields: Any) -> Event:
    return ev("tool_input_delta", toolCallId=call_id, delta=delta, inputAccumulated=text, **fields)


def call_ready(call_id: str = "c", name: str = "Bash", **fields: Any) -> Event:
    return ev("tool_call_ready", toolCallId=call_id, toolName=name, input={}, **fields)


def call_result(call_id: str = "c", name: str = "Bash", **fields: Any) -> Event:
    return ev("tool_result", toolCallId=call_id, toolName=name, output="", durationMs=0, **fields)


def call_error(call_id: str = "c", name: str = "Bash", **fields: Any) -> Event:
    return ev("tool_error", toolCallId=call_id, toolName=name, error="no", **fields)


def call(*inside: Event, call_id: str = "c", **fields: Any) -> list[Event]:
    return [call_start(call_id, **fields), call_ready(call_id, **fields), *inside, call_result(call_id, **fields)]


def mcp_start(call_id: str = "m", server: str = "srv", tool: str = "add") -> Event:
    return ev("mcp_tool_call_start", toolCallId=call_id, server=server, toolName=tool, input={})


def mcp_result(call_id: str = "m", server: str = "srv", tool: str = "add") -> Event:
    return ev("mcp_tool_result", toolCallId=call_id, server=server, toolName=tool, output=1)


def mcp_error(call_id: str = "m", server: str = "srv", tool: str = "add") -> Event:
    return ev("mcp_tool_error", toolCallId=call_id, server=server, toolName=tool, error="no")


def shell_start(**fields: Any) -> Event:
    return ev("shell_start", command="ls", cwd="/", **fields)


def stdout(**fields: Any) -> Event:
    return ev("shell_stdout_delta", delta="out", **fields)


def stderr(**fields: Any) -> Event:
    return ev("shell_stderr_delta", delta="err", **fields)


def shell_exit(**fields: Any) -> Event:
    return ev("shell_exit", exitCode=0, durationMs=0, **fields)


def spawn(subagent: str = "a", name: str = "helper") -> Event:
    return ev("subagent_spawn", subagentId=subagent, agentName=name, prompt="go")


def sub_result(subagent: str = "a", name: str = "helper") -> Event:
    return ev("subagent_result", subagentId=subagent, agentName=name, summary="done")


def sub_error(subagent: str = "a", name: str = "helper") -> Event:
    return ev("subagent_error", subagentId=subagent, agentName=name, error="no")


def ask(interaction: str = "i", **fields: Any) -> Event:
    return ev("approval_request", interactionId=interaction, action="run", detail="ls", riskLevel="low", **fields)


def grant(interaction: str = "i", **fields: Any) -> Event:
    return ev("approval_granted", interactionId=interaction, **fields)


def deny(interaction: str = "i", **fields: Any) -> Event:
    return ev("approval_denied", interactionId=interaction, **fields)


def question(interaction: str = "q", **fields: Any) -> Event:
    return ev("input_required", interactionId=interaction, question="?", source="agent", **fields)


def error(*, recoverable: bool) -> Event:
    return ev("error", code="INTERNAL", message="oh", recoverable=recoverable)


LOG = ev("log", source="stderr", line="...")
DEBUG = ev("debug", level="info", message="...")
FILE_READ = ev("file_read", path="a")
FILE_WRITE = ev("file_write", path="a", byteCount=1)
FILE_CREATE = ev("file_create", path="a", byteCount=1)
FILE_DELETE = ev("file_delete", path="a")
FILE_PATCH = ev("file_patch", path="a", diff="")
COST = ev("cost", cost={"totalUsd": 0.5, "inputTokens": 1, "outputTokens": 1})
TOKENS = ev("token_usage", inputTokens=1, outputTokens=1)
RATE_LIMITED = ev("rate_limited")
RETRY = ev("retry", attempt=1, maxAttempts=3, reason="rate_limited", delayMs=10)
RATE_LIMIT_ERROR = ev("rate_limit_error", message="slow down")
CHECKPOINT = ev("session_checkpoint", sessionId="s", checkpointId="k")
IMAGE = ev("image_output", mimeType="image/png")
IMAGE_ACK = ev("image_input_ack", mimeType="image/png")
PLUGIN_LOADED = ev("plugin_loaded", pluginId="p", pluginName="P", version="1")
PLUGIN_INVOKED = ev("plugin_invoked", pluginId="p", pluginName="P")
PLUGIN_ERROR = ev("plugin_error", pluginId="p", pluginName="P", error="no")
SKILL_LOADED = ev("skill_loaded", skillName="k", source="built-in")
SKILL_INVOKED = ev("skill_invoked", skillName="k")
AGENTDOC = ev("agentdoc_read", path="AGENTS.md")
CONTEXT_WARNING = ev("context_limit_warning", usedTokens=9, maxTokens=10, pctUsed=90.0)
COMPACTED = ev("context_compacted", summary="", tokensSaved=1)
PAUSED, RESUMED = ev("paused"), ev("resumed")
FALLBACK = ev("stream_fallback", capability="text", reason="whole")
RESUME = ev("session_resume", sessionId="s", priorTurnCount=4)
FORK = ev("session_fork", sessionId="s", forkedFrom="t")
CRASH = ev("crash", exitCode=1, stderr="")
CONTROLS = [ev("interrupted"), ev("aborted"), ev("timeout", kind="run"), ev("turn_limit", maxTurns=3)]
FATALS = [
    ev("auth_error", message="who?", guidance="log in"),
    ev("context_exceeded", usedTokens=2, maxTokens=1),
    CRASH,
    error(recoverable=False),
]
UNKNOWN = ev("not_yet_invented", mood="good")
