"""Failures from pi's messages, and the recognition of its lines."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import codec_of, facts_of, receive

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.pi.extension import NO_MCP
from agent_mux_adapters._dialects.pi.outcome import code_of, failure_of, refusal_of
from agent_mux_adapters._dialects.pi.wire import is_event, is_rpc_line
from agent_mux_adapters.pi import ADAPTER


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("401 bad key", "AUTH_ERROR"),
        ('401: {"error":{"message":"x"}}', "AUTH_ERROR"),
        ("403 forbidden", "AUTH_ERROR"),
        ("No API key found for fake.", "AUTH_ERROR"),
        ("429 slow down", "RATE_LIMITED"),
        ("You exceeded your current quota", "RATE_LIMITED"),
        ("400 This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens.",
         "CONTEXT_EXCEEDED"),
        ("429 prompt is too long: 200 tokens > 100 maximum", "CONTEXT_EXCEEDED"),
        ("500 server error", "AGENT_CRASH"),
        ("terminated", "NETWORK_ERROR"),
        ("there were 401 files", "AGENT_CRASH"),
    ],
)  # fmt: skip
def test_error_message_decides_the_code(message: str, code: str) -> None:
    assert code_of(message) == code


def test_version_without_an_mcp_client_lacks_a_capability() -> None:
    # Standard error of 0.87.1, which exits with code 1.
    line = f'Error: Failed to load extension "/tmp/x/agent-mux.ts": Failed to load extension: {NO_MCP}'
    assert refusal_of([line]) == facts.Failure("CAPABILITY_ERROR", NO_MCP)


def test_separate_status_decides_the_code() -> None:
    assert code_of("nope", 401) == "AUTH_ERROR"


@pytest.mark.parametrize(
    ("message", "used", "most"),
    [
        ("maximum context length is 100 tokens. However, your messages resulted in 200 tokens.", 200, 100),
        ("prompt is too long: 200 tokens > 100 maximum", 200, 100),
        ("prompt is too long", 0, 0),
    ],
)
def test_context_sizes_are_read_from_the_message(message: str, used: int, most: int) -> None:
    failure = failure_of(message)
    assert (failure.used_tokens, failure.max_tokens) == (used, most)


@pytest.mark.parametrize(
    ("message", "wait"),
    [
        ("429 x retry-after-ms=1500", 1500),
        ("429 Please try again in 2.5s", 2500),
        ("429 Please retry after 20 ms", 20),
        ("429 try again in 2m", 120_000),
        ("429 x", None),
    ],
)
def test_wait_time_is_read_from_the_message(message: str, wait: int | None) -> None:
    assert failure_of(message).retry_after_ms == wait
    retry = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1, "errorMessage": message}
    assert facts_of(receive(codec_of(ADAPTER, "json"), retry), facts.RateLimited) == [facts.RateLimited(wait)]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "session", "version": 3, "id": "s", "cwd": "/"},
        {"type": "message_update", "assistantMessageEvent": {}},
        {"type": "agent_end", "messages": []},
    ],
)
def test_event_lines_are_recognized(line: dict[str, Any]) -> None:
    assert is_event(line)
    assert not is_rpc_line(line)


@pytest.mark.parametrize("line", [{}, {"type": "session"}, {"type": "turn_end"}, {"type": 3}, {"type": {}}])
def test_ambiguous_lines_are_not_recognized(line: dict[str, Any]) -> None:
    assert not is_event(line)
    assert not is_rpc_line(line)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "response", "command": "x", "success": True},
        {"type": "extension_ui_request", "id": "q", "method": "input"},
    ],
)
def test_rpc_lines_are_recognized(line: dict[str, Any]) -> None:
    assert is_rpc_line(line)


def test_extension_error_in_a_turn_is_a_plugin_failure() -> None:
    line = {"type": "extension_error", "extensionPath": "/x/gate.ts", "error": "boom"}
    assert facts_of(receive(codec_of(ADAPTER, "json"), line)) == [facts.Note("extension /x/gate.ts: boom", "warn")]
    in_turn = facts_of(receive(codec_of(ADAPTER, "json"), {"type": "agent_start"}, line), facts.PluginFailed)
    assert in_turn == [facts.PluginFailed("/x/gate.ts", "gate.ts", "boom")]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "queue_update", "steering": []},
        {"type": "message_start", "message": {"role": "user"}},
        {"type": "message_end", "message": {"role": "toolResult"}},
    ],
)
def test_bookkeeping_lines_are_ignored(line: dict[str, Any]) -> None:
    assert facts_of(receive(codec_of(ADAPTER, "json"), line)) == []


@pytest.mark.parametrize("line", [{"type": "hologram"}, {}, {"type": "message_end", "message": {"role": "ghost"}}])
def test_unknown_line_is_reported(line: dict[str, Any]) -> None:
    [unknown] = facts_of(receive(codec_of(ADAPTER, "json"), line))
    assert isinstance(unknown, facts.Unknown)


def test_non_json_lines_are_logged() -> None:
    assert receive(codec_of(ADAPTER, "json"), b"(node:1) Warning", b"  ") == [
        facts.LogLine("(node:1) Warning"),
        facts.Ignored("blank", "an empty line"),
    ]
