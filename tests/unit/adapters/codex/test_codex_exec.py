"""`codex exec --json`, with its recordings: one test for each peculiarity."""

import pytest
from codex_recordings import EXEC, codec_for, native, new_codec, recorded_facts, recording
from tests.unit.adapters.codec_conversation import receive, without_ignored

from agent_mux.sdk import facts
from agent_mux.sdk.codec import (
    AnswerAction,
    ApproveAction,
    Cancel,
    Close,
    DenyAction,
    Exit,
    Interrupt,
    Refuse,
    Send,
    SignalGroup,
    Source,
    Steer,
)


def codes(name: str) -> list[str]:
    return [fact.failure.code for fact in recorded_facts(name, facts.TurnFailed)]


def test_cut_answer_completes_with_its_stop_reason() -> None:
    assert recorded_facts("incomplete", facts.TurnDone, facts.TurnFailed) == [facts.TurnDone(stop_reason="length")]


def test_the_session_is_known_from_the_first_line() -> None:
    first = native("plain_text")[0]["thread_id"]
    assert recorded_facts("plain_text")[0] == facts.SessionKnown(first)


def test_messages_and_thoughts_come_whole() -> None:
    assert recorded_facts("reasoning", facts.WholeText, facts.WholeThinking) == [
        facts.WholeThinking("**Thinking** about it."),
        facts.WholeText("Answer 42"),
    ]


def test_a_command_is_shown_as_it_was_executed() -> None:
    command = "/bin/bash -lc 'echo hi; pwd'"
    [ready], [done] = recorded_facts("exec_ok", facts.ToolReady), recorded_facts("exec_ok", facts.ToolDone)
    assert (ready.name, ready.input, ready.shell) == (
        "exec_command",
        {"command": command},
        facts.ShellInvocation(command),
    )
    assert (done.output, done.stdout, done.exit_code, done.error) == ("hi\n/home/dev/project\n",) * 2 + (0, None)


def test_a_command_that_exits_non_zero_is_a_failed_tool_with_its_output() -> None:
    [done] = recorded_facts("exec_fail", facts.ToolDone)
    assert (done.error, done.stdout, done.exit_code) == ("out\nerr\n", "out\nerr\n", 3)


def test_polling_a_long_command_makes_no_second_call() -> None:
    [ready], [done] = (
        recorded_facts("exec_long_yield", facts.ToolReady),
        recorded_facts("exec_long_yield", facts.ToolDone),
    )
    assert done.call_id == ready.call_id
    assert done.stdout == "line 1\nline 2\nline 3\nline 4\n"


def test_a_command_left_running_never_ends() -> None:
    assert len(recorded_facts("exec_background_left", facts.ToolReady)) == 1
    assert recorded_facts("exec_background_left", facts.ToolDone) == []
    assert isinstance(recorded_facts("exec_background_left")[-1], facts.TurnDone)


def test_a_patch_shows_only_deletions_because_sizes_and_diffs_are_missing() -> None:
    done = recorded_facts("apply_patch_add", facts.ToolDone)
    assert [call.name for call in done] == ["apply_patch"] * 3
    assert [call.files for call in done] == [(), (), (facts.FileDeleted("/home/dev/project/a.txt"),)]
    assert done[1].output["changes"][0] == {"path": "/home/dev/project/a.txt", "kind": "update"}


def test_a_rejected_patch_is_only_on_stderr_and_is_kept_as_a_log_line() -> None:
    assert recorded_facts("apply_patch_readonly", facts.ToolReady) == []
    lines = [line.line for line in recorded_facts("apply_patch_readonly", facts.LogLine)]
    assert any("patch rejected" in line for line in lines)


def test_an_mcp_call_is_no_native_tool_and_fails_when_its_tool_does() -> None:
    assert recorded_facts("mcp_tool_yolo", facts.ToolReady, facts.ToolDone) == []
    first, second = recorded_facts("mcp_tool_yolo", facts.McpBegin)
    assert (first.server, first.tool, first.input) == ("echo", "echo", {"text": "ping"})
    good, bad = recorded_facts("mcp_tool_yolo", facts.McpDone)
    assert (good.call_id, good.error) == (first.call_id, None)
    assert (bad.call_id, bad.error) == (second.call_id, "boom failed")


def test_an_mcp_call_without_permission_fails_with_the_reason() -> None:
    assert {done.error for done in recorded_facts("mcp_tool", facts.McpDone)} == {
        "MCP tool call requires approval, but approval policy is never"
    }


def test_the_second_id_of_a_web_search_counts_in_both_of_its_lines() -> None:
    # {"id":"item_0","type":"web_search","id":"ws_fake0002",...}: parsers keep the last id.
    ready, again = recorded_facts("web_search", facts.ToolReady)
    [done] = recorded_facts("web_search", facts.ToolDone)
    assert ready == again
    assert {ready.call_id, done.call_id} == {native("web_search", type="item.started")[0]["item"]["id"]}
    assert ready.call_id.startswith("ws_")
    assert ready.input["query"] == "fake news"


