"""Reasoning: requested budgets, and sending it back."""

import json
from typing import Any

import msgspec
import pytest

from agent_loop.messages import AssistantMessage, Text, Thinking, ToolCall, ToolMessage, user
from agent_loop.providers import ModelSettings, ThinkingChunk, ThinkingLevel

from .wires import (
    ANTHROPIC,
    AZURE,
    BEDROCK,
    CHAT,
    GOOGLE,
    KEY,
    OPENAI,
    VERTEX,
    ChunkRecorder,
    Wire,
    ask,
    request,
    served,
    text,
)

SIGNATURE = "c2lnbmVkLWJ5LXVz"
REDACTED = "ZW5jcnlwdGVkLXRob3VnaHRz"


def opaque(**native: Any) -> dict[str, Any]:
    return {"type": "opaque", "native": native}


ECHO_BLOCK = {"type": "tool_use", "name": "echo", "id": "call_1", "input": {"text": "ping"}}
ECHO_ITEM = {"type": "function_call", "name": "echo", "call_id": "call_1", "arguments": {"text": "ping"}}
THOUGHT_BLOCK = {"type": "thinking", "thinking": "First this, then that", "signature": SIGNATURE}
THINKING_STEPS = {
    ANTHROPIC: {"blocks": [THOUGHT_BLOCK, opaque(type="redacted_thinking", data=REDACTED), ECHO_BLOCK]},
    BEDROCK: {"blocks": [THOUGHT_BLOCK, opaque(reasoningContent={"redactedContent": REDACTED}), ECHO_BLOCK]},
    OPENAI: {"items": [{"type": "reasoning", "text": "First this, then that"}, ECHO_ITEM]},
    AZURE: {"items": [{"type": "reasoning", "text": "First this, then that"}, ECHO_ITEM]},
    GOOGLE: {"blocks": [{"type": "thinking", "thinking": "First this, then that"}, ECHO_BLOCK]},
    VERTEX: {"blocks": [{"type": "thinking", "thinking": "First this, then that"}, ECHO_BLOCK]},
}


def round_trip(wire: Wire, step: dict[str, Any], *, other: Wire | None = None) -> tuple[AssistantMessage, Any]:
    """Return an answer of this API after storing and loading it, and the request whose history contains it."""
    heard = ChunkRecorder()
    with served(step, text("Done")) as server:
        first = ask(wire.provider(server.url), request(settings=ModelSettings(thinking="low")), heard)
        (answer,) = msgspec.json.decode(msgspec.json.encode(first.messages), type=tuple[AssistantMessage, ...])
        assert answer == first.messages[0]
        result = ToolMessage(tool_call_id=answer.tool_calls[0].id, name="echo", content=(Text("pong"),))
        ask((other or wire).provider(server.url), request(user("Hello"), answer, result))
    assert "".join(chunk.text for chunk in heard.of(ThinkingChunk)) == "First this, then that"
    assert answer.thinking == "First this, then that"
    return answer, server.requests[1].body


def test_anthropic_thinking_is_sent_back_verbatim_and_in_order() -> None:
    answer, sent = round_trip(ANTHROPIC, THINKING_STEPS[ANTHROPIC])
    assert [type(block) for block in answer.content] == [Thinking, Thinking, ToolCall]
    assert answer.content[0] == Thinking("First this, then that", SIGNATURE)
    assert answer.content[1] == Thinking("", redacted=REDACTED)
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "First this, then that", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": REDACTED},
        {"type": "tool_use", "id": "call_1", "name": "echo", "input": {"text": "ping"}},
    ]


def test_bedrock_thinking_is_sent_back_verbatim_and_in_order() -> None:
    _, sent = round_trip(BEDROCK, THINKING_STEPS[BEDROCK])
    thought, redacted, call = sent["messages"][1]["content"]
    assert thought["reasoningContent"]["reasoningText"] == {"text": "First this, then that", "signature": SIGNATURE}
    assert redacted["reasoningContent"] == {"redactedContent": REDACTED}
    assert call["toolUse"]["toolUseId"] == "call_1"


