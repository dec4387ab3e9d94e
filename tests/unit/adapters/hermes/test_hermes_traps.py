"""Output of Hermes that is easily misread."""

from typing import Any

import pytest
from hermes_transcript import USAGE, HermesConversation, event, line_of, new_codec, talk_in_turn

from agent_mux.events.base import CostRecord
from agent_mux.sdk.codec import Exit, Source
from agent_mux.sdk.facts import (
    ContextCompacted,
    ContextFilling,
    Failure,
    LogLine,
    McpBegin,
    McpDone,
    Note,
    RecoverableError,
    Retrying,
    RunCost,
    SessionKnown,
    ShellInvocation,
    SkillInvoked,
    StepBegin,
    SubagentBegin,
    SubagentDone,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ToolBegin,
    ToolDone,
    ToolReady,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnLimitHit,
    Usage,
    WholeText,
    WholeThinking,
)
from agent_mux_adapters.hermes.text_codec import TEXT
from agent_mux_adapters.hermes.wire import is_gateway_line


def streams(talk: HermesConversation, *words: str) -> list[Any]:
    return [fact for word in words for fact in talk.emits("message.delta", text=word)]


def spins(talk: HermesConversation, *shown: str) -> list[Any]:
    return [fact for text in shown for fact in talk.emits("thinking.delta", text=text)]


def completes(talk: HermesConversation, name: str, arguments: Any, result: Any, **payload: Any) -> list[Any]:
    return talk.emits("tool.complete", tool_id="c1", name=name, args=arguments, result=result, **payload)


def failure(facts: list[Any]) -> Failure:
    (failed,) = [fact for fact in facts if isinstance(fact, TurnFailed)]
    return failed.failure


# -- words


def test_late_text_of_an_interrupted_call_is_not_repeated() -> None:
    talk = talk_in_turn()
    streams(talk, "Going on.", "(old words)")
    assert not [fact for fact in talk.ends("Going on.") if isinstance(fact, WholeText | Note)]


def test_the_animation_begins_a_model_call_and_emits_no_thinking() -> None:
    talk = HermesConversation()
    talk.opens()
    assert talk.begins() == [TurnBegin(), StepBegin()]
    assert spins(talk, "") == []
    assert talk.emits("reasoning.delta", text="Let me ") == [ThinkingDelta("Let me ")]


def test_a_notice_in_place_of_the_animation_begins_nothing() -> None:
    talk = talk_in_turn()
    assert spins(talk, "⏳ waiting on m — 30s with no response yet") == [
        Note("⏳ waiting on m — 30s with no response yet")
    ]


def test_the_line_break_before_text_after_a_tool_is_removed() -> None:
    talk = talk_in_turn()
    streams(talk, "One. ")
    spins(talk, "", "ಠ_ಠ mulling...")
    assert streams(talk, "\n\nTwo.", "\n\nThree.") == [TextDelta("Two."), TextDelta("\n\nThree.")]


def test_text_in_several_model_calls_is_several_messages() -> None:
    talk = talk_in_turn()
    streams(talk, "One. ")
    assert spins(talk, "", "ಠ_ಠ mulling...") == [TextEnd(), StepBegin()]


def test_streamed_text_is_not_repeated() -> None:
    talk = talk_in_turn()
    streams(talk, "All ", "done. ")
    assert talk.emits("reasoning.available", text="All done.") == []
    assert talk.emits("message.interim", text="All done.", already_streamed=True) == []
    assert not any(isinstance(fact, WholeText) for fact in talk.ends("All done."))


def test_an_answer_without_stream_is_emitted_whole() -> None:
    talk = talk_in_turn()
    assert talk.emits("message.interim", text="Working.", already_streamed=False) == [WholeText("Working.")]
    spins(talk, "", "ಠ_ಠ mulling...")
    facts = talk.ends("All done.", reasoning="I thought.")
    assert [fact for fact in facts if isinstance(fact, WholeText | WholeThinking)] == [
        WholeThinking("I thought."),
        WholeText("All done."),
    ]


