"""How turns end, their cost, and other messages of the agent."""

from typing import Any

import pytest
from acp_transcript import OWN, AcpConversation, new_codec, receive, update

from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux.sdk.codec import Send, Source
from agent_mux.sdk.facts import Failure, Note, TextDelta, TextEnd, ThinkingDelta, TurnDone, TurnFailed, Usage
from agent_mux_adapters._dialects.acp import AcpQuirks, PromptOutcome, code_of, message_of, usage_of
from agent_mux_adapters._dialects.jsonrpc import RpcError

END = {"stopReason": "end_turn"}
BUSY = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}


def ended(result: Any, quirks: AcpQuirks | None = None, **context: Any) -> list[Any]:
    talk = AcpConversation(quirks, **context).prompted()
    talk.receive_response(3, result)
    return talk.facts()


def test_stop_reasons() -> None:
    assert ended(END) == [TurnDone(stop_reason="end")]
    assert ended({"stopReason": "cancelled"}) == [facts.TurnStopped()]
    assert ended({"stopReason": "max_turn_requests"}, max_turns=5) == [facts.TurnLimitHit(5)]
    assert ended({"stopReason": "max_tokens"}) == [TurnDone(stop_reason="length")]
    [filtered] = ended({"stopReason": "refusal"})
    assert (filtered.failure.code, filtered.stop_reason) == ("CONTENT_FILTERED", "filtered")
    for reason in ("tired", None):
        [failed] = ended({"stopReason": reason})
        assert failed.failure.code == "AGENT_CRASH"


def test_adapter_overrides_the_closing_fact() -> None:
    def closing(how: PromptOutcome) -> facts.Fact | None:
        return None if how.spoke else TurnFailed(Failure("AGENT_CRASH", "it said nothing"))

    quirks = AcpQuirks(closing_fact=closing)
    assert isinstance(ended(END, quirks)[0], TurnFailed)
    talk = AcpConversation(quirks).prompted()
    talk.speaks("hi")
    talk.receive_response(3, END)
    assert talk.facts()[-1] == TurnDone(stop_reason="end")


@pytest.mark.parametrize(
    ("code", "message", "data", "expected"),
    [
        (-32000, "log in first", None, "AUTH_ERROR"),
        (401, "no", None, "AUTH_ERROR"),
        (-32603, "Internal error", {"details": "429 Too Many Requests"}, "RATE_LIMITED"),
        (-32603, "Internal error", "prompt is too long", "CONTEXT_EXCEEDED"),
        (-32603, "Internal error", {"x": 1}, "AGENT_CRASH"),
        (400, '{"error":{"code":400,"message":"maximum context length is 5"}}', None, "CONTEXT_EXCEEDED"),
        (-32603, "port 4290 is in use", None, "AGENT_CRASH"),
        (-32603, "failed with 403", None, "AUTH_ERROR"),
    ],
)
def test_errors_map_to_codes(code: int, message: str, data: Any, expected: str) -> None:
    talk = AcpConversation().prompted()
    talk.receive_error(3, message, code, **({} if data is None else {"data": data}))
    [failed] = talk.facts()
    assert failed.failure.code == expected
    assert talk.sent() == ["EOF"]


def test_the_details_beside_an_error_are_part_of_its_message() -> None:
    assert message_of(RpcError(1, "Internal error", {"details": "no disk"})) == "Internal error: no disk"
    assert message_of(RpcError(1, "no disk", {"details": "no disk"})) == "no disk"
    assert message_of(RpcError(1, "Internal error", {"a": 1})) == 'Internal error: {"a":1}'
    assert message_of(RpcError(1, '{"error":{"message":"bad key"}}')) == "bad key"
    assert message_of(RpcError(1, "{ no json")) == "{ no json"
    assert code_of("fine") == "AGENT_CRASH"


def test_adapter_overrides_failures() -> None:
    talk = AcpConversation(AcpQuirks(failure=lambda error: Failure("RATE_LIMITED", error.message))).prompted()
    talk.receive_error(3, "slow down")
    assert talk.facts() == [TurnFailed(Failure("RATE_LIMITED", "slow down"))]


