"""`--output-format stream-json`, by its recordings: one test per trap."""

from typing import Any

import pytest
from gemini_recordings import STREAM_JSON, codec_for, emitted, native, new_codec, recording
from tests.unit.adapters.codec_conversation import receive

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

INIT = {"type": "init", "session_id": "s", "model": "m"}
PROMPT = {"type": "message", "role": "user", "content": "do it"}
SAID = {"type": "message", "role": "assistant", "content": "Hi.", "delta": True}


def use(tool: str, call_id: str = "c", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "tool_name": tool, "tool_id": call_id, "parameters": given}


def ended(call_id: str = "c", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_id": call_id, "status": "success", **fields}


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "status": "success", "stats": {}, **fields}


def closing(*lines: Any, **context: Any) -> facts.Fact:
    steps = receive(new_codec(STREAM_JSON, **context), *lines)
    assert isinstance(steps[-1], facts.Fact)
    return steps[-1]


# -- session, steps, text


def test_the_session_is_known_from_the_first_line() -> None:
    first = native("text_model")[0]
    assert emitted("text_model")[0] == facts.SessionKnown(first["session_id"], model="gemini-2.5-pro")


def test_a_session_that_was_asked_for_is_continued() -> None:
    [known] = emitted("resume_2", facts.SessionKnown, session_id="11111111-2222-4333-8444-555555555555")
    assert known.resumed


def test_text_comes_in_fragments_and_is_closed_before_the_turn_is() -> None:
    kinds = [type(fact).__name__ for fact in emitted("text")]
    assert kinds == [
        "SessionKnown", "TurnBegin", "StepBegin", "TextDelta", "TextDelta", "TextDelta", "TextEnd", "Usage", "TurnDone",
    ]  # fmt: skip


def test_line_separators_inside_of_text_end_no_line() -> None:
    text_line = "".join(fact.text for fact in emitted("unicode", facts.TextDelta))
    assert "\u2028" in text_line
    assert "\u2029" in text_line


def test_thoughts_are_never_emitted() -> None:
    assert emitted("thinking", facts.WholeThinking, facts.ThinkingDelta) == []


def test_a_step_is_a_model_call() -> None:
    assert len(emitted("tool_error", facts.StepBegin)) == len(recording("tool_error").script["steps"])
    assert len(emitted("live_tools", facts.StepBegin)) == len(recording("live_tools").script["steps"])


def test_calls_of_one_answer_are_one_step() -> None:
    steps = receive(new_codec(STREAM_JSON), PROMPT, use("glob", "a"), use("glob", "b"), ended("a"), ended("b"), SAID)
    assert len([step for step in steps if isinstance(step, facts.StepBegin)]) == 2


# -- tools


def test_a_command_that_fails_is_a_failed_tool_though_the_cli_calls_it_a_success() -> None:
    good, bad, silent = [done for done in emitted("live_tools", facts.ToolDone) if done.name == "run_shell_command"]
    assert (good.output, good.stdout, good.exit_code, good.error) == ("out\nerr", "out\nerr", 0, None)
    assert (bad.error, bad.stdout, bad.exit_code) == ("out\nerr", "out\nerr", 3)
    assert (silent.error, silent.stdout, silent.exit_code) == ("exit code 4", "", 4)


def test_without_debug_only_a_silent_failure_can_be_seen() -> None:
    codec = new_codec(STREAM_JSON)
    steps = receive(codec, use("run_shell_command", command="false"), ended(output="Command exited with code: 1"))
    assert steps[-1] == facts.ToolDone("c", "", "exit code 1", stdout="", exit_code=1, name="run_shell_command")
    [told_nothing] = [d for d in emitted("tool_error", facts.ToolDone) if d.name == "run_shell_command"]
    assert (told_nothing.output, told_nothing.error, told_nothing.exit_code) == ("out", None, None)


def test_a_command_that_a_signal_ended_has_no_exit_code_of_its_own() -> None:
    [done] = [d for d in emitted("live_shell", facts.ToolDone) if d.exit_code is not None]
    assert (done.exit_code, done.error) == (-1, "ended by signal 9")


def test_a_background_command_is_no_shell() -> None:
    background, foreground = [r for r in emitted("live_shell", facts.ToolReady) if r.name == "run_shell_command"]
    assert background.shell is None
    assert foreground.shell == facts.ShellInvocation("kill -9 $$")


def test_command_runs_in_the_given_directory() -> None:
    [ready] = receive(new_codec(STREAM_JSON), use("run_shell_command", command="ls", dir_path="sub"))
    assert ready.shell == facts.ShellInvocation("ls", "/home/dev/project/sub")


def test_command_starts_at_once_only_when_permitted() -> None:
    line = use("run_shell_command", command="ls")
    [unasked], [asked] = (
        receive(new_codec(STREAM_JSON, approval_mode="yolo"), line),
        receive(new_codec(STREAM_JSON), line),
    )
    assert unasked.permitted
    assert not asked.permitted


