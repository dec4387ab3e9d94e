"""Whatever an agent prints: nothing raises, nothing is dropped, and the commonest lines are read fast."""

import json
from typing import Any

import pytest
from acp_transcript import ALLOW_OR_NOT, OWN, AcpConversation, new_codec, receive, spelled, update
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.damage import patient, strange

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Exit, Interrupt, Source
from agent_mux.sdk.facts import Fact
from agent_mux.sdk.native_json import load_object

DIFF = {"type": "diff", "path": "/a", "oldText": "a", "newText": "b", "_meta": {"x": 1}}
SHOWN = {"type": "content", "content": {"type": "text", "text": "x"}}
CALL = {"toolCallId": "t", "title": "bash", "kind": "execute", "status": "pending", "rawInput": {"command": "x"},
        "locations": [{"path": "/a"}], "content": [DIFF, SHOWN], "_meta": {"toolName": "x"}}  # fmt: skip
DONE = {**CALL, "status": "completed", "rawOutput": {"exitCode": 3, "stdout": "x", "metadata": {"diff": "@@"}}}
FORM = {"type": "object", "properties": {"a": {"type": "string", "oneOf": [{"const": "x"}]}}, "required": ["a"]}
OPENED = {"sessionId": OWN, "modes": {"currentModeId": "a", "availableModes": [{"id": "a"}]},
          "models": {"currentModelId": "m", "availableModels": [{"modelId": "m"}]},
          "configOptions": [
              {"id": "m", "category": "model", "currentValue": "a", "options": [{"value": "b"}]}]}  # fmt: skip
USAGE = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2, "cachedReadTokens": 1}
LINES: tuple[dict[str, Any], ...] = (
    {"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True, "promptCapabilities": {}},
                         "authMethods": [{"id": "a"}]}},
    {"id": 2, "result": OPENED},
    {"id": 2, "error": {"code": -32000, "message": "no", "data": {"details": "x"}}},
    update("agent_message_chunk", content={"type": "text", "text": "x"}, messageId="m", _meta={"usage": USAGE}),
    update("agent_thought_chunk", content={"type": "text", "text": "x"}),
    update("user_message_chunk", content={"type": "text", "text": "x"}),
    update("tool_call", **CALL),
    update("tool_call_update", **DONE),
    update("plan", entries=[{"content": "x"}]),
    update("usage_update", used=90, size=100, cost={"amount": 1.0, "currency": "USD"}),
    {"id": 0, "method": "session/request_permission",
     "params": {"sessionId": OWN, "toolCall": CALL, "options": list(ALLOW_OR_NOT)}},
    {"id": 1, "method": "elicitation/create", "params": {"mode": "form", "message": "x", "requestedSchema": FORM}},
    {"id": 2, "method": "elicitation/create", "params": {"mode": "url", "message": "x", "url": "https://x/"}},
    {"id": 3, "method": "fs/read_text_file", "params": {"path": "/a"}},
    {"method": "$/cancel_request", "params": {"requestId": 0}},
    {"id": 3, "result": {"stopReason": "end_turn", "usage": USAGE}},
)  # fmt: skip


@patient
@given(data=st.data())
def test_any_value_in_any_field_raises_nothing(data: Any) -> None:
    is_live = data.draw(st.booleans())
    codec = new_codec(prompt="x" if is_live else None, model="b", thinking_effort="low", approval_mode="prompt")
    emitted = [*codec.start()]
    for line in data.draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=12)):
        message = data.draw(strange(line)) if data.draw(st.booleans()) else line
        raw = json.dumps({"jsonrpc": "2.0", **message} if isinstance(message, dict) else message).encode()
        if raw.strip():
            steps = list(codec.receive(raw, Source.STDOUT))
            assert any(isinstance(step, Fact) for step in steps), raw
            emitted += steps
    for action in (ApproveAction("0"), DenyAction("1"), AnswerAction("1/a", "x"), Interrupt()):
        emitted += codec.request(action)
    codec.finish(Exit(code=0))
    if not is_live:
        assert all(isinstance(step, Fact) for step in emitted if not _is_reply(step))


def _is_reply(step: Any) -> bool:
    return type(step).__name__ in {"WriteStdin", "Refuse"}  # to what we wanted ourselves


@given(line=st.binary(max_size=60))
def test_noise_is_a_log_line_or_unknown(line: bytes) -> None:
    emitted = list(new_codec(prompt="x").receive(line, Source.STDOUT))
    assert emitted
    assert load_object(line) is not None or isinstance(emitted[0], facts.LogLine)


def test_standard_error_is_log_lines() -> None:
    [emitted] = new_codec().receive(b"oh \xff", Source.STDERR)
    assert emitted == facts.LogLine("oh \ufffd", "stderr")


def test_fast_and_full_parse_emit_the_same_facts() -> None:
    fast = AcpConversation().prompted()
    slow = AcpConversation().prompted()
    for text in ("a", "b\u2028c", "\u00e9\\n", ""):
        message = update("agent_message_chunk", content={"type": "text", "text": text})
        fast.receive(message)
        slow.receive(json.dumps({"jsonrpc": "2.0", **message}, indent=1).replace("\n", " ").encode())
    assert fast.facts() == slow.facts()


def test_unpaired_surrogate_in_a_fragment_takes_the_full_parse() -> None:
    line = spelled(update("agent_message_chunk", content={"type": "text", "text": "x"})).replace(b'"x"', b'"\\ud800"')
    emitted = AcpConversation().prompted().receive(line)
    assert emitted[-1] == facts.TextDelta("\ufffd")


def test_fragments_take_the_fast_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = AcpConversation().prompted().codec
    line = spelled(update("agent_message_chunk", content={"type": "text", "text": "some words of an answer "}))
    receive(codec, line)
    monkeypatch.setattr("agent_mux_adapters._dialects.acp.codec.load_object", lambda _: pytest.fail("the long way"))
    for _ in range(3):
        assert facts.TextDelta("some words of an answer ") in list(codec.receive(line, Source.STDOUT))