@pytest.mark.parametrize("wire", [OPENAI, AZURE], ids=lambda wire: wire.name)
def test_responses_reasoning_is_sent_back_encrypted(wire: Wire) -> None:
    _, sent = round_trip(wire, THINKING_STEPS[wire])
    reasoning, call, result = sent["input"][1:]
    assert reasoning["encrypted_content"] == "ZmFrZQ=="
    assert reasoning["summary"] == [{"text": "First this, then that", "type": "summary_text"}]
    assert (call["type"], result["type"]) == ("function_call", "function_call_output")
    assert sent["store"] is False


@pytest.mark.parametrize("wire", [GOOGLE, VERTEX], ids=lambda wire: wire.name)
def test_google_thought_signatures_go_back(wire: Wire) -> None:
    _, sent = round_trip(wire, THINKING_STEPS[wire])
    (signed,) = [part for part in sent["contents"][1]["parts"] if "functionCall" in part]
    assert signed["thoughtSignature"] == "ZmFrZS1zaWc="


@pytest.mark.parametrize(
    ("wire", "other"),
    [(ANTHROPIC, OPENAI), (OPENAI, ANTHROPIC), (ANTHROPIC, GOOGLE), (GOOGLE, BEDROCK), (OPENAI, CHAT)],
    ids=lambda wire: wire.name.partition(":")[0],
)  # fmt: skip
def test_reasoning_of_another_provider_is_left_out(wire: Wire, other: Wire) -> None:
    _, body = round_trip(wire, THINKING_STEPS[wire], other=other)
    sent = json.dumps(body)
    assert "First this" not in sent
    assert SIGNATURE not in sent
    assert REDACTED not in sent
    assert sent.count('"call_1"') == 2


@pytest.mark.parametrize("native", [None, 7, {"kind": "response"}, {"kind": "response", "parts": [{"part_kind": "?"}]},
                                    {"kind": "response", "parts": []}])  # fmt: skip
def test_an_edited_native_form_is_not_sent(native: Any) -> None:
    call = ToolCall("call_9", "echo", {"text": "x"}, '{"text": "x"}')
    answer = AssistantMessage(content=(Text("Well"), call), provider="anthropic", native=native)
    result = ToolMessage(tool_call_id="call_9", name="echo", content=(Text("pong"),))
    with served(text("Done")) as server:
        ask(ANTHROPIC.provider(server.url), request(user("Hello"), answer, result))
    assert server.requests[0].body["messages"][1]["content"] == [
        {"type": "text", "text": "Well"},
        {"type": "tool_use", "id": "call_9", "name": "echo", "input": {"text": "x"}},
    ]


# -- how much -------------------------------------------------------------------------------------------------------


def asked_for(wire: Wire, settings: ModelSettings, model: str | None = None, **more: Any) -> Any:
    with served(text("ok")) as server:
        ask(wire.provider(server.url, model), request(settings=settings, **more))
    return server.requests[0].body


@pytest.mark.parametrize(("level", "tokens"), [("minimal", 1024), ("low", 1024), ("medium", 2048), ("high", 8192)])
@pytest.mark.parametrize("wire", [ANTHROPIC, BEDROCK], ids=lambda wire: wire.name)
def test_thinking_levels_are_budgets_raised_to_the_minimum(wire: Wire, level: ThinkingLevel, tokens: int) -> None:
    body = asked_for(wire, ModelSettings(thinking=level, max_tokens=16_384))
    thinking = body.get("thinking") or body["additionalModelRequestFields"]["thinking"]
    assert thinking == {"type": "enabled", "budget_tokens": tokens}
    assert (body.get("max_tokens") or body["inferenceConfig"]["maxTokens"]) == 16_384


def test_thinking_budget_wins_over_the_level() -> None:
    body = asked_for(ANTHROPIC, ModelSettings(thinking="low", thinking_budget=5000, max_tokens=16_384))
    assert body["thinking"]["budget_tokens"] == 5000


