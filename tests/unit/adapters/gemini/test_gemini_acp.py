"""`gemini --acp`: the conversation, and one test per trap."""

from collections.abc import Iterable
from typing import Any

import pytest
from gemini_recordings import ACP, emitted, new_codec
from gemini_transcript import SESSION, GeminiConversation, chose, prompt
from tests.unit.adapters.codec_conversation import receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, Cancel, Close, DenyAction, Interrupt, Refuse, Send, Source
from agent_mux.sdk.options import McpServer

SIGTERM = 15
CALL = "run_shell_command__run_shell_command_1795293680057_0"
REPORT = "Output: out\nExit Code: 3\nProcess Group PGID: 7"


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def of(steps: Iterable[Any], *kinds: type) -> list[Any]:
    return [step for step in steps if isinstance(step, kinds)]


# -- the conversation


def test_it_begins_with_a_handshake_then_a_session_then_the_prompt() -> None:
    talk = GeminiConversation()
    [hello] = talk.sent()
    assert hello["method"] == "initialize"
    assert hello["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False,
    }  # fmt: skip
    talk.greeted()
    [new] = talk.sent()
    assert (new["method"], new["params"]) == ("session/new", {"cwd": "/home/dev/project", "mcpServers": []})
    talk.opened()
    assert talk.sent() == [prompt(3, "hello")]


def test_mode_and_model_are_on_the_command_line_and_not_asked_for() -> None:
    talk = GeminiConversation(model="gemini-x", thinking_effort="high").opened()
    assert {line["method"] for line in talk.sent()} == {"initialize", "session/new", "session/prompt"}


def test_a_run_that_is_not_interactive_ends_by_itself_with_a_signal() -> None:
    talk = GeminiConversation().running()
    talk.text("Hi.")
    steps = talk.ends(3)
    assert of(steps, facts.TurnDone, facts.Usage) == [
        facts.Usage(1, 2, of_one_call=False),
        facts.TurnDone(stop_reason="end"),
    ]
    assert talk.sent() == ["EOF", SIGTERM]  # with an MCP server it does not leave when its input ends


def test_prompts_come_one_after_the_other() -> None:
    talk = GeminiConversation(interactive=True).running()
    talk.request(Send("second"))
    assert talk.sent() == []
    talk.text("Hi.")
    talk.ends(3)
    assert talk.sent() == [prompt(4, "second")]
    talk.request(Close())
    assert talk.sent() == []
    talk.text("Hi.")
    talk.ends(4)
    assert talk.sent() == ["EOF", SIGTERM]


def test_loaded_session_does_not_emit_its_history() -> None:
    talk = GeminiConversation(session_id=SESSION).greeted()
    assert talk.sent()[-1]["method"] == "session/load"
    talk.text("<session_context>", "user_message_chunk")
    talk.receive_response(2, {"models": {"currentModelId": "gemini-2.5-pro"}})
    history = [*talk.text("remember 42", "user_message_chunk"), *talk.text("first reply")]
    assert of(history, facts.TextDelta, facts.WholeText) == []
    assert talk.sent() == []  # the rest of the history comes after the answer
    talk.receive_update("available_commands_update", availableCommands=[])
    assert talk.sent() == [prompt(3, "hello")]
    assert of(talk.steps, facts.SessionKnown)[-1].resumed


