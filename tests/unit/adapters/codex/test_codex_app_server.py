"""`codex app-server`, with its recordings: one test for each peculiarity."""

import pytest
from codex_recordings import APP_SERVER, OWN_THREAD, native, new_codec, recorded_facts
from tests.unit.adapters.codec_conversation import receive, without_ignored

from agent_mux.events import QuotaWindow
from agent_mux.sdk import facts
from agent_mux.sdk.codec import Exit, Source
from agent_mux_adapters.codex.rollouts import RolloutReader

DELTA = "item/agentMessage/delta"


def note(method: str, **params: object) -> dict[str, object]:
    return {"method": method, "params": {"threadId": OWN_THREAD, "turnId": "t", **params}}


def item(method: str, **fields: object) -> dict[str, object]:
    return note(f"item/{method}", item=fields)


def delta(item_id: str, text: str, method: str = DELTA, **params: object) -> dict[str, object]:
    return note(method, itemId=item_id, delta=text, **params)


def in_turn() -> object:
    """Return a codec that observes a running turn."""
    codec = new_codec(APP_SERVER)
    receive(codec, note("turn/started", turn={"id": "t", "status": "inProgress"}))
    return codec


# -- sessions


def test_the_session_and_its_model_are_known_from_the_answer_to_thread_start() -> None:
    [known] = recorded_facts("as_exec", facts.SessionKnown)
    thread = native("as_exec", id=2)[0]["result"]["thread"]
    assert known == facts.SessionKnown(thread["id"], model="gpt-5.5")


@pytest.mark.parametrize("with_stdin", [True, False])
def test_resumed_and_forked_sessions_are_marked(with_stdin: bool) -> None:
    [resumed] = recorded_facts("as_resume", facts.SessionKnown, with_stdin=with_stdin)
    assert (resumed.resumed, resumed.forked_from, resumed.prior_turns) == (True, None, 1)
    [forked] = recorded_facts("as_fork", facts.SessionKnown, with_stdin=with_stdin)
    assert (forked.resumed, forked.prior_turns) == (False, 2)
    assert forked.forked_from == resumed.session_id


