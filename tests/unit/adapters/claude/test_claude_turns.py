"""Each trap of Claude Code's stream, by the recording that shows it."""

import json

import pytest
from claude_recordings import events_of, native, new_codec, only, recorded_facts, recording
from tests.unit.adapters.codec_conversation import facts_of, receive

from agent_mux.errors import ErrorCode
from agent_mux.events import QuotaWindow
from agent_mux.sdk import facts
from agent_mux.sdk.codec import Exit, Source

CLOSING = (facts.TurnDone, facts.TurnFailed, facts.TurnStopped, facts.TurnLimitHit)


def recorded_text(name: str) -> str:
    return "".join(fact.text for fact in only(recorded_facts(name), facts.TextDelta, facts.WholeText))


# -- turns: init and result repeat


def test_two_prompts_in_one_process_are_two_turns_of_one_session() -> None:
    facts_told = recorded_facts("stdin_multi_turn")
    assert len(only(facts_told, facts.TurnDone)) == 2
    assert len({fact.session_id for fact in only(facts_told, facts.SessionKnown)}) == 1
    assert [e.type for e in events_of("stdin_multi_turn")].count("session_start") == 1


def test_skills_and_plugins_are_emitted_once() -> None:
    names = [fact.name for fact in only(recorded_facts("stdin_multi_turn"), facts.SkillLoaded)]
    assert names
    assert len(names) == len(set(names))


def test_a_background_command_that_ends_makes_a_second_turn_in_one_shot_mode_too() -> None:
    dones = only(recorded_facts("tool_bash_background"), facts.TurnDone)
    assert [done.cost.output_tokens for done in dones] == [24, 12]


def test_a_result_held_back_for_a_background_agent_closes_its_own_turn_not_the_next() -> None:
    facts_told = recorded_facts("subagent")
    assert [type(fact) for fact in facts_told if isinstance(fact, (*CLOSING, facts.SubagentDone))] == [
        facts.SubagentDone, facts.TurnDone, facts.TurnDone,
    ]  # fmt: skip
    turns = [e for e in events_of("subagent") if e.type in {"turn_start", "message_stop", "turn_end"}]
    assert [e.type for e in turns] == ["turn_start", "message_stop", "message_stop", "turn_end",
                                       "turn_start", "message_stop", "turn_end"]  # fmt: skip


def test_cost_of_joint_results_is_emitted_for_the_run_only() -> None:
    facts_told = recorded_facts("subagent")
    assert [done.cost for done in only(facts_told, facts.TurnDone)] == [None, None]
    assert [cost.cost.total_usd for cost in only(facts_told, facts.RunCost)] == [pytest.approx(0.00373)]


def test_late_result_with_an_error_is_emitted() -> None:
    *before, late, _ = recording("subagent").stdout_lines
    failed = json.loads(late) | {"is_error": True, "result": "it broke"}
    codec = new_codec()
    receive(codec, *before)
    assert only(receive(codec, failed), facts.RecoverableError, *CLOSING) == [
        facts.RecoverableError("AGENT_CRASH", "it broke")
    ]


def test_a_run_that_dies_between_two_turns_is_not_completed() -> None:
    lines = recording("subagent").stdout_lines
    first_turn_over = next(i for i, line in enumerate(lines) if i > 20 and b'"subtype":"init"' in line)
    codec = new_codec()
    receive(codec, *lines[: first_turn_over + 4])
    assert facts_of(codec.finish(Exit(code=None, signal=9))) == []


def test_a_single_result_after_two_inits_still_closes_the_turn() -> None:
    """Should the CLI ever repeat init without owing a result, the run must not look cut off."""
    lines = recording("subagent").stdout_lines
    codec = new_codec()
    receive(codec, *lines[:-1])
    assert only(codec.finish(Exit(code=0)), facts.TurnDone)


def test_a_turn_in_which_nothing_happened_is_not_shown() -> None:
    assert len(native("background_two_at_once", type="result")) == 3
    assert [e.type for e in events_of("background_two_at_once")].count("turn_end") == 2