def test_aside_is_emitted_as_its_fact() -> None:
    asides: Any = {"Info: ": Note, "Error: ": lambda message: Failure("AUTH_ERROR", message)}
    talk = AcpConversation(AcpQuirks(asides=asides)).prompted()
    talk.speaks("Working. ")
    assert talk.speaks("Info: a tool is missing") == [TextEnd(), Note("Info: a tool is missing")]
    assert isinstance(talk.speaks("Error: 401")[0], facts.Ignored)
    talk.receive_response(3, END)
    assert talk.facts()[-1] == TurnFailed(Failure("AUTH_ERROR", "Error: 401"))
    emitted = talk.speaks("Info: bye")
    assert emitted == [Note("Info: bye")]


# -- tokens and money


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({**BUSY, "cachedReadTokens": 30}, Usage(70, 10, None, 30)),
        ({**BUSY, "totalTokens": 140, "cachedReadTokens": 30}, Usage(100, 10, None, 30)),
        ({**BUSY, "totalTokens": 148, "cachedReadTokens": 30, "thoughtTokens": 8}, Usage(100, 18, 8, 30)),
        ({**BUSY, "totalTokens": 140, "cachedReadTokens": 30, "thoughtTokens": 8}, Usage(100, 10, 8, 30)),
        ({**BUSY, "totalTokens": 118, "cachedReadTokens": 30, "thoughtTokens": 8}, Usage(70, 18, 8, 30)),
        ({**BUSY, "totalTokens": 110, "cachedReadTokens": 30, "thoughtTokens": 8}, Usage(70, 10, 8, 30)),
        ({**BUSY, "totalTokens": 118, "thoughtTokens": 8}, Usage(100, 18, 8)),
        ({**BUSY, "cachedReadTokens": 30, "thoughtTokens": 8}, Usage(70, 10, 8, 30)),
        ({"inputTokens": 5, "outputTokens": 1, "totalTokens": 6, "cachedReadTokens": 5, "cachedWriteTokens": 9},
         Usage(0, 1, None, 5, 9)),
    ],
)  # fmt: skip
def test_cached_tokens_are_separate_and_thinking_is_output(fields: Any, expected: Usage) -> None:
    assert usage_of(fields) == expected