def test_a_remark_after_the_answer_is_a_note() -> None:
    talk = talk_in_turn()
    streams(talk, "All good.")
    facts = talk.ends("All good.\n\n⚠️ File-mutation verifier: 1 file(s) were NOT modified")
    assert Note("⚠️ File-mutation verifier: 1 file(s) were NOT modified", "warn") in facts
    assert not any(isinstance(fact, WholeText) for fact in facts)


def test_a_continued_answer_is_not_repeated() -> None:
    talk = talk_in_turn()
    streams(talk, "partial te")
    spins(talk, "", "ಠ_ಠ mulling...", "")
    streams(talk, "Whole now.")
    facts = talk.ends("partial teWhole now.")
    assert [fact for fact in facts if isinstance(fact, WholeText | Note)] == []


# -- model calls that fail


def test_a_second_end_of_the_animation_is_a_call_that_is_repeated() -> None:
    talk = talk_in_turn()
    facts = spins(talk, "", "", "")
    assert [fact.attempt for fact in facts if isinstance(fact, Retrying)] == [1, 2]
    assert streams(talk, "Recovered.") == [TextDelta("Recovered.")]


def test_the_ends_of_the_animation_around_an_answer_are_no_retries() -> None:
    talk = talk_in_turn()
    spins(talk, "")
    streams(talk, "Yes.")
    assert spins(talk, "") == []
    assert not any(isinstance(fact, Retrying) for fact in talk.ends("Yes."))


def test_text_after_the_end_of_a_call_belongs_to_its_retry() -> None:
    talk = talk_in_turn()
    spins(talk, "")
    talk.emits("tool.generating", name="terminal")
    spins(talk, "", "")
    facts = streams(talk, "ok")
    assert isinstance(facts[0], Retrying)
    assert facts[1:] == [TextDelta("ok")]


def test_a_dropped_connection_is_no_message() -> None:
    talk = talk_in_turn()
    streams(talk, "Calling.")
    facts = streams(talk, "\n\n⚠ Connection dropped mid tool-call; reconnecting…\n\n")
    assert facts == [Retrying(1, 0, "the connection dropped in the middle of a tool call")]
    assert spins(talk, "") == []
    assert streams(talk, "Whole now.") == [TextDelta("Whole now.")]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("HTTP 401: Incorrect API key provided", "AUTH_ERROR"),
        ("HTTP 403: Forbidden", "AUTH_ERROR"),
        ("API call failed after 3 retries: HTTP 429: Rate limit reached", "RATE_LIMITED"),
        ("Billing or credits exhausted: HTTP 402: pay", "RATE_LIMITED"),
        ("API call failed after 3 retries: HTTP 500: boom", "AGENT_CRASH"),
        ("HTTP 400: This model's maximum context length is 8192 tokens", "CONTEXT_EXCEEDED"),
        ("⚠️  The model declined to respond to this request (safety refusal).", "CONTENT_FILTERED"),
    ],
)
def test_an_error_as_the_answer_is_a_failure_and_no_message(answer: str, code: str) -> None:
    facts = talk_in_turn().ends(answer, status="error")
    assert failure(facts).code == code
    assert failure(facts).message == answer
    assert not any(isinstance(fact, WholeText) for fact in facts)


def test_a_full_context_reports_its_tokens() -> None:
    facts = talk_in_turn().ends("Context length exceeded (15,000 tokens). Cannot compress further.", status="error")
    assert failure(facts).used_tokens == 15000


def test_a_failure_that_repeats_the_streamed_text_has_no_reason() -> None:
    talk = talk_in_turn()
    streams(talk, "partial te")
    assert failure(talk.ends("partial te", status="error")).message == "hermes gave no reason for the failed turn"


INTERRUPTED = "\u26a0\ufe0f  Stream interrupted by network error (finish_reason='length' on partial-stream-stub)"