def test_clearing_the_conversation_begins_the_counters_again() -> None:
    facts_told = recorded_facts("slash_clear")
    costs = [cost.cost.total_usd for cost in only(facts_told, facts.RunCost)]
    assert costs == [pytest.approx(0.000746), pytest.approx(0.001492)]
    assert any("cleared" in note.message for note in only(facts_told, facts.Note))


# -- errors


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("err_401", "AUTH_ERROR"),
        ("err_403", "AUTH_ERROR"),
        ("err_no_key", "AUTH_ERROR"),
        ("err_after_tool_401", "AUTH_ERROR"),
        ("err_429_final", "RATE_LIMITED"),
        ("err_prompt_too_long", "CONTEXT_EXCEEDED"),
        ("err_500_final", "AGENT_CRASH"),
        ("err_529_final", "AGENT_CRASH"),
        ("err_404_model", "AGENT_CRASH"),
        ("err_credit", "AGENT_CRASH"),
        ("err_conn_refused", "NETWORK_ERROR"),
        ("err_html_502", "AGENT_CRASH"),
        ("err_resume_missing", "SESSION_NOT_FOUND"),
        ("max_budget", "BUDGET_EXCEEDED"),
    ],
)
def test_an_error_is_a_failed_turn_whatever_subtype_it_has(name: str, code: ErrorCode) -> None:
    (closing,) = only(recorded_facts(name), *CLOSING)
    assert isinstance(closing, facts.TurnFailed)
    assert closing.failure.code == code
    assert closing.failure.message


@pytest.mark.parametrize("name", ["err_401", "err_403", "err_no_key", "err_500_final", "err_conn_refused"])
def test_an_error_text_is_no_message_of_the_assistant(name: str) -> None:
    assert not only(recorded_facts(name), facts.WholeText, facts.TextDelta, facts.StepBegin)


def test_a_session_that_could_not_be_resumed_is_not_announced() -> None:
    assert not only(recorded_facts("err_resume_missing"), facts.SessionKnown)


def test_the_sizes_in_a_context_error_are_read() -> None:
    line = native("err_prompt_too_long", type="result")[0]
    line["result"] = "prompt is too long: 250000 tokens > 200000 maximum"
    (failed,) = only(receive(new_codec(), line), facts.TurnFailed)
    assert (failed.failure.used_tokens, failed.failure.max_tokens) == (250_000, 200_000)


@pytest.mark.parametrize(("error", "native_reason", "code"), [
    ("max_output_tokens", "stop_sequence", None),
    ("invalid_request", "refusal", "CONTENT_FILTERED"),
    ("invalid_request", "stop_sequence", "AGENT_CRASH"),
])  # fmt: skip
def test_an_answer_that_stays_cut_or_blocked_is_no_crash(
    error: str, native_reason: str, code: ErrorCode | None
) -> None:
    notice, result = native("err_500_final", type="assistant")[-1], native("err_500_final", type="result")[0]
    notice["error"] = error
    result |= {"stop_reason": native_reason, "result": "API Error: no", "api_error_status": None}
    codec = new_codec()
    (closing,) = only([*receive(codec, notice), *receive(codec, result)], *CLOSING)
    if code is None:
        assert closing == facts.TurnDone(closing.cost, stop_reason="length")
    else:
        assert closing.failure.code == code


def test_recovered_error_does_not_affect_the_next_turn() -> None:
    closings = only(recorded_facts("err_then_recover"), *CLOSING)
    assert [type(closing) for closing in closings] == [facts.TurnFailed, facts.TurnDone]


def test_retry_reports_delay_and_attempts() -> None:
    retries = only(recorded_facts("err_401"), facts.Retrying)
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(1, 2), (2, 2)]
    assert retries[0].delay_ms == native("err_401", subtype="api_retry")[0]["retry_delay_ms"]
    assert retries[0].reason == "authentication_failed (HTTP 401)"


@pytest.mark.parametrize(("name", "limited"), [("err_429_final", True), ("err_529_recover", True), ("err_401", False)])
def test_temporary_refusal_emits_rate_limited_before_retrying(name: str, *, limited: bool) -> None:
    kinds = [type(fact) for fact in only(recorded_facts(name), facts.RateLimited, facts.Retrying)]
    assert kinds == [facts.RateLimited, facts.Retrying] * 2 if limited else [facts.Retrying] * 2