def test_a_tool_that_is_not_there_is_an_error() -> None:
    [done] = emitted("default_mode_shell", facts.ToolDone)
    assert done.error.startswith('Tool "run_shell_command" not found')
    assert done.exit_code is None


def test_error_is_the_one_the_model_was_shown() -> None:
    missing = emitted("tool_error", facts.ToolDone)[0]
    assert missing.error == "File not found: /home/dev/project/does-not-exist.txt"


def test_files_are_known_from_the_inputs() -> None:
    effects = [effect for done in emitted("live_tools", facts.ToolDone) for effect in done.files]
    created, patched, read = effects
    assert created == facts.FileWritten("/home/dev/project/notes.txt", len("alpha\nbeta\nthrée\n".encode()), True)
    assert patched.diff == "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,1 +1,1 @@\n-beta\n+gamma\n"
    assert read == facts.FileRead("/home/dev/project/notes.txt")


def test_a_file_is_new_only_where_it_was_missing_before() -> None:
    codec = new_codec(STREAM_JSON)
    steps = receive(codec, use("write_file", file_path="/x", content="é"), ended())
    assert steps[-1].files == (facts.FileWritten("/x", 2, False),)


def test_an_edit_of_nothing_makes_a_file() -> None:
    steps = receive(new_codec(STREAM_JSON), use("replace", file_path="a", old_string="", new_string="x\n"), ended())
    assert steps[-1].files == (facts.FileWritten("/home/dev/project/a", 2, True),)


def test_a_failed_edit_changes_no_file() -> None:
    assert [done.files for done in emitted("tool_error", facts.ToolDone) if done.name == "replace"] == [()]


def test_tools_of_mcp_servers_are_apart() -> None:
    begun = emitted("mcp", facts.McpBegin)
    assert [(call.server, call.tool) for call in begun] == [("fakemcp", "echo_upper"), ("fakemcp", "fail")]
    good, bad = emitted("mcp", facts.McpDone)
    assert (good.output, good.error) == ("SHOUT", None)
    assert "reported tool error" in bad.error
    assert emitted("mcp", facts.ToolReady, facts.ToolDone) == []


def test_a_sub_agent_is_no_tool() -> None:
    [begun], [done] = emitted("live_subagent", facts.SubagentBegin), emitted("live_subagent", facts.SubagentDone)
    assert (begun.name, begun.prompt) == ("generalist", "SUBTASK count the files")
    assert (done.summary, done.error) == ("", None)  # its report is not printed
    assert emitted("live_subagent", facts.ToolReady) == []


def test_a_skill_is_invoked_once_it_is_loaded() -> None:
    steps = receive(new_codec(STREAM_JSON), use("activate_skill", name="pdf"), ended(output="ok"))
    assert steps[-1] == facts.SkillInvoked("pdf")


def test_result_of_an_unknown_call_is_emitted() -> None:
    assert receive(new_codec(STREAM_JSON), ended("x", output="o")) == [facts.ToolDone("x", "o")]


# -- usage and endings


def test_cached_tokens_are_apart_from_the_input_and_thoughts_part_of_the_output() -> None:
    # 240 in, 20 of them cached; 48 out; 304 together: 16 are neither, but come out.
    assert emitted("text", facts.Usage) == [facts.Usage(220, 64, 16, 20, of_one_call=False)]


def test_usage_without_calls_is_not_emitted() -> None:
    assert emitted("error_400", facts.Usage) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("error_400", "AUTH_ERROR"),
        ("error_403", "AUTH_ERROR"),
        ("error_429_daily", "RATE_LIMITED"),
        ("error_drop_then_ok", "NETWORK_ERROR"),
        ("invalid_model_404", "AGENT_CRASH"),
        ("live_context_exceeded", "CONTEXT_EXCEEDED"),
        ("live_error_500", "AGENT_CRASH"),
        ("finish_safety", "AGENT_CRASH"),
        ("no_auth", "AUTH_ERROR"),
        ("no_auth_json", "AUTH_ERROR"),
        ("error_400_json", "AUTH_ERROR"),
        ("error_401_json", "AUTH_ERROR"),
        ("error_403_json", "AUTH_ERROR"),
        ("untrusted", "CONFIG_ERROR"),
        ("resume_badid", "SESSION_NOT_FOUND"),
        ("acp_load_session_gap_resume", "SESSION_NOT_FOUND"),
    ],
)
def test_failed_run_states_the_reason(name: str, code: str) -> None:
    [failed] = emitted(name, facts.TurnFailed)
    assert failed.failure.code == code
    assert failed.failure.message
    assert (failed.failure.guidance != "") == (code == "AUTH_ERROR")


def test_the_message_is_that_of_the_api_without_its_wrapping() -> None:
    assert emitted("error_403", facts.TurnFailed)[0].failure.message == "Permission denied"
    assert emitted("error_drop_then_ok", facts.TurnFailed)[0].failure.message == "terminated"
    assert emitted("error_401_json", facts.TurnFailed)[0].failure.message.startswith("Request had invalid auth")