def test_a_stream_that_broke_off_is_a_network_error() -> None:
    talk = talk_in_turn()
    streams(talk, "partial te")
    assert talk.prints(INTERRUPTED.encode(), source=Source.STDERR) == [LogLine(INTERRUPTED, "stderr")]
    failed = failure(talk.ends("partial te", status="error"))
    assert (failed.code, failed.message) == ("NETWORK_ERROR", "Stream interrupted by network error")


def test_a_stream_that_recovered_is_not_why_the_next_turn_fails() -> None:
    talk = talk_in_turn()
    talk.prints(INTERRUPTED.encode(), source=Source.STDERR)
    streams(talk, "all of it")
    talk.ends("all of it")
    talk.begins()
    assert failure(talk.ends(status="error")).code == "AGENT_CRASH"


def test_an_empty_answer_is_a_failure_despite_its_status() -> None:
    talk = talk_in_turn()
    talk.emits("status.update", kind="lifecycle", text="❌ Model returned no content after all retries.")
    facts = talk.ends("⚠️ No reply: the model returned empty content", status="complete")
    assert failure(facts).message == "Model returned no content after all retries."


def test_the_iteration_budget_is_a_turn_limit_with_a_summary() -> None:
    talk = talk_in_turn()
    talk.emits("status.update", kind="lifecycle", text="⚠️ Iteration budget exhausted (3/3) — asking model to summarise")
    facts = talk.ends("Summary.")
    assert WholeText("Summary.") in facts
    assert [fact for fact in facts if isinstance(fact, TurnLimitHit)] == [TurnLimitHit(3)]


def test_an_unknown_status_is_no_end() -> None:
    codec = new_codec(prompt=None)
    (fact,) = codec.receive(line_of(event("message.complete", text="x", status="paused")), Source.STDOUT)
    assert type(fact).__name__ == "Unknown"


# -- figures


def test_usage_of_a_turn_is_the_difference_of_session_counts() -> None:
    talk = talk_in_turn(interactive=True)
    assert Usage(100, 20, thinking_tokens=5, cached_tokens=30) in talk.ends()
    talk.begins()
    facts = talk.ends(usage={"input": 220, "output": 32, "reasoning": 10, "prompt": 280})
    assert Usage(120, 12, thinking_tokens=5, cached_tokens=30) in facts
    (cost,) = [fact.cost for fact in facts if isinstance(fact, RunCost)]
    assert (cost.input_tokens, cost.cached_tokens, cost.source) == (220, 60, "unknown")


def test_a_full_context_window_is_reported_once() -> None:
    talk = talk_in_turn(interactive=True)
    full = {**USAGE, "context_used": 90, "context_max": 100}
    assert ContextFilling(90, 100) in talk.ends(usage=full)
    talk.begins()
    assert not any(isinstance(fact, ContextFilling) for fact in talk.ends(usage=full))
    talk.begins()
    assert ContextCompacted("") in talk.ends(usage={**USAGE, "compressions": 1})


# -- tools


def test_early_arguments_are_used() -> None:
    facts = talk_in_turn().emits("tool.start", tool_id="c1", name="terminal", args_text='{\n  "command": "ls"\n}')
    assert facts == [ToolBegin("c1", "terminal"), ToolReady("c1", "terminal", {"command": "ls"}, ShellInvocation("ls"))]


@pytest.mark.parametrize(
    "shown", ['{"command": "export KEY=***"}', '{"command": "echo sk-abc...wxyz"}', '[showing verbose tail]\n "}', ""]
)
def test_arguments_that_may_be_masked_or_cut_are_not_used(shown: str) -> None:
    facts = talk_in_turn().emits("tool.start", tool_id="c1", name="terminal", args_text=shown)
    assert facts == [ToolBegin("c1", "terminal")]