def test_lost_session_failure_states_the_cause() -> None:
    talk = GeminiConversation(session_id=SESSION).greeted()
    details = {"details": "No previous sessions found for this project."}
    [failed] = of(talk.receive_error(2, -32603, "Internal error", data=details), facts.TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"
    assert "within the minute" in failed.failure.message
    assert talk.sent()[-2:] == ["EOF", SIGTERM]


def test_servers_of_the_run_are_passed_with_session_new() -> None:
    talk = GeminiConversation(mcp_servers=(McpServer("echo", command="echo", args=("-n",), env={"A": "b"}),)).greeted()
    [server] = talk.sent()[-1]["params"]["mcpServers"]
    assert server == {"name": "echo", "command": "echo", "args": ["-n"], "env": [{"name": "A", "value": "b"}]}


@pytest.mark.parametrize(("mode", "text"), [("append", "Be brief.\n\nhello"), ("replace", "hello")])
def test_a_system_prompt_is_put_before_the_first_prompt_unless_it_has_a_file(mode: str, text: str) -> None:
    talk = GeminiConversation(system_prompt="Be brief.", system_prompt_mode=mode).opened()
    assert talk.sent()[-1] == prompt(3, text)


# -- permissions


def test_call_is_announced_by_its_permission_request() -> None:
    talk = GeminiConversation().running()
    steps = talk.receive_request(
        0, CALL, "touch zz", kind="execute", content=content("[current working directory /home/dev/project]")
    )
    [ready], [asked] = of(steps, facts.ToolReady), of(steps, facts.ApprovalRequested)
    assert (ready.name, ready.input, ready.shell) == (
        "run_shell_command",
        {"command": "touch zz"},
        facts.ShellInvocation("touch zz"),
    )
    assert (asked.request_id, asked.detail, asked.tool_name, asked.call_id) == (
        "0",
        "touch zz",
        "run_shell_command",
        CALL,
    )


@pytest.mark.parametrize(("always", "option"), [(False, "proceed_once"), (True, "proceed_always")])
def test_it_is_allowed_once_or_for_the_session(always: bool, option: str) -> None:
    talk = GeminiConversation().running()
    talk.receive_request(0, CALL, "touch zz", kind="execute")
    steps = talk.request(ApproveAction("0", always=always))
    assert talk.sent() == [chose(0, option)]
    assert of(steps, facts.RequestResolved) == [facts.RequestResolved("0", granted=True)]


def test_refused_call_ends_without_an_update() -> None:
    talk = GeminiConversation().running()
    talk.receive_request(0, CALL, "touch zz", kind="execute")
    talk.request(DenyAction("0", "no"))
    assert talk.sent() == [chose(0, "cancel")]
    steps = talk.receive_request(1, CALL.replace("057_0", "099_0"), "touch yy", kind="execute")
    kinds = [type(step).__name__ for step in steps]
    assert kinds == ["ToolDone", "StepBegin", "ToolReady", "ApprovalRequested"]
    assert (steps[0].call_id, steps[0].error, steps[0].exit_code) == (CALL, "no", None)


def test_refused_call_ends_with_the_next_message() -> None:
    talk = GeminiConversation().running()
    talk.receive_request(0, CALL, "touch zz", kind="execute")
    talk.request(DenyAction("0", "no"))
    assert [type(step).__name__ for step in talk.text("Well.")] == ["ToolDone", "StepBegin", "TextDelta"]


def test_a_permission_is_answered_once() -> None:
    talk = GeminiConversation().running()
    talk.receive_request(0, CALL, "touch zz", kind="execute")
    talk.request(ApproveAction("0"))
    [refused] = talk.request(DenyAction("0"))
    assert isinstance(refused, Refuse)
    [refused] = talk.request(AnswerAction("0", "x"))
    assert isinstance(refused, Refuse)


def test_a_turn_is_cancelled_with_the_permission_it_waits_for() -> None:
    # The CLI waits for the answer in any case.
    talk = GeminiConversation(interactive=True).running()
    talk.receive_request(0, CALL, "touch zz", kind="execute")
    talk.request(Interrupt())
    sent = talk.sent()
    assert {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "cancelled"}}} in sent
    assert any(line.get("method") == "session/cancel" for line in sent)
    assert of(talk.receive_response(3, {"stopReason": "cancelled"}), facts.TurnStopped) == [facts.TurnStopped()]
    talk.request(Send("again"))
    assert talk.sent() == [prompt(4, "again")]


def test_aborted_run_cancels_and_sends_no_more_prompts() -> None:
    talk = GeminiConversation(interactive=True).running()
    talk.request(Send("second"))
    talk.request(Cancel())
    assert [line["method"] for line in talk.sent()] == ["session/cancel"]
    talk.receive_response(3, {"stopReason": "cancelled"})
    assert talk.sent() == ["EOF", SIGTERM]


# -- updates


def test_thoughts_are_emitted_without_markup() -> None:
    talk = GeminiConversation().running()
    kind = "agent_thought_chunk"
    assert of(talk.text("****\nno subject", kind), facts.ThinkingDelta) == [facts.ThinkingDelta("no subject")]
    assert of(talk.text("**Plan**\nAct.", kind), facts.ThinkingDelta) == [facts.ThinkingDelta("\n\n**Plan**\nAct.")]
    talk.text("Hi.")
    assert of(talk.text("**Plan**\nAct.", kind), facts.ThinkingDelta) == [facts.ThinkingDelta("**Plan**\nAct.")]


def test_empty_thought_is_ignored() -> None:
    talk = GeminiConversation().running()
    assert of(talk.text("****\n", "agent_thought_chunk"), facts.ThinkingDelta) == []


def test_a_change_of_the_mode_is_no_message() -> None:
    [note] = emitted("acp_tools_yolo_mode", facts.Note)
    assert note.message == "gemini is in the mode yolo"
    assert "[MODE_UPDATE]" not in "".join(fact.text for fact in emitted("acp_tools_yolo_mode", facts.TextDelta))


def test_a_command_that_fails_is_a_failed_tool_though_it_is_completed() -> None:
    failed = [done for done in emitted("acp_live_tools", facts.ToolDone) if done.exit_code]
    assert [(done.error, done.stdout, done.exit_code) for done in failed] == [
        ("out\nerr", "out\nerr", 3), ("exit code 4", None, 4),
    ]  # fmt: skip


def test_a_command_that_was_cut_short_did_not_succeed() -> None:
    [done] = emitted("acp_cancel_tool", facts.ToolDone)
    assert (done.error, done.exit_code) == ("Command cancelled by user.", -1)


def test_without_debug_a_command_has_no_output() -> None:
    done = emitted("acp_parallel_tools", facts.ToolDone)[0]
    assert (done.output, done.stdout, done.exit_code, done.error) == ("", None, None, None)