def test_a_missing_session_fails_with_session_not_found() -> None:
    [failed] = recorded_facts("as_resume_missing", facts.TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"


def test_agent_documents_are_emitted_before_the_first_turn() -> None:
    kinds = recorded_facts("as_agents_md", facts.AgentdocRead, facts.TurnBegin)
    assert kinds == [
        facts.AgentdocRead("/home/dev/.codex/AGENTS.md"),
        facts.AgentdocRead("/home/dev/project/AGENTS.md"),
        facts.TurnBegin(),
    ]


def test_results_of_other_requests_are_ignored() -> None:
    assert len(recorded_facts("as_list_read", facts.SessionKnown)) == 1
    assert recorded_facts("as_list_read", facts.Unknown, with_stdin=False) == []


# -- text and thoughts


def test_text_and_thoughts_stream_and_the_completed_items_repeat_nothing() -> None:
    kinds = recorded_facts("as_plain", facts.ThinkingDelta, facts.TextDelta, facts.WholeThinking, facts.WholeText)
    assert "".join(fact.text for fact in kinds if isinstance(fact, facts.ThinkingDelta)) == "**Think** first."
    assert "".join(fact.text for fact in kinds if isinstance(fact, facts.TextDelta)) == "Hello from app-server."
    assert {type(fact) for fact in kinds} == {facts.ThinkingDelta, facts.TextDelta}


def test_a_completed_message_adds_what_its_fragments_missed() -> None:
    codec = in_turn()
    steps = receive(codec, delta("m", "Hel"), item("completed", type="agentMessage", id="m", text="Hello"))
    assert without_ignored(steps) == [facts.StepBegin(), facts.TextDelta("Hel"), facts.TextDelta("lo")]
    assert list(codec.finish(Exit(code=0))) == [facts.TextEnd()]


def test_a_message_without_fragments_is_emitted_whole() -> None:
    codec = in_turn()
    steps = receive(codec, item("completed", type="agentMessage", id="m", text="Hello"))
    assert without_ignored(steps) == [facts.StepBegin()]
    assert list(codec.finish(Exit(code=0))) == [facts.WholeText("Hello")]


def test_a_message_that_contradicts_its_fragments_is_not_repeated() -> None:
    steps = receive(in_turn(), delta("m", "ello"), item("completed", type="agentMessage", id="m", text="Hello"))
    assert [type(step) for step in without_ignored(steps)] == [
        facts.StepBegin,
        facts.TextDelta,
        facts.TextEnd,
        facts.Note,
    ]


def test_the_parts_of_a_thought_are_separated_by_blank_lines() -> None:
    method = "item/reasoning/summaryTextDelta"
    steps = receive(
        in_turn(),
        delta("r", "one", method, summaryIndex=0),
        delta("r", "two", method, summaryIndex=1),
        item("completed", type="reasoning", id="r", summary=["one", "two", "three"], content=[]),
    )
    thoughts = [step.text for step in steps if isinstance(step, facts.ThinkingDelta)]
    assert "".join(thoughts) == "one\n\ntwo\n\nthree"


def test_a_raw_thought_beside_its_summary_is_ignored() -> None:
    steps = receive(
        in_turn(),
        delta("r", "short", "item/reasoning/summaryTextDelta", summaryIndex=0),
        delta("r", "very long", "item/reasoning/textDelta", contentIndex=0),
        item("completed", type="reasoning", id="r", summary=["short"], content=["very long"]),
    )
    assert [step.text for step in steps if isinstance(step, facts.ThinkingDelta)] == ["short"]


def test_a_raw_thought_without_a_summary_is_emitted() -> None:
    steps = receive(
        in_turn(),
        delta("r", "raw", "item/reasoning/textDelta", contentIndex=0),
        item("completed", type="reasoning", id="r", summary=[], content=["raw"]),
    )
    assert without_ignored(steps) == [facts.StepBegin(), facts.ThinkingDelta("raw"), facts.ThinkingEnd()]


def test_a_message_cut_off_by_steering_is_closed() -> None:
    kinds = recorded_facts("as_steer", facts.TextDelta, facts.TextEnd, facts.WholeText, facts.StepBegin)
    assert kinds[:5] == [
        facts.StepBegin(),
        facts.TextDelta("first "),
        facts.TextEnd(),
        facts.StepBegin(),
        facts.TextDelta("afte"),
    ]


def test_a_dropped_stream_is_a_retry_and_the_new_attempt_a_new_message() -> None:
    texts = recorded_facts("as_err_drop", facts.TextDelta, facts.Retrying, facts.TextEnd)
    kinds = [type(fact) for fact in texts]
    assert kinds.index(facts.Retrying) == 3
    assert "".join(fact.text for fact in texts[4:] if isinstance(fact, facts.TextDelta)) == "second attempt ok"


# -- commands and patches


def test_a_commands_output_is_the_completed_items_because_fragments_miss_the_beginning() -> None:
    fragments = [line["params"]["delta"] for line in native("as_exec", method="item/commandExecution/outputDelta")]
    assert "".join(fragments) == "line 2\nline 3\n"
    assert recorded_facts("as_exec", facts.ToolOutput) == []
    first, second = recorded_facts("as_exec", facts.ToolDone)
    assert (first.stdout, first.exit_code, first.duration_ms) == ("line 1\nline 2\nline 3\n", 0, 817)
    assert (second.error, second.exit_code, second.stdout) == ("exit code 3", 3, None)


def test_output_fragments_are_emitted_when_the_command_never_completes() -> None:
    kinds = [type(fact) for fact in recorded_facts("as_interrupt_tool", facts.ToolOutput, facts.TurnStopped)]
    assert kinds == [facts.ToolOutput, facts.TurnStopped]
    assert recorded_facts("as_interrupt_tool", facts.ToolOutput)[0].text == "tick 2\n"


def test_output_fragments_are_emitted_when_the_process_dies() -> None:
    codec = in_turn()
    command = {"type": "commandExecution", "id": "c", "command": "make", "cwd": "/", "status": "inProgress"}
    receive(codec, item("started", **command), delta("c", "half", "item/commandExecution/outputDelta"))
    assert list(codec.finish(Exit(signal=9))) == [facts.ToolOutput("c", "half")]


def test_the_kept_output_of_a_running_command_is_bounded() -> None:
    codec = in_turn()
    command = {"type": "commandExecution", "id": "c", "command": "yes", "cwd": "/", "status": "inProgress"}
    receive(codec, item("started", **command))
    for _ in range(40):
        receive(codec, delta("c", "y" * 100_000, "item/commandExecution/outputDelta"))
    [output] = codec.finish(Exit(signal=9))
    assert len(output.text) <= (1 << 20) + 100_000


def test_a_command_that_outlives_its_turn_does_not_end_in_the_next_one() -> None:
    ready = recorded_facts("as_command_outlives_turn", facts.ToolReady)
    done = recorded_facts("as_command_outlives_turn", facts.ToolDone)
    assert [call.call_id for call in done] == [ready[1].call_id]
    assert recorded_facts("as_command_outlives_turn", facts.ToolOutput) == []


def test_typing_into_a_terminal_is_no_call_of_its_own() -> None:
    [done] = recorded_facts("as_terminal_input", facts.ToolDone)
    assert done.stdout == "hey\r\ngot hey\r\n"


def test_a_declined_command_is_a_failed_tool_that_never_ran() -> None:
    [done] = recorded_facts("as_approval_decline", facts.ToolDone)
    assert (done.error, done.exit_code, done.stdout) == ("the command was declined", None, None)


def test_a_patch_has_sizes_and_real_diffs() -> None:
    added, updated = recorded_facts("as_file_change_auto", facts.ToolDone)
    path = "/home/dev/project/a.txt"
    assert added.files == (facts.FileWritten(path, 4, created=True),)
    assert updated.files == (facts.FilePatched(path, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n"),)


def test_a_moved_file_is_deleted_there_and_patched_here() -> None:
    files = recorded_facts("as_patch_overwrite", facts.ToolDone)[2].files
    assert files == (
        facts.FileDeleted("/home/dev/project/a.txt"),
        facts.FileDeleted("/home/dev/project/sub/b.txt"),
        facts.FilePatched("/home/dev/project/c.txt", "--- a/sub/b.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-b\n+c\n"),
    )


def test_adding_a_file_that_is_there_overwrites_it() -> None:
    # Codex reports "add" for both. The second one is an overwrite, because this run created the file.
    assert recorded_facts("as_patch_overwrite", facts.ToolDone)[3].files == (
        facts.FileWritten("/home/dev/project/c.txt", 12, created=False),
    )


def test_a_declined_patch_changes_nothing() -> None:
    [done] = recorded_facts("as_file_change_decline", facts.ToolDone)
    assert (done.error, done.files) == ("the patch was declined", ())


def test_parallel_commands_keep_their_own_results() -> None:
    done = {call.call_id: call.stdout for call in recorded_facts("as_exec_parallel", facts.ToolDone)}
    assert sorted(done.values()) == ["one\n", "two\n"]
    assert len(recorded_facts("as_exec_parallel", facts.StepBegin)) == 2


def test_each_plan_is_one_finished_call() -> None:
    [ready], [done] = recorded_facts("as_plan", facts.ToolReady), recorded_facts("as_plan", facts.ToolDone)
    steps = [{"step": "A", "status": "inProgress"}, {"step": "B", "status": "pending"}]
    assert (ready.name, ready.input) == ("update_plan", {"explanation": "why", "plan": steps})
    assert done.call_id == ready.call_id


# -- tokens and steps


def test_repeated_token_counts_are_counted_once() -> None:
    # Around a compaction Codex repeats `last`, once with only the size of the context.
    assert len(native("as_compact_auto", method="thread/tokenUsage/updated")) == 5
    usage = recorded_facts("as_compact_auto", facts.Usage)
    assert [fact.output_tokens for fact in usage] == [1000, 20, 20]
    [total] = [fact.cost.output_tokens for fact in recorded_facts("as_compact_auto", facts.RunCost)]
    assert total == 1040


@pytest.mark.parametrize("name", ["as_resume", "as_fork", "as_resume_without_history", "as_fork_without_history"])
def test_tokens_of_earlier_runs_are_not_counted(name: str) -> None:
    assert [fact.input_tokens for fact in recorded_facts(name, facts.Usage)] == [70]
    assert [fact.cost.input_tokens for fact in recorded_facts(name, facts.RunCost)] == [70]


def test_a_step_is_a_model_call_and_its_tools() -> None:
    kinds = recorded_facts("as_exec", facts.StepBegin, facts.StepDone, facts.ToolReady, facts.ToolDone, facts.TextEnd)
    assert [type(fact).__name__ for fact in kinds] == [
        *("StepBegin", "ToolReady", "ToolDone", "StepDone"),
        *("StepBegin", "ToolReady", "ToolDone", "StepDone"),
        *("StepBegin", "TextEnd", "StepDone"),
    ]


def test_model_calls_that_show_nothing_are_steps_too() -> None:
    assert len(recorded_facts("as_unknown_tool", facts.StepBegin)) == len(
        recorded_facts("as_unknown_tool", facts.Usage)
    )


def test_a_filling_context_and_its_compaction_are_emitted() -> None:
    filling, compacted = recorded_facts("as_compact_auto", facts.ContextFilling, facts.ContextCompacted)
    assert filling == facts.ContextFilling(261_000, 258_400)
    assert compacted.tokens_saved > 200_000


# -- failures


def test_cut_answer_completes_with_its_stop_reason() -> None:
    [done] = recorded_facts("as_incomplete", facts.TurnDone, facts.TurnFailed)
    assert done.stop_reason == "length"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("as_err_401", "AUTH_ERROR"),
        ("as_err_429_usage", "RATE_LIMITED"),
        ("as_err_context", "CONTEXT_EXCEEDED"),
        ("as_err_500", "AGENT_CRASH"),
        ("as_err_404_model", "AGENT_CRASH"),
    ],
)
def test_failures_are_classified_by_their_name_and_status(name: str, code: str) -> None:
    [failed] = recorded_facts(name, facts.TurnFailed)
    assert failed.failure.code == code
    assert recorded_facts(name, facts.RecoverableError) == []


def test_an_exceeded_context_has_its_token_counts() -> None:
    [failed] = recorded_facts("as_err_context", facts.TurnFailed)
    assert (failed.failure.used_tokens, failed.failure.max_tokens) == (258_400, 258_400)


def test_a_retry_gives_its_reason_and_count() -> None:
    [retry] = recorded_facts("as_err_401", facts.Retrying)
    assert (retry.attempt, retry.max_attempts) == (1, 1)
    assert retry.reason.startswith("unexpected status 401")


def test_a_turn_after_a_failed_one_completes() -> None:
    kinds = [type(fact) for fact in recorded_facts("as_err_then_recover", facts.TurnFailed, facts.TurnDone)]
    assert kinds == [facts.TurnFailed, facts.TurnDone]


def test_an_error_without_a_closing_message_is_emitted_at_the_end() -> None:
    codec = in_turn()
    error = {"message": "no", "codexErrorInfo": "unauthorized"}
    receive(codec, note("error", error=error, willRetry=False))
    assert list(codec.finish(Exit(code=1))) == [facts.RecoverableError("AUTH_ERROR", "no")]


@pytest.mark.parametrize("name", ["as_sigint", "as_sigterm", "as_stdin_eof_midturn", "as_stdin_eof_tool"])
def test_a_process_that_exits_in_mid_turn_has_no_closing_message(name: str) -> None:
    assert recorded_facts(name, facts.TurnDone, facts.TurnStopped, facts.TurnFailed) == []


def test_an_interrupted_turn_is_stopped_and_the_next_one_completes() -> None:
    kinds = [type(fact) for fact in recorded_facts("as_interrupt_text", facts.TurnStopped, facts.TurnDone)]
    assert kinds == [facts.TurnStopped, facts.TurnDone]


# -- sub-agents, notices


def test_facts_of_a_sub_agent_are_nested_in_it() -> None:
    texts = recorded_facts("as_spawn_agent", facts.TextDelta)
    assert "".join(fact.text for fact in texts) == "all agents done"
    inside = [fact.fact for fact in recorded_facts("as_spawn_agent", facts.InSubagent)]
    assert "".join(fact.text for fact in inside if isinstance(fact, facts.TextDelta)) == "sub result: 3 files"
    assert len(recorded_facts("as_spawn_agent", facts.Usage)) == 3


def test_a_sub_agent_is_begun_before_anything_inside_it() -> None:
    # In this recording the sub-agent's thread precedes the item that introduces it.
    kinds = recorded_facts("as_agent_approval", facts.SubagentBegin, facts.InSubagent, facts.SubagentDone)
    assert isinstance(kinds[0], facts.SubagentBegin)
    assert kinds[0].prompt == "SUBTASK count the files"
    assert isinstance(kinds[-1], facts.SubagentDone)
    assert kinds[-1].summary == "sub result: done"
    assert {fact.subagent_id for fact in kinds} == {kinds[0].subagent_id}


@pytest.mark.parametrize("name", ["as_agents_v2", "as_agents_v2_wait"])
def test_the_newer_models_sub_agents_have_names(name: str) -> None:
    [begun], [done] = recorded_facts(name, facts.SubagentBegin), recorded_facts(name, facts.SubagentDone)
    assert begun.name == "/root/counter"
    assert (done.subagent_id, done.error) == (begun.subagent_id, None)
    assert done.cost.input_tokens == 70


def test_the_cost_of_the_run_includes_sub_agents() -> None:
    assert recorded_facts("as_spawn_agent", facts.RunCost)[-1].cost.input_tokens == 4 * 70
    assert recorded_facts("as_agents_v2", facts.RunCost)[-1].cost.input_tokens == 3 * 70
    assert recorded_facts("as_spawn_agent", facts.TurnDone)[-1].cost.input_tokens == 3 * 70


def test_an_mcp_server_that_does_not_start_is_noted() -> None:
    codec = in_turn()
    steps = receive(codec, note("mcpServer/startupStatus/updated", name="bad", status="failed", error="no such file"))
    assert steps == [facts.Note("the MCP server bad does not work: no such file", "warn")]


def test_warnings_are_notes() -> None:
    [warning] = [fact for fact in recorded_facts("as_request_user_input", facts.Note) if fact.level == "warn"]
    assert warning.message.startswith("Under-development features enabled")


def test_a_report_of_a_reached_limit_is_not_rate_limited() -> None:
    limits = {"limitId": "codex", "rateLimitReachedType": "rate_limit_reached"}
    steps = receive(in_turn(), note("account/rateLimits/updated", rateLimits=limits))
    assert without_ignored(steps) == []


def test_stderr_is_log_lines() -> None:
    lines = recorded_facts("as_exec", facts.LogLine)
    assert lines
    assert {line.source for line in lines} == {"stderr"}


@pytest.mark.parametrize(
    "line",
    [
        {"method": "weather/changed", "params": {}},
        {"method": "turn/started", "params": {"threadId": "x"}},
        {"method": "turn/completed", "params": {"threadId": "x", "turn": {"id": "t", "status": "evaporated"}}},
        {"method": "item/completed", "params": {"threadId": "x", "item": {"type": "hologram", "id": "h"}}},
        {"method": "item/agentMessage/delta", "params": {"threadId": "x", "itemId": "i", "delta": 7}},
        {"method": "thread/tokenUsage/updated", "params": {"threadId": "x"}},
        {"method": "error", "params": {"error": "no"}},
        {"method": "serverRequest/resolved", "params": []},
        {"id": 7},
        {"hello": 1},
        {},
    ],
)
def test_unknown_lines_are_emitted_whole_as_unknown(line: dict[str, object]) -> None:
    steps = receive(new_codec(APP_SERVER), line)
    assert [type(step) for step in steps] == [facts.Unknown]


def test_a_response_without_a_request_is_unknown_in_our_own_run() -> None:
    codec = new_codec(APP_SERVER, prompt="hi")
    list(codec.start())
    [fact] = receive(codec, {"id": 99, "result": {}})
    assert isinstance(fact, facts.Unknown)


def test_messages_of_other_clients_are_ignored() -> None:
    codec = new_codec(APP_SERVER)
    steps = receive(codec, {"id": 1, "method": "initialize"}, {"method": "initialized"}, source=Source.STDIN)
    assert [type(step) for step in steps] == [facts.Ignored] * 2
    assert isinstance(receive(codec, b"what", source=Source.STDIN)[0], facts.Note)


# -- the quota

FIVE_HOURS = {"usedPercent": 42, "windowDurationMins": 300, "resetsAt": 1_795_300_000}
WEEK = {"usedPercent": 100, "windowDurationMins": 10_080, "resetsAt": 1_795_900_000}


def test_windows_of_the_quota_are_reported() -> None:
    limits = {"limitId": "codex", "primary": FIVE_HOURS, "secondary": WEEK, "rateLimitReachedType": None}
    windows = (QuotaWindow("five_hour", 0.42, 1_795_300_000_000), QuotaWindow("seven_day", 1.0, 1_795_900_000_000))
    line = note("account/rateLimits/updated", rateLimits=limits)
    assert receive(in_turn(), line) == [facts.QuotaReported(windows)]


def test_quota_of_one_model_has_its_name_in_the_window() -> None:
    limits = {"limitId": "codex_spark", "limitName": "Spark", "primary": {"usedPercent": 1}}
    limits["individualLimit"] = {"limit": "10", "used": "2", "remainingPercent": 80, "resetsAt": 1_795_300_000}
    line = note("account/rateLimits/updated", rateLimits=limits)
    windows = (QuotaWindow("Spark primary", 0.01), QuotaWindow("Spark individual", 0.2, 1_795_300_000_000))
    assert receive(in_turn(), line) == [facts.QuotaReported(windows)]


def test_stored_rate_limits_are_reported() -> None:
    limits = {"limit_id": "codex", "primary": {"used_percent": 9.0, "window_minutes": 300, "resets_at": 1_795_300_000}}
    line = {"type": "event_msg", "timestamp": "2026-11-21T20:39:27Z", "payload": {"type": "token_count"}}
    reader = RolloutReader()
    assert list(reader.read(line)) == []
    (entry,) = reader.read({**line, "payload": {"type": "token_count", "info": None, "rate_limits": limits}})
    assert entry.at == 1_795_293_567_000
    assert entry.fact == facts.QuotaReported((QuotaWindow("five_hour", 0.09, 1_795_300_000_000),))