def test_without_permission_requests_a_command_starts_at_once() -> None:
    talk = talk_in_turn()
    talk.is_built(yolo=True)
    ready = talk.emits("tool.start", tool_id="c1", name="terminal", args_text='{"command": "ls"}')[-1]
    assert isinstance(ready, ToolReady)
    assert ready.permitted


def test_a_command_that_exits_with_an_error_failed() -> None:
    result = {"output": "oops", "exit_code": 3, "error": None}
    _, done = completes(talk_in_turn(), "terminal", {"command": "exit 3"}, result, duration_s=0.14)
    assert done == ToolDone("c1", None, "oops", 140, stdout="oops", exit_code=3, name="terminal")


def test_a_command_that_fails_without_output_reports_its_exit_code() -> None:
    _, done = completes(talk_in_turn(), "terminal", {"command": "false"}, {"output": "", "exit_code": 1, "error": None})
    assert done.error == "exit code 1"


@pytest.mark.parametrize("remark", ["[Command timed out after 1s]", "[Command interrupted]"])
def test_a_remark_after_the_output_is_not_output(remark: str) -> None:
    result = {"output": f"late\n\n{remark}", "exit_code": 124, "error": None}
    _, done = completes(talk_in_turn(), "terminal", {"command": "sleep 9"}, result)
    assert (done.stdout, done.error) == ("late", f"late\n\n{remark}")


def test_a_background_command_is_no_shell_of_its_call() -> None:
    ready, _ = completes(talk_in_turn(), "terminal", {"command": "x", "background": True}, {"exit_code": 0})
    assert ready.shell is None


def test_a_failure_in_a_result_fails_the_tool() -> None:
    result = {"content": "", "total_lines": 0, "error": "File not found: nope.txt"}
    _, done = completes(talk_in_turn(), "read_file", {"path": "nope.txt"}, result)
    assert (done.error, done.files) == ("File not found: nope.txt", ())
    _, done = completes(talk_in_turn(), "skill_view", {"name": "x"}, {"success": False, "message": "no such skill"})
    assert done.error == "no such skill"


def test_a_skill_that_is_read_is_used() -> None:
    facts = completes(talk_in_turn(), "skill_view", {"name": "greet"}, {"success": True})
    assert facts[-1] == SkillInvoked("greet")


def test_a_tool_of_an_mcp_server_is_only_that() -> None:
    talk = talk_in_turn()
    talk.is_built(mcp_servers=[{"name": "my-echo", "status": "connected"}])
    name = "mcp__my_echo__say__it"
    begun = talk.emits("tool.start", tool_id="c1", name=name, args_text='{"text": "x"}')
    assert begun == [McpBegin("c1", "my-echo", "say__it", {"text": "x"})]
    assert completes(talk, name, {"text": "x"}, {"result": "echo: x"})[-1] == McpDone("c1", "echo: x")
    assert completes(talk, name, {}, {"error": "boom failed"})[-1] == McpDone("c1", None, "boom failed")


# -- sub-agents


def test_a_delegation_is_reported_by_subagent_events() -> None:
    talk = talk_in_turn()
    assert talk.emits("tool.start", tool_id="c1", name="delegate_task") == []
    facts = talk.emits("subagent.start", subagent_id="sa-0", goal="count the files", task_index=0)
    assert facts == [SubagentBegin("sa-0", "subagent", "count the files")]
    assert completes(talk, "delegate_task", {}, {"mode": "background", "delegation_id": "d1"}) == []
    assert talk.emits("subagent.tool", subagent_id="sa-0", tool_name="terminal", text="ls") == []
    figures = {"input_tokens": 300, "output_tokens": 24, "reasoning_tokens": 10}
    facts = talk.emits("subagent.complete", subagent_id="sa-0", status="completed", summary="3 files.", **figures)
    cost = CostRecord(
        total_usd=0.0, input_tokens=300, output_tokens=24, thinking_tokens=10, cached_tokens=0, source="unknown"
    )
    assert facts == [SubagentDone("sa-0", "3 files.", cost=cost)]
    (total,) = [fact.cost for fact in talk.ends() if isinstance(fact, RunCost)]
    assert total.input_tokens == 400  # usage does not have them