def test_a_warning_about_the_limits_is_not_rate_limited() -> None:
    assert not only(recorded_facts("ratelimit_headers_oauth"), facts.RateLimited)
    refused = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}, "session_id": "s"}
    assert only(receive(new_codec(), refused), facts.RateLimited)


def test_the_turn_limit_is_neither_done_nor_failed() -> None:
    assert [limit.max_turns for limit in only(recorded_facts("max_turns"), *CLOSING)] == [1]


@pytest.mark.parametrize(
    "name", ["interrupt_text", "interrupt_tool", "interrupt_during_permission", "perm_deny_interrupt",
             "signal_sigint_text", "signal_sigint_tool", "signal_sigint_streamin"]
)  # fmt: skip
def test_an_interruption_is_stopped_not_failed(name: str) -> None:
    assert [type(fact) for fact in only(recorded_facts(name), *CLOSING)] == [facts.TurnStopped]


def test_an_interruption_is_recognised_without_a_terminal_reason() -> None:
    codec = new_codec()
    interrupted = native("interrupt_tool", type="user")[-1]
    result = native("interrupt_tool", type="result")[0]
    del result["terminal_reason"]
    assert only(receive(codec, interrupted, result), *CLOSING) == only(recorded_facts("interrupt_tool"), *CLOSING)


@pytest.mark.parametrize("name", ["signal_sigterm_tool", "signal_sighup_text", "orphan_sigkill"])
def test_a_killed_agent_has_no_closing_message(name: str) -> None:
    assert not only(recorded_facts(name), *CLOSING)


# -- partial and whole messages


@pytest.mark.parametrize("name", ["tool_bash", "thinking", "many_deltas", "plain_text_partial"])
def test_whole_line_does_not_repeat_streamed_text(name: str) -> None:
    facts_told = recorded_facts(name)
    assert only(facts_told, facts.TextDelta)
    assert not only(facts_told, facts.WholeText, facts.WholeThinking)


def test_without_partial_messages_the_whole_line_emits_the_text() -> None:
    facts_told = recorded_facts("plain_text")
    assert [text.text for text in only(facts_told, facts.WholeText)] == ["Hello from the fake model."]
    assert len(only(facts_told, facts.StepBegin)) == 1


def test_a_message_ends_after_its_last_fragment_although_the_whole_line_comes_between() -> None:
    kinds = [type(fact) for fact in only(recorded_facts("plain_text_partial"), facts.TextDelta, facts.TextEnd)]
    assert kinds[-1] is facts.TextEnd
    assert kinds.count(facts.TextEnd) == 1


def test_dropped_streams_are_abandoned_and_their_repetition_without_streaming_is_the_answer() -> None:
    recorded = recorded_facts("err_drop_always")
    assert [text.text for text in only(recorded, facts.WholeText)] == ["partial text that will be cut"]
    assert len(only(recorded, facts.StepBegin)) == 3
    stops = [event for event in events_of("err_drop_always") if event.type == "message_stop"]
    assert [stop.text for stop in stops] == ["partial text that will be cut"] * 3
    assert [stop.abandoned for stop in stops] == [True, True, None]


def test_text_of_a_broken_stream_that_the_model_continues_is_kept() -> None:
    stops = [event for event in events_of("err_sse_overloaded") if event.type == "message_stop"]
    assert [(stop.text, stop.abandoned) for stop in stops] == [("partial", None), ("second ok", None)]


def test_a_tool_call_that_was_cut_off_is_over() -> None:
    start = native("tool_bash", type="stream_event")
    begun = [line for line in start if line["event"]["type"] in {"message_start", "content_block_start"}]
    tool = next(line for line in begun if line["event"].get("content_block", {}).get("type") == "tool_use")
    stop = {**start[-1], "event": {"type": "message_stop"},
            "abandoned_blocks": {"api_message_id": "msg_fake0001", "from_block_index": 0}}  # fmt: skip
    (done,) = only(receive(new_codec(), begun[0], tool, stop), facts.ToolDone)
    assert done.call_id == tool["event"]["content_block"]["id"]
    assert "broke off" in done.error


def test_a_tool_call_whose_stream_ended_well_is_not_abandoned() -> None:
    assert not [done for done in only(recorded_facts("tool_bash"), facts.ToolDone) if done.error]