def test_a_web_search_whose_query_comes_late_is_ready_late() -> None:
    codec = new_codec(EXEC)
    start = {"type": "item.started", "item": {"id": "ws", "type": "web_search", "query": ""}}
    end = {"type": "item.completed", "item": {"id": "ws", "type": "web_search", "query": "now", "action": None}}
    assert receive(codec, start) == [facts.ToolBegin("ws", "web_search")]
    ready, done = receive(codec, end)
    assert ready == facts.ToolReady("ws", "web_search", {"query": "now", "action": None})
    assert done == facts.ToolDone("ws", name="web_search")


def test_each_version_of_the_plan_is_one_finished_call() -> None:
    ready = recorded_facts("plan_tool", facts.ToolReady)
    assert [call.name for call in ready] == ["update_plan"] * 2
    assert len({call.call_id for call in ready}) == 2
    assert [done.call_id for done in recorded_facts("plan_tool", facts.ToolDone)] == [call.call_id for call in ready]
    assert [step["completed"] for step in ready[1].input["plan"]] == [True, False]


def test_a_sub_agent_begins_with_its_id_and_ends_with_its_reported_state() -> None:
    [begun], [done] = (
        recorded_facts("spawn_agent", facts.SubagentBegin),
        recorded_facts("spawn_agent", facts.SubagentDone),
    )
    assert begun.prompt == "SUBTASK count the files"
    assert (done.subagent_id, done.summary, done.error) == (begun.subagent_id, "sub result: 3 files", None)
    assert recorded_facts("spawn_agent", facts.ToolReady, facts.ToolDone) == []


def test_the_sub_agents_of_newer_models_are_invisible_here() -> None:
    assert recorded_facts("agents_v2", facts.SubagentBegin, facts.SubagentDone, facts.Unknown) == []


def test_cached_tokens_are_no_input_tokens() -> None:
    [usage] = recorded_facts("plain_text", facts.Usage)
    assert usage == facts.Usage(70, 20, thinking_tokens=5, cached_tokens=30, cache_creation_tokens=0, of_one_call=False)


def test_a_turns_tokens_are_what_the_threads_counter_grew_by() -> None:
    codec = new_codec(EXEC)
    lines = [{"type": "turn.completed", "usage": {"input_tokens": n, "output_tokens": n}} for n in (10, 25)]
    usage = [step for step in receive(codec, *lines) if isinstance(step, facts.Usage)]
    assert [(fact.input_tokens, fact.output_tokens) for fact in usage] == [(10, 10), (15, 15)]
    total = [step.cost.input_tokens for step in receive(codec, lines[1]) if isinstance(step, facts.RunCost)]
    assert total == [25]


@pytest.mark.parametrize(
    ("name", "context"), [("resume_2_id", {"session_id": "s"}), ("resume_4_fork", {"fork_session_id": "s"})]
)
def test_the_tokens_of_a_resumed_run_are_unknown(name: str, context: dict[str, str]) -> None:
    assert recorded_facts(name, facts.Usage, facts.RunCost, **context) == []
    [done] = recorded_facts(name, facts.TurnDone, **context)
    assert done.cost is None
    assert "unknown" in recorded_facts(name, facts.Note, **context)[-1].message
    [known] = recorded_facts(name, facts.SessionKnown, **context)
    assert (known.resumed, known.forked_from) == ("session_id" in context, context.get("fork_session_id"))


def test_reconnecting_is_a_retry_and_no_failure() -> None:
    retries = recorded_facts("err_default_retries_500", facts.Retrying)
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(n, 5) for n in range(1, 6)]
    assert codes("err_default_retries_500") == ["AGENT_CRASH"]
    assert recorded_facts("err_drop_midstream", facts.TurnFailed) == []


def test_waiting_for_the_network_is_a_retry_without_an_end() -> None:
    retries = recorded_facts("err_conn_refused", facts.Retrying)
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(n, 0) for n in range(1, 6)]
    assert retries[0].reason == "Connection failed: error sending request"


def test_a_retried_rate_limit_has_its_waiting_time() -> None:
    assert recorded_facts("err_rate_failed", facts.RateLimited) == [facts.RateLimited(1500)]
    assert recorded_facts("err_429_recover", facts.RateLimited) == [facts.RateLimited(None)]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("err_401", "AUTH_ERROR"),
        ("err_403", "AUTH_ERROR"),
        ("err_no_key", "AUTH_ERROR"),
        ("err_429_final", "RATE_LIMITED"),
        ("err_429_usage_limit", "RATE_LIMITED"),
        ("err_quota_failed", "RATE_LIMITED"),
        ("err_context", "CONTEXT_EXCEEDED"),
        ("err_400", "AGENT_CRASH"),
        ("err_404_model", "AGENT_CRASH"),
        ("err_500", "AGENT_CRASH"),
        ("err_503_overloaded", "AGENT_CRASH"),
        ("err_html_502", "AGENT_CRASH"),
        ("err_drop_always", "NETWORK_ERROR"),
        ("err_conn_refused_bounded", "NETWORK_ERROR"),
    ],
)
def test_failures_are_classified_by_their_prose(name: str, code: str) -> None:
    assert codes(name) == [code]