def test_a_failed_sub_agent_reports_its_reason() -> None:
    facts = talk_in_turn().emits("subagent.complete", subagent_id="sa-0", goal="g", status="failed", summary="no model")
    assert facts == [SubagentBegin("sa-0", "subagent", "g"), SubagentDone("sa-0", error="no model")]


def test_a_delegation_without_sub_agents_fails() -> None:
    facts = completes(talk_in_turn(), "delegate_task", {"tasks": [{"goal": "a"}, {"goal": "b"}]}, {"error": "paused"})
    assert facts == [SubagentBegin("c1", "subagent", "a\nb"), SubagentDone("c1", error="paused")]


def test_a_sub_agent_of_a_sub_agent_only_costs() -> None:
    talk = talk_in_turn()
    assert talk.emits("subagent.start", subagent_id="sa-1", parent_id="sa-0", goal="g") == []
    facts = talk.emits("subagent.complete", subagent_id="sa-1", parent_id="sa-0", status="completed", input_tokens=7)
    assert facts == []
    (total,) = [fact.cost for fact in talk.ends() if isinstance(fact, RunCost)]
    assert total.input_tokens == 107


# -- one-shot runs


def test_text_output_has_no_answer_and_no_closing_message() -> None:
    codec = new_codec(TEXT)
    assert [*codec.start()] == []
    assert [*codec.receive(b"Hello from the model.", Source.STDOUT)] == [LogLine("Hello from the model.")]
    assert [*codec.finish(Exit(code=0))] == []


def test_a_one_shot_run_prints_its_error_as_its_answer_and_exits_with_0() -> None:
    line = "HTTP 401: Incorrect API key provided: dummy"
    assert [*new_codec(TEXT).receive(line.encode(), Source.STDOUT)] == [RecoverableError("AUTH_ERROR", line)]


def test_a_one_shot_run_names_its_session_on_standard_error() -> None:
    (known,) = new_codec(TEXT).receive(b"session_id: 20261121_205028_0e662f", Source.STDERR)
    assert known == SessionKnown("20261121_205028_0e662f")


def test_a_turn_that_is_done_is_done() -> None:
    assert isinstance(talk_in_turn().ends("Yes.")[-1], TurnDone)


# -- remarks


@pytest.mark.parametrize(
    ("kind", "payload", "note"),
    [
        ("notification.show", {"text": "Low credit.", "level": "warn"}, Note("Low credit.", "warn")),
        ("notification.show", {"text": "Welcome."}, Note("Welcome.")),
        ("review.summary", {"text": "A skill was saved."}, Note("A skill was saved.")),
        (
            "tool.output_risk",
            {"name": "read_file", "findings": ["injection"]},
            Note("the result of read_file may be unsafe: injection", "warn"),
        ),
    ],
)
def test_a_remark_is_a_note(kind: str, payload: dict[str, Any], note: Note) -> None:
    assert talk_in_turn().emits(kind, **payload) == [note]


# -- what a recording is of


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        (event("gateway.ready", session=None), True),
        ({"jsonrpc": "2.0", "id": 1, "result": {"session_id": "x", "message_count": 0}}, True),
        ({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "x"}}, False),
        ({"jsonrpc": "2.0", "method": "session/update", "params": {}}, False),
        ({"jsonrpc": "2.0", "method": "event", "params": "gateway.ready"}, False),
        ({"jsonrpc": "2.0", "method": "event", "params": {"type": "ready"}}, False),
        ({"type": "message.delta"}, False),
    ],
)
def test_a_line_of_the_gateway_is_known(line: dict[str, Any], is_ours: bool) -> None:
    assert is_gateway_line(line) is is_ours