def test_same_text_in_the_next_message_is_emitted() -> None:
    line = native("plain_text", type="assistant")[0]
    again = json.loads(json.dumps(line))
    again["message"]["id"] = "msg_other"
    assert len(only(receive(new_codec(), line, again), facts.WholeText)) == 2


def test_one_line_per_content_block_is_one_step_per_message() -> None:
    steps = len(only(recorded_facts("tool_bash"), facts.StepBegin))
    assert steps == len({line["message"]["id"] for line in native("tool_bash", type="assistant")}) == 2


def test_the_output_of_a_local_command_is_a_message() -> None:
    (text,) = only(recorded_facts("slash_context"), facts.WholeText)
    assert text.text.startswith("## Context Usage")


def test_injected_text_is_not_emitted() -> None:
    assert recorded_text("max_tokens_stop") == "cut off midcontinued"
    assert recorded_text("empty_content") == "All done."


def test_a_refused_message_leaves_a_note_and_no_empty_message() -> None:
    facts_told = recorded_facts("refusal")
    assert [fact.text for fact in only(facts_told, facts.TextDelta)] == ["All", " do", "ne."]
    assert any("safeguards" in note.message for note in only(facts_told, facts.Note))


# -- a single result object


def test_json_output_is_a_whole_run_in_one_line() -> None:
    kinds = [type(fact) for fact in recorded_facts("json_output")]
    assert kinds == [facts.SessionKnown, facts.WholeText, facts.Usage, facts.RunCost, facts.TurnDone]


def test_the_answer_is_not_repeated_by_the_result() -> None:
    assert recorded_text("tool_bash") == "Running echo.All done."


# -- structured output


def test_structured_output_comes_with_the_closing_message() -> None:
    (done,) = only(recorded_facts("json_schema"), facts.TurnDone)
    assert done.structured_output == {"answer": 42}


def test_structured_output_may_be_missing_from_a_success() -> None:
    (done,) = only(recorded_facts("json_schema_bad"), facts.TurnDone)
    assert done.structured_output is None


# -- usage and cost


def test_output_tokens_are_those_of_the_end_of_the_stream() -> None:
    assert [usage.output_tokens for usage in only(recorded_facts("tool_bash"), facts.Usage)] == [12, 12]


def test_without_partial_messages_usage_comes_once_from_the_result() -> None:
    assert [(usage.input_tokens, usage.output_tokens) for usage in only(recorded_facts("plain_text"), facts.Usage)] == [
        (100, 12)
    ]


@pytest.mark.parametrize("name", ["tool_bash", "tool_files", "err_drop_always", "err_sse_overloaded", "plain_text",
                                  "subagent_sync", "stdin_multi_turn", "json_output_tool"])  # fmt: skip
def test_the_calls_add_up_to_what_the_results_report(name: str) -> None:
    usages = only(recorded_facts(name), facts.Usage)
    reported = [line["usage"] for line in native(name, type="result")]
    assert sum(u.input_tokens for u in usages) == sum(r["input_tokens"] for r in reported)
    assert sum(u.output_tokens for u in usages) == sum(r["output_tokens"] for r in reported)
    assert sum(u.cached_tokens for u in usages) == sum(r["cache_read_input_tokens"] for r in reported)


def test_cumulative_cost_becomes_the_cost_of_each_turn() -> None:
    costs = [done.cost.total_usd for done in only(recorded_facts("compact_manual"), facts.TurnDone)]
    assert costs == [pytest.approx(0.000746)] * 3
    assert native("compact_manual", type="result")[-1]["total_cost_usd"] == pytest.approx(sum(costs))


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("resume_2_resume", {"session_id": "22222222-3333-4444-8555-666666666666"}),
        ("resume_3_fork", {"fork_session_id": "22222222-3333-4444-8555-666666666666"}),
    ],
)
def test_the_cost_of_earlier_runs_of_the_session_is_left_out(name: str, context: dict[str, str]) -> None:
    (cost,) = only(recorded_facts(name, **context), facts.RunCost)
    assert cost.cost.total_usd == pytest.approx(0.000746)
    assert cost.cost.input_tokens == 100
    assert native(name, type="result")[0]["total_cost_usd"] > 0.002