def test_response_tokens_are_emitted_once() -> None:
    assert ended({**END, "usage": BUSY}) == [Usage(100, 10, of_one_call=False), TurnDone(stop_reason="end")]
    assert ended({**END, "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}}) == [
        TurnDone(stop_reason="end")
    ]
    talk = AcpConversation().prompted()
    talk.speaks("hi", _meta={"usage": BUSY})
    talk.speaks("", _meta={"usage": BUSY})
    talk.receive_response(3, {**END, "usage": {"inputTokens": 200, "outputTokens": 20, "totalTokens": 220}})
    assert talk.facts(Usage) == [Usage(100, 10), Usage(100, 10)]


def test_tokens_of_the_session_become_those_of_the_turn() -> None:
    talk = AcpConversation(AcpQuirks(usage_is_cumulative=True), interactive=True).prompted()
    talk.receive_response(3, {**END, "usage": BUSY})
    talk.request(Send("again"))
    talk.receive_response(4, {**END, "usage": {"inputTokens": 250, "outputTokens": 30, "totalTokens": 280}})
    assert talk.facts(Usage) == [Usage(100, 10, of_one_call=False), Usage(150, 20, of_one_call=False)]


def money(dollars: float, **fields: Any) -> CostRecord:
    return CostRecord(total_usd=dollars, source="native", **fields)


def test_the_cost_of_the_session_becomes_that_of_the_run_and_of_its_turns() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.receive_update("usage_update", used=1, size=100, cost={"amount": 0.25, "currency": "USD"})
    talk.receive_response(3, {**END, "usage": BUSY})
    talk.request(Send("again"))
    talk.receive_update("usage_update", used=1, size=100, cost={"amount": 0.75, "currency": "USD"})
    talk.receive_response(4, {**END, "usage": BUSY})
    tokens = {"input_tokens": 100, "output_tokens": 10}
    both = {"input_tokens": 200, "output_tokens": 20}
    assert talk.facts(facts.RunCost) == [facts.RunCost(money(0.25, **tokens)), facts.RunCost(money(0.75, **both))]
    assert talk.facts(TurnDone) == [
        TurnDone(money(0.25, **tokens), stop_reason="end"),
        TurnDone(money(0.5, **tokens), stop_reason="end"),
    ]


@pytest.mark.parametrize(
    "answer",
    [{"result": {"stopReason": "end_turn"}}, {"error": {"code": -32603, "message": "no"}}],
)
def test_subagent_usage_counts_for_the_turn_only(answer: dict[str, Any]) -> None:
    talk = AcpConversation().prompted()
    tokens = {"inputTokens": 10, "outputTokens": 1, "totalTokens": 11}
    talk.receive_update("tool_call", toolCallId="t", title="task", rawInput={"subagent_type": "a", "prompt": "look"})
    for place in ({"parentToolCallId": "t"}, {}):
        talk.receive_update(
            "agent_message_chunk", content={"type": "text", "text": ""}, _meta={**place, "usage": tokens}
        )
    talk.receive({"id": 3, **answer})
    assert talk.facts(Usage) == [Usage(10, 1)]
    closing = talk.facts(TurnDone, TurnFailed)[-1]
    assert closing.cost == CostRecord(total_usd=0.0, input_tokens=20, output_tokens=2, source="unknown")


@pytest.mark.parametrize("cost", [None, {"amount": 0, "currency": "USD"}, {"amount": 1, "currency": "EUR"},
                                  {"amount": "1", "currency": "USD"}])  # fmt: skip
def test_cost_of_zero_is_unknown(cost: Any) -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("usage_update", used=1, size=100, cost=cost)
    talk.receive_response(3, {**END, "usage": BUSY})
    assert talk.facts() == [Usage(100, 10, of_one_call=False), TurnDone(stop_reason="end")]


def test_cost_of_earlier_runs_is_excluded() -> None:
    def resumed(before: Any, quirks: AcpQuirks | None = None) -> list[Any]:
        talk = AcpConversation(quirks, session_id=OWN)
        talk.receive_response(1, {"agentCapabilities": {"loadSession": True}})
        talk.receive_update("usage_update", used=1, size=100, cost=before)
        talk.receive_response(2, {})
        talk.receive_update("usage_update", used=1, size=100, cost={"amount": 0.75, "currency": "USD"})
        talk.receive_response(3, END)
        return [fact.cost.total_usd for fact in talk.facts(facts.RunCost)]

    assert resumed({"amount": 0.25, "currency": "USD"}) == [0.5]
    assert resumed(None) == []  # nobody knows
    assert resumed(None, AcpQuirks(cost_is_of_process=True)) == [0.75]


def test_context_warning_is_emitted_once() -> None:
    talk = AcpConversation().prompted()
    for used in (10, 79, 80, 95):
        talk.receive_update("usage_update", used=used, size=100)
    assert talk.facts() == [facts.ContextFilling(80, 100)]


# -- prose


def test_messages_are_separated_by_id() -> None:
    talk = AcpConversation().prompted()
    for text, name in (("a", "1"), ("b", "1"), ("c", "2")):
        talk.speaks(text, messageId=name)
    talk.thinks("x", messageId="t1")
    talk.thinks("y", messageId="t2")
    talk.speaks("d", messageId="2")
    assert talk.facts()[1:] == [
        *(TextDelta("a"), TextDelta("b"), TextEnd(), TextDelta("c"), ThinkingDelta("x"), facts.ThinkingEnd()),
        *(ThinkingDelta("y"), TextDelta("d")),
    ]


def test_non_text_content() -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("agent_message_chunk", content={"type": "image", "mimeType": "image/png", "data": "AA=="})
    talk.receive_update("agent_message_chunk", content={"type": "resource_link", "uri": "file:///a", "name": "a"})
    talk.receive_update("agent_message_chunk", content={"type": "audio", "mimeType": "audio/wav", "data": ""})
    talk.receive_update("agent_message_chunk", content={"type": "resource", "resource": {"uri": "x", "text": "inside"}})
    assert talk.facts()[1:] == [
        facts.ImageProduced("image/png", "AA=="),
        Note("x refers to file:///a"),
        Note("x sent audio, which cannot be shown"),
        TextDelta("inside"),
    ]


@pytest.mark.parametrize(
    "kind", ["available_commands_update", "config_option_update", "current_mode_update", "session_info_update"]
)
def test_user_interface_updates_are_ignored(kind: str) -> None:
    assert isinstance(AcpConversation().prompted().receive_update(kind)[0], facts.Ignored)


def test_our_own_prompt_and_other_sessions_are_ignored() -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("user_message_chunk", content={"type": "text", "text": "hello"})
    talk.receive_update("agent_message_chunk", "another", content={"type": "text", "text": "hello"})
    assert talk.facts() == []


def test_updates_after_the_turn_emit_at_most_a_note() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.receive_response(3, END)
    assert talk.speaks("by the way") == [Note("x sent a message after the end of the turn: by the way")]
    assert isinstance(talk.receive_update("tool_call_update", toolCallId="t", status="completed")[0], facts.Ignored)


def test_unknown_protocol_methods_are_unknown_and_extensions_are_ignored() -> None:
    talk = AcpConversation(AcpQuirks(ignored={"shiny_update": "it shines"})).prompted()
    assert isinstance(talk.receive_update("dull_update")[0], facts.Unknown)
    assert talk.receive_update("shiny_update") == [facts.Ignored("shiny_update", "it shines")]
    assert isinstance(talk.receive({"method": "_vendor/told", "params": {}})[0], facts.Ignored)
    assert isinstance(talk.receive({"method": "session/told", "params": {}})[0], facts.Unknown)
    assert isinstance(talk.receive({"nothing": 1})[0], facts.Unknown)
    assert isinstance(talk.receive(b"Debugger listening")[0], facts.LogLine)


# -- transcripts


def spoken(text: str) -> dict[str, Any]:
    return update("agent_message_chunk", content={"type": "text", "text": text})


def test_observer_writes_nothing() -> None:
    codec = new_codec()
    steps = [*codec.start()]
    for source, line in (
        (Source.STDIN, {"id": 1, "method": "initialize", "params": {}}),
        (Source.STDOUT, {"id": 1, "result": {"protocolVersion": 1}}),
        (Source.STDIN, {"id": 2, "method": "session/new", "params": {"mcpServers": [{"name": "files"}]}}),
        (Source.STDOUT, {"id": 2, "result": {"sessionId": OWN}}),
        (Source.STDIN, {"id": 3, "method": "session/prompt", "params": {"sessionId": OWN}}),
        (Source.STDOUT, update("tool_call", toolCallId="t", title="files_read", rawInput={"a": 1})),
        (Source.STDOUT, {"id": 4, "method": "fs/read_text_file", "params": {}}),
        (Source.STDOUT, {"id": 3, "result": END}),
    ):
        steps += receive(codec, line, source=source)
    assert [step for step in steps if not isinstance(step, facts.Ignored)] == [
        facts.SessionKnown(OWN), facts.StepBegin(), facts.McpBegin("t", "files", "read", {"a": 1}),
        TurnDone(stop_reason="end"),
    ]  # fmt: skip


def test_transcript_without_stdin_recognizes_responses_by_shape() -> None:
    lines = [
        {"id": 1, "result": {"protocolVersion": 1}},
        {"id": 2, "result": {"sessionId": OWN}},
        spoken("hi"),
        {"id": 3, "result": END},
        {"id": 9, "result": {}},
    ]
    emitted = [fact for fact in receive(new_codec(), *lines) if not isinstance(fact, facts.Ignored)]
    assert emitted == [facts.SessionKnown(OWN), facts.StepBegin(), TextDelta("hi"), TurnDone(stop_reason="end")]


def test_transcript_without_stdin_of_a_resumed_session() -> None:
    before = update("user_message_chunk", content={"type": "text", "text": "yesterday"})
    lines = [before, spoken("of old"), {"id": 2, "result": {}}, spoken("hi"),
             {"id": 3, "error": {"code": 429, "message": "slow down"}}]  # fmt: skip
    emitted = [fact for fact in receive(new_codec(), *lines) if not isinstance(fact, facts.Ignored)]
    assert emitted == [
        facts.SessionKnown(OWN, resumed=True, prior_turns=1), facts.StepBegin(), TextDelta("hi"),
        TurnFailed(Failure("RATE_LIMITED", "slow down")),
    ]  # fmt: skip


def test_transcript_without_start_still_names_its_session() -> None:
    assert receive(new_codec(), spoken("hi")) == [facts.SessionKnown(OWN), facts.StepBegin(), TextDelta("hi")]