@pytest.mark.parametrize("wire", [ANTHROPIC, BEDROCK], ids=lambda wire: wire.name)
def test_budget_above_max_tokens_is_added_to_it(wire: Wire) -> None:
    body = asked_for(wire, ModelSettings(thinking_budget=4096, max_tokens=1000))
    assert (body.get("max_tokens") or body["inferenceConfig"]["maxTokens"]) == 5096


def test_temperature_is_not_sent_with_a_thinking_budget() -> None:
    body = asked_for(ANTHROPIC, ModelSettings(thinking="low", temperature=0.3, top_k=5))
    assert not {"temperature", "top_k"} & set(body)
    assert asked_for(ANTHROPIC, ModelSettings(temperature=0.3))["temperature"] == 0.3


@pytest.mark.parametrize("wire", [ANTHROPIC, BEDROCK], ids=lambda wire: wire.name)
def test_a_forced_tool_call_switches_thinking_off(wire: Wire) -> None:
    body = asked_for(wire, ModelSettings(thinking="high"), tool_choice="required")
    assert "budget_tokens" not in json.dumps(body)


@pytest.mark.parametrize("level", ["high", "max"])
def test_models_that_adapt_their_thinking_get_an_effort(level: ThinkingLevel) -> None:
    body = asked_for(ANTHROPIC, ModelSettings(thinking=level), "claude-opus-4-8")
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"]["effort"] == level


@pytest.mark.parametrize("wire", [ANTHROPIC, BEDROCK], ids=lambda wire: wire.name)
def test_the_most_thinking_leaves_room_for_the_answer(wire: Wire) -> None:
    body = asked_for(wire, ModelSettings(thinking="max"))
    thinking = body.get("thinking") or body["additionalModelRequestFields"]["thinking"]
    assert thinking["budget_tokens"] == 24_576
    assert body.get("max_tokens", 1 << 20) > 24_576


@pytest.mark.parametrize(("model", "effort"), [("gpt-5-mini", "high"), ("gpt-5.4", "xhigh")])
def test_the_most_effort_at_openai_is_the_highest_that_the_model_knows(model: str, effort: str) -> None:
    assert asked_for(OPENAI, ModelSettings(thinking="max"), model)["reasoning"]["effort"] == effort


@pytest.mark.parametrize("level", ["minimal", "low", "medium", "high"])
def test_thinking_levels_are_efforts_at_openai(level: ThinkingLevel) -> None:
    assert asked_for(OPENAI, ModelSettings(thinking=level))["reasoning"] == {"effort": level, "summary": "auto"}
    assert asked_for(AZURE, ModelSettings(thinking=level))["reasoning"] == {"effort": level, "summary": "auto"}
    assert asked_for(CHAT, ModelSettings(thinking=level))["reasoning_effort"] == level


@pytest.mark.parametrize(
    ("model", "level", "tokens"),
    [
        ("gemini-2.5-flash", "minimal", 128),
        ("gemini-2.5-flash", "high", 8192),
        ("gemini-2.5-flash", "max", 24_576),
        ("gemini-2.5-flash-lite", "minimal", 512),
        ("gemini-2.5-pro", "medium", 2048),
    ],
)
def test_thinking_levels_are_budgets_of_gemini(model: str, level: ThinkingLevel, tokens: int) -> None:
    config = asked_for(GOOGLE, ModelSettings(thinking=level), model)["generationConfig"]["thinkingConfig"]
    assert config == {"include_thoughts": True, "thinking_budget": tokens}


def test_later_gemini_models_get_the_level() -> None:
    config = asked_for(GOOGLE, ModelSettings(thinking="low"), "gemini-3-pro-preview")["generationConfig"]
    assert config["thinkingConfig"] == {"include_thoughts": True, "thinking_level": "LOW"}


@pytest.mark.parametrize("wire", [ANTHROPIC, BEDROCK, GOOGLE], ids=lambda wire: wire.name)
def test_thinking_off_and_thinking_unset(wire: Wire) -> None:
    assert "hinking" not in json.dumps(asked_for(wire, ModelSettings()))
    off = json.dumps(asked_for(wire, ModelSettings(thinking="off")))
    assert "enabled" not in off
    assert KEY not in off