def test_older_versions_without_the_difference_are_subtracted() -> None:
    first, second = native("stdin_multi_turn", type="result")
    for line in (first, second):
        del line["model_usage_since_last_result"]
    costs = [done.cost for done in only(receive(new_codec(), first, second), facts.TurnDone)]
    assert [cost.total_usd for cost in costs] == [pytest.approx(0.000746)] * 2
    assert [cost.output_tokens for cost in costs] == [12, 12]


def test_cost_mixed_with_earlier_runs_is_unknown() -> None:
    (line,) = native("resume_2_resume", type="result")
    del line["model_usage_since_last_result"]
    (done,) = only(receive(new_codec(session_id="x"), line), facts.TurnDone)
    assert (done.cost.source, done.cost.total_usd, done.cost.output_tokens) == ("unknown", 0.0, 12)


def test_a_run_that_used_nothing_has_no_cost() -> None:
    facts_told = recorded_facts("err_401")
    assert not only(facts_told, facts.RunCost, facts.Usage)
    assert only(facts_told, facts.TurnFailed)[0].cost is None


def test_sub_agents_and_compaction_are_in_the_cost() -> None:
    assert only(recorded_facts("subagent_sync"), facts.TurnDone)[0].cost.output_tokens == 48
    assert only(recorded_facts("compact_auto"), facts.TurnDone)[1].cost.output_tokens == 24


# -- the session


def test_resumed_and_forked_sessions_are_marked() -> None:
    (resumed, *_) = only(recorded_facts("resume_2_resume", session_id="22222222"), facts.SessionKnown)
    (forked, *_) = only(recorded_facts("resume_3_fork", fork_session_id="22222222"), facts.SessionKnown)
    assert (resumed.resumed, resumed.forked_from) == (True, None)
    assert (forked.resumed, forked.forked_from) == (False, "22222222")


def test_version_is_known_before_the_session_when_a_hook_comes_first() -> None:
    codec = new_codec()
    started, ended, init = (receive(codec, line) for line in recording("hooks").stdout_lines[:3])
    assert not any(isinstance(fact, facts.SessionKnown) for fact in (*started, *ended))
    assert [type(fact) for fact in init[:2]] == [facts.AgentVersion, facts.SessionKnown]


def test_a_missing_mcp_server_is_noted() -> None:
    (init,) = native("mcp_server_broken", subtype="init")
    init["mcp_servers"] = [{"name": "bad", "status": "failed"}, {"name": "good", "status": "connected"}]
    assert [n.message for n in only(receive(new_codec(), init), facts.Note)] == [
        "the MCP server bad is not available: failed"
    ]


# -- compaction, fallback


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("compact_auto", "auto summary."),
        ("compact_manual", "This was a summary of the talk."),
        ("compact_reactive", "reactive summary."),
    ],
)
def test_compaction_has_its_summary(name: str, summary: str) -> None:
    (compacted,) = only(recorded_facts(name), facts.ContextCompacted)
    assert compacted.summary == summary


def test_compaction_without_summary_is_emitted_at_the_end() -> None:
    lines = recording("compact_auto").stdout_lines
    at = next(i for i, line in enumerate(lines) if b"compact_boundary" in line)
    (compacted,) = only(recorded_facts("compact_auto", upto=at + 1), facts.ContextCompacted)
    assert compacted.tokens_saved == 985551 - 2608
    assert "985551 tokens before" in compacted.summary


def test_the_switch_to_another_model_is_noted() -> None:
    assert any("Sonnet 4.5" in note.message for note in only(recorded_facts("err_529_fallback_model"), facts.Note))


# -- the shape of lines


@pytest.mark.parametrize("name", ["tool_bash", "subagent_async", "err_401", "perm_allow"])
def test_the_order_of_keys_does_not_matter(name: str) -> None:
    codec = new_codec()
    backwards = [dict(reversed(json.loads(line).items())) for line in recording(name).stdout_lines]
    assert facts_of(receive(codec, *backwards)) == recorded_facts(name)