def test_a_blocked_answer_is_an_error_without_an_error() -> None:
    [failed] = emitted("finish_safety", facts.TurnFailed)
    assert failed.failure.message == "The model response was blocked due to safety settings."


def test_context_error_has_token_counts() -> None:
    failure = emitted("live_context_exceeded", facts.TurnFailed)[0].failure
    assert (failure.used_tokens, failure.max_tokens) == (1_200_000, 1_048_576)


def test_turn_limit_is_emitted() -> None:
    assert emitted("max_turns", facts.TurnLimitHit, max_turns=2) == [facts.TurnLimitHit(2)]
    assert emitted("max_turns", facts.TurnDone, facts.TurnFailed) == []


def test_detected_loop_is_a_failure() -> None:
    [failed] = emitted("sigint_stream", facts.TurnFailed)
    assert failed.failure.message == "Loop detected, stopping execution"


def test_the_turn_limit_of_the_cli_itself_is_no_success() -> None:
    text_line = {"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}
    assert closing(text_line, result()) == facts.TurnLimitHit()


def test_a_warning_does_not_fail_the_turn() -> None:
    warned = {"type": "error", "severity": "warning", "message": "Agent execution blocked: by a hook"}
    steps = receive(new_codec(STREAM_JSON), PROMPT, warned, SAID, result())
    assert facts.Note("Agent execution blocked: by a hook", "warn") in steps
    assert steps[-1] == facts.TurnDone()


def test_an_end_without_any_answer_is_a_failure() -> None:
    assert isinstance(closing(PROMPT, result()), facts.TurnFailed)


def test_a_cancelled_turn_is_stopped() -> None:
    error = {"type": "FatalCancellationError", "message": "Operation cancelled."}
    assert closing(result(status="error", error=error)) == facts.TurnStopped()


def test_error_without_message_is_a_failure() -> None:
    assert isinstance(closing(result(status="error")), facts.TurnFailed)


@pytest.mark.parametrize("name", ["big_output", "sigint_norelaunch", "sigterm_norelaunch", "sigint_pg_stream"])
def test_exit_0_without_a_closing_line_is_no_end_of_a_turn(name: str) -> None:
    assert recording(name).exit.code == 0
    assert emitted(name, facts.TurnDone, facts.TurnFailed, facts.TurnStopped) == []


def test_exit_code_is_ignored_after_a_closing_line() -> None:
    assert len(emitted("error_400", facts.TurnFailed)) == 1


@pytest.mark.parametrize("exit_", [Exit(code=1), Exit(code=42), Exit(signal=9), Exit()])
def test_unknown_exit_code_emits_no_failure(exit_: Exit) -> None:
    assert list(new_codec(STREAM_JSON).finish(exit_)) == []


# -- requests


def test_one_shot_run_refuses_prompts() -> None:
    codec = codec_for("text")
    for action in (Send("more"), Steer("no"), ApproveAction("1"), DenyAction("1"), AnswerAction("1", "x")):
        [refused] = codec.request(action)
        assert isinstance(refused, Refuse)


def test_one_shot_run_is_interrupted_by_a_signal() -> None:
    codec = codec_for("text")
    assert list(codec.request(Interrupt())) == [SignalGroup(2)]
    assert [*codec.request(Cancel()), *codec.request(Close())] == []


def test_start_writes_nothing() -> None:
    assert list(new_codec(STREAM_JSON).start()) == []
    assert receive(new_codec(STREAM_JSON), b"do it", source=Source.STDIN) == [facts.Ignored("stdin", "our own prompt")]


@pytest.mark.parametrize(
    "message",
    [
        "[API Error: You exceeded your current quota, please check your plan and billing details.]",
        "[API Error: slow down]\nPlease wait and try again later. To increase your limits, request a quota increase",
        "[API Error: 429 Too Many Requests]",
    ],
)
def test_exhausted_quota_is_a_rate_limit_in_any_words(message: str) -> None:
    failed = closing(result(status="error", error={"type": "unknown", "message": message}))
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "RATE_LIMITED"


@pytest.mark.parametrize(("exit_code", "code"), [(173, "RATE_LIMITED"), (145, "AUTH_ERROR")])
def test_status_in_the_exit_code_explains_a_failure_without_known_words(exit_code: int, code: str) -> None:
    codec = new_codec(STREAM_JSON)
    receive(codec, result(status="error", error={"type": "unknown", "message": "[API Error: no more today]"}))
    [closed] = codec.finish(Exit(code=exit_code))
    assert isinstance(closed, facts.RunClosed)
    assert isinstance(closed.outcome, facts.TurnFailed)
    assert (closed.outcome.failure.code, closed.outcome.failure.message) == (code, "no more today")


def test_exit_code_does_not_replace_a_known_reason() -> None:
    codec = new_codec(STREAM_JSON)
    receive(codec, result(status="error", error={"type": "unknown", "message": "API key not valid"}))
    assert codec.finish(Exit(code=173)) == ()