def test_calls_of_one_answer_are_one_step_though_they_come_one_after_the_other() -> None:
    assert len(emitted("acp_parallel_tools", facts.StepBegin)) == 2


def test_edits_emit_patches_with_both_texts() -> None:
    effects = [effect for done in emitted("acp_live_tools", facts.ToolDone) for effect in done.files]
    place = "/home/dev/project/notes.txt"
    assert effects == [
        facts.FileWritten(place, 18, True),
        facts.FilePatched(place, "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+gamma\n thrée\n"),
        facts.FileRead(place),
        facts.FileWritten(place, 6, False),
    ]


def test_inputs_are_built_from_title_change_and_location() -> None:
    inputs = {ready.name: ready.input for ready in emitted("acp_tools_allow_once", facts.ToolReady)}
    place = "/home/dev/project/notes.txt"
    assert inputs == {
        "run_shell_command": {"command": "echo hi-acp"},
        "write_file": {"file_path": place, "content": "alpha\nbeta\n"},
        "replace": {"file_path": place, "title": "notes.txt: beta => gamma"},
        "read_file": {"file_path": place},
        "grep_search": {"title": "'needle'"},
    }


def test_a_call_whose_id_names_no_tool_goes_by_its_kind() -> None:
    talk = GeminiConversation().running()
    steps = talk.receive_update("tool_call", toolCallId="4711", title="Do it", kind="execute", status="in_progress")
    assert of(steps, facts.ToolReady)[0].name == "execute"


def test_tools_of_mcp_servers_are_known_by_their_titles() -> None:
    [echo, boom] = emitted("acp_live_mcp", facts.McpBegin)
    assert (echo.server, echo.tool, echo.input) == ("echo", "echo", {"text": "ping"})
    assert (boom.server, boom.tool, boom.input) == ("echo", "boom", {})
    good, bad = emitted("acp_live_mcp", facts.McpDone)
    assert (good.output, good.error) == ("echo: ping", None)
    assert "boom failed" in bad.error


def test_long_mcp_input_is_not_emitted() -> None:
    talk = GeminiConversation().running()
    steps = talk.receive_request(
        0, "mcp_s_t__mcp_s_t_1_0", "t (s MCP Server)", content=content("[Payload omitted due to length]")
    )
    assert of(steps, facts.McpBegin)[0].input == {"title": "t (s MCP Server)"}


def test_call_that_fails_before_it_starts_is_emitted_whole() -> None:
    bogus = emitted("acp_live_tools", facts.ToolDone)[-3]
    assert (bogus.name, bogus.error) == ("read_file", "params must have required property 'file_path'")


# -- endings


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("acp_error_400", "CONTEXT_EXCEEDED"),
        ("acp_error_401", "AUTH_ERROR"),
        ("acp_error_429", "RATE_LIMITED"),
        ("acp_error_drop", "NETWORK_ERROR"),
        ("acp_live_error_500", "AGENT_CRASH"),
        ("acp_live_empty", "EMPTY_ANSWER"),
        ("acp_no_auth", "AUTH_ERROR"),
        ("acp_load_session_check_load", "SESSION_NOT_FOUND"),
    ],
)
def test_failed_turn_states_the_reason(name: str, code: str) -> None:
    [failed] = emitted(name, facts.TurnFailed)
    assert failed.failure.code == code
    assert not failed.failure.message.startswith("{")
    assert (failed.failure.guidance != "") == (code == "AUTH_ERROR")


def test_the_end_of_a_turn_without_an_answer_is_a_failure() -> None:
    talk = GeminiConversation().running()
    [failed] = of(talk.ends(3), facts.TurnFailed)
    assert failed.failure.message.startswith("gemini ended the turn without an answer")


def test_too_many_tokens_means_that_the_context_is_full() -> None:
    talk = GeminiConversation().running()
    talk.text("Hi.")
    assert of(talk.ends(3, "max_tokens"), facts.TurnFailed)[0].failure.code == "CONTEXT_EXCEEDED"


def test_too_many_requests_are_a_limit_only_where_there_is_one() -> None:
    limited, free = GeminiConversation(max_turns=3).running(), GeminiConversation().running()
    limited.text("Hi.")
    free.text("Hi.")
    assert of(limited.ends(3, "max_turn_requests"), facts.TurnLimitHit) == [facts.TurnLimitHit(3)]
    assert of(free.ends(3, "max_turn_requests"), facts.TurnFailed)[0].failure.code == "AGENT_CRASH"


def test_tokens_are_those_of_the_turn() -> None:
    assert emitted("acp_load_session", facts.Usage) == [facts.Usage(120, 24, of_one_call=False)] * 2


def test_standard_error_is_read_like_that_of_a_one_shot_run() -> None:
    line = b'[MESSAGE_BUS] publish: {"type":"tool-calls-update"}'
    [silent] = receive(new_codec(ACP), line, source=Source.STDERR)
    assert isinstance(silent, facts.Ignored)