def test_an_unknown_line_is_shown_whole() -> None:
    line = {"type": "quantum_event", "subtype": "leap", "x": 1}
    (unknown,) = receive(new_codec(), line)
    assert isinstance(unknown, facts.Unknown)
    assert unknown.kind == "quantum_event/leap"
    assert json.loads(unknown.raw) == line


@pytest.mark.parametrize(
    "line",
    [
        {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "odour_delta"}},
        },
        {"type": "stream_event", "event": "soon"},
        {"type": "stream_event", "event": {"type": "message_paused"}},
        {"type": "assistant", "message": 7},
        {"type": "user"},
        {"type": "system", "subtype": "brand_new"},
        {"type": "control_request", "request_id": "r", "request": []},
    ],
)
def test_a_known_type_of_another_shape_is_unknown(line: dict[str, object]) -> None:
    assert [type(step) for step in receive(new_codec(), line)] == [facts.Unknown]


def test_unknown_lines_of_subagents_are_emitted() -> None:
    message = {"id": "m", "content": [{"type": "hologram"}]}
    line = {"type": "assistant", "message": message, "parent_tool_use_id": "t", "session_id": "s"}
    assert [fact.kind for fact in only(receive(new_codec(), line), facts.Unknown)] == ["assistant/hologram"]


def test_noise_is_logged_not_lost() -> None:
    codec = new_codec()
    (noise,) = receive(codec, b"Warning: something \xff odd")
    assert noise == facts.LogLine("Warning: something \ufffd odd")
    assert codec.receive(b"on stderr", Source.STDERR) == (facts.LogLine("on stderr", "stderr"),)
    assert [type(step) for step in receive(codec, b"  ")] == [facts.Ignored]


def test_a_broken_hook_is_noted_and_a_good_one_is_not() -> None:
    assert not only(recorded_facts("hooks"), facts.Note)
    (response, *_) = native("hooks", subtype="hook_response")
    response |= {"outcome": "error", "stderr": "boom"}
    assert "boom" in only(receive(new_codec(), response), facts.Note)[0].message


# -- the quota


def quota_event(**info: object) -> dict[str, object]:
    return {"type": "rate_limit_event", "rate_limit_info": info, "session_id": "s"}


def test_windows_of_the_quota_are_reported() -> None:
    window = QuotaWindow("five_hour", 0.91, 1_795_300_000_000)
    assert only(recorded_facts("ratelimit_headers_oauth"), facts.QuotaReported) == [facts.QuotaReported((window,))]


def test_quota_of_releases_without_a_list_of_windows_is_reported() -> None:
    line = quota_event(status="allowed", rateLimitType="seven_day", resetsAt=1_795_300_000, utilization=0.5)
    assert receive(new_codec(), line)[1:] == [facts.QuotaReported((QuotaWindow("seven_day", 0.5, 1_795_300_000_000),))]


def test_deciding_window_without_its_utilization_keeps_that_of_the_list() -> None:
    windows = {"five_hour": {"utilization": 0.91, "resetsAt": 1_795_300_000}}
    line = quota_event(status="allowed", rateLimitType="five_hour", resetsAt=1_795_300_000, unifiedWindows=windows)
    window = QuotaWindow("five_hour", 0.91, 1_795_300_000_000)
    assert receive(new_codec(), line)[1:] == [facts.QuotaReported((window,))]


def test_refused_window_is_exhausted_and_limits_the_run() -> None:
    windows = {"five_hour": {"utilization": 0.99, "resetsAt": 1_795_300_000}, "seven_day": {"utilization": 0.3}}
    line = quota_event(status="rejected", rateLimitType="five_hour", resetsAt=1_795_300_000, unifiedWindows=windows)
    reported = (QuotaWindow("five_hour", 1.0, 1_795_300_000_000), QuotaWindow("seven_day", 0.3))
    assert receive(new_codec(), line)[1:] == [facts.QuotaReported(reported), facts.RateLimited()]


@pytest.mark.parametrize("info", [{}, {"status": "allowed"}, {"status": 3, "unifiedWindows": [1], "resetsAt": "soon"}])
def test_quota_without_numbers_is_ignored(info: dict[str, object]) -> None:
    assert not only(receive(new_codec(), quota_event(**info)), (facts.QuotaReported, facts.RateLimited))