def test_an_error_item_is_a_warning() -> None:
    [note] = recorded_facts("err_404_model", facts.Note)
    assert note.level == "warn"
    assert "fallback metadata" in note.message
    assert recorded_facts("default_provider_api_key", facts.TurnFailed) == []


def test_the_error_before_turn_failed_is_emitted_once() -> None:
    assert [type(fact) for fact in recorded_facts("err_400")][-1:] == [facts.TurnFailed]
    assert recorded_facts("err_400", facts.RecoverableError) == []


def test_an_error_without_turn_failed_is_emitted_at_the_end() -> None:
    codec = new_codec(EXEC)
    receive(codec, {"type": "turn.started"}, {"type": "error", "message": "unexpected status 401 Unauthorized: no"})
    assert list(codec.finish(Exit(code=1))) == [
        facts.RecoverableError("AUTH_ERROR", "unexpected status 401 Unauthorized: no"),
    ]


@pytest.mark.parametrize("name", ["bad_flag", "err_bad_config", "mcp_broken_required", "resume_5_missing"])
def test_a_run_that_never_began_emits_only_stderr(name: str) -> None:
    assert recording(name).exit.code in (1, 2)
    assert recorded_facts(name) == []
    assert recorded_facts(name, facts.LogLine)


@pytest.mark.parametrize("name", ["signal_sigint_text", "signal_sigterm_tool", "signal_sighup_text", "orphan_sigkill"])
def test_a_signal_leaves_no_closing_message(name: str) -> None:
    assert recorded_facts(name, facts.TurnDone, facts.TurnFailed, facts.TurnStopped) == []


def test_compaction_is_invisible_here() -> None:
    assert recorded_facts("compact_auto", facts.ContextCompacted, facts.Unknown) == []


def test_the_answer_to_a_schema_is_parsed() -> None:
    [done] = recorded_facts("output_schema", facts.TurnDone, output_schema={"type": "object"})
    assert done.structured_output == {"answer": 42}
    [unasked] = recorded_facts("output_schema", facts.TurnDone)
    assert unasked.structured_output is None


def test_a_step_begins_with_a_message_after_a_tool() -> None:
    kinds = [type(fact) for fact in recorded_facts("exec_ok", facts.StepBegin, facts.WholeText, facts.ToolReady)]
    assert kinds == [facts.StepBegin, facts.WholeText, facts.ToolReady, facts.StepBegin, facts.WholeText]
    assert len(recorded_facts("web_search", facts.StepBegin)) == 1  # the search is part of the model call


def test_a_line_separator_inside_a_text_splits_nothing() -> None:
    assert recorded_facts("unicode", facts.WholeText)[0] == facts.WholeText("日本語 😀 \u2028 end")


def test_noise_is_a_log_line() -> None:
    assert receive(new_codec(EXEC), b"Reading...", b'"x"', b'{"type":') == [
        facts.LogLine("Reading..."),
        facts.LogLine('"x"'),
        facts.LogLine('{"type":'),
    ]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "thread.started"},
        {"type": "turn.completed", "usage": {"input_tokens": "many"}},
        {"type": "turn.failed", "error": "x"},
        {"type": "item.completed", "item": {"type": "agent_message", "id": "a"}},
        {"type": "item.completed", "item": {"type": "hologram", "id": "a"}},
        {"type": "item.started", "item": []},
        {"type": "item.updated"},
        {"type": "error"},
        {"type": "weather"},
        {"type": ["turn.started"]},
        {},
    ],
)
def test_unknown_lines_are_emitted_whole_as_unknown(line: dict[str, object]) -> None:
    [fact] = receive(new_codec(EXEC), line)
    assert isinstance(fact, facts.Unknown)


def test_an_item_that_was_never_started_is_begun_when_it_ends() -> None:
    end = next(line for line in recording("exec_ok").stdout_lines if b'"exit_code":0' in line)
    assert [type(step) for step in receive(new_codec(EXEC), end)] == [facts.ToolReady, facts.ToolDone]


def test_a_running_exec_can_only_be_interrupted() -> None:
    codec = codec_for("exec_ok")
    assert list(codec.start()) == []
    assert list(codec.request(Interrupt())) == [SignalGroup(2)]
    assert [*codec.request(Cancel()), *codec.request(Close())] == []
    for action in (Send("more"), Steer("left"), ApproveAction("0"), DenyAction("0"), AnswerAction("0", "yes")):
        [refused] = codec.request(action)
        assert isinstance(refused, Refuse)
        assert refused.code == "STDIN_NOT_AVAILABLE"


def test_the_prompt_on_stdin_is_ours() -> None:
    assert without_ignored(receive(new_codec(EXEC), b"hello", source=Source.STDIN)) == []
