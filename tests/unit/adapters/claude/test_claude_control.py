"""The two-way protocol: permissions, questions, prompts, interruptions, and when standard input is closed."""

from typing import Any

import msgspec
import pytest
from claude_recordings import TWO_WAY, native, new_codec, only, recorded_facts, recording
from tests.unit.adapters.codec_conversation import effects, receive, sent

from agent_mux.sdk import facts
from agent_mux.sdk.codec import (
    Accept,
    AnswerAction,
    ApproveAction,
    Cancel,
    Close,
    CloseStdin,
    DenyAction,
    Interrupt,
    Refuse,
    Send,
    SignalGroup,
    Source,
    Steer,
    WriteStdin,
)
from agent_mux_adapters.claude.codec import ClaudeCodec

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "session_id": "s", "usage": {}}
IDLE = {"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "s"}
TASK_TURN = {"origin": {"kind": "task-notification", "runId": "run-1"}}


def live(prompt: str = "go", **context: Any) -> ClaudeCodec:
    return new_codec(TWO_WAY, prompt=prompt, **context)


def started(prompt: str = "go", **context: Any) -> ClaudeCodec:
    codec = live(prompt, **context)
    codec.start()
    return codec


def replay(prompt: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": prompt}, "isReplay": True, "session_id": "s"}


def ask(request_id: str = "r1", tool: str = "Bash", **request: Any) -> dict[str, Any]:
    body = {"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "t1", **request}
    return {"type": "control_request", "request_id": request_id, "request": body}


def questions(*texts: str) -> dict[str, Any]:
    rows = [{"question": text, "header": "H", "options": [{"label": "A"}, {"label": "B"}]} for text in texts]
    return ask(tool="AskUserQuestion", input={"questions": rows})


# -- start


def test_the_handshake_comes_before_the_first_prompt() -> None:
    hello, prompt = sent(live("do it").start())
    assert hello["request"] == {"subtype": "initialize", "hooks": None}
    assert prompt["message"] == {"role": "user", "content": "do it"}


def test_an_interactive_run_may_begin_without_a_prompt() -> None:
    assert len(sent(live("", interactive=True).start())) == 1


@pytest.mark.parametrize("codec", [new_codec(TWO_WAY), new_codec(prompt="one-shot")], ids=["observing", "one-shot"])
def test_without_a_conversation_of_ours_nothing_is_written(codec: ClaudeCodec) -> None:
    assert codec.start() == ()
    assert effects(receive(codec, INIT, ask(), RESULT, IDLE)) == []


def test_prompt_is_always_one_line() -> None:
    write, accept = started(interactive=True).request(Send("a\nb\u2028c\u2029d\udce9"))
    assert accept == Accept("merged")
    assert isinstance(write, WriteStdin)
    assert write.data.count(b"\n") == 1
    assert not {"\u2028", "\u2029"} & set(write.data.decode())
    assert msgspec.json.decode(write.data)["message"]["content"] == "a\nb\u2028c\u2029d\ufffd\ufffd\ufffd"


# -- permissions


def test_a_tool_asks_for_permission_and_gets_it() -> None:
    codec = started()
    (asked,) = receive(codec, ask(input={"command": "rm -rf /"}))
    assert asked == facts.ApprovalRequested(
        "r1", "Run a shell command", "rm -rf /", "high", "Bash", "t1", "rm -rf /", (), {"command": "rm -rf /"}
    )
    steps = codec.request(ApproveAction("r1"))
    (answer,) = sent(steps)
    assert answer["response"]["request_id"] == "r1"
    assert answer["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "rm -rf /"}}
    assert only(steps, facts.RequestResolved) == [facts.RequestResolved("r1", granted=True)]


def test_a_denial_gives_its_reason_to_the_model() -> None:
    codec = started()
    receive(codec, ask(input={}))
    steps = codec.request(DenyAction("r1", "not today"))
    assert sent(steps)[0]["response"]["response"] == {"behavior": "deny", "message": "not today"}
    assert only(steps, facts.RequestResolved) == [facts.RequestResolved("r1", granted=False, reason="not today")]


def test_always_allows_the_narrowest_suggestion_and_for_this_session_only() -> None:
    codec = started()
    receive(codec, native("perm_allow", type="control_request")[0])
    request_id = native("perm_allow", type="control_request")[0]["request_id"]
    (answer,) = sent(codec.request(ApproveAction(request_id, always=True)))
    assert answer["response"]["response"]["updatedPermissions"] == [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch f *"}],
            "behavior": "allow",
            "destination": "session",
        }
    ]


def test_always_without_suggestions_allows_this_command_only() -> None:
    codec = started()
    receive(codec, ask(input={"command": "make"}))
    (answer,) = sent(codec.request(ApproveAction("r1", always=True)))
    assert answer["response"]["response"]["updatedPermissions"][0]["rules"] == [
        {"toolName": "Bash", "ruleContent": "make"}
    ]


def test_always_for_an_edit_allows_edits() -> None:
    codec = started()
    line = native("perm_write_allow", type="control_request")[0]
    receive(codec, line)
    (answer,) = sent(codec.request(ApproveAction(line["request_id"], always=True)))
    assert [p["type"] for p in answer["response"]["response"]["updatedPermissions"]] == ["setMode"]


def test_a_request_is_answered_once() -> None:
    codec = started()
    receive(codec, ask(input={}))
    codec.request(ApproveAction("r1"))
    assert [refusal.code for refusal in only(codec.request(DenyAction("r1")), Refuse)] == ["INTERACTION_NOT_FOUND"]


def test_our_answer_printed_again_settles_nothing_twice() -> None:
    codec = started()
    receive(codec, ask(input={}))
    receive_again = sent(codec.request(ApproveAction("r1")))
    assert not only(receive(codec, *receive_again), facts.RequestResolved)


def test_a_withdrawn_request_is_not_granted() -> None:
    (settled,) = only(recorded_facts("interrupt_during_permission"), facts.RequestResolved)
    assert (settled.granted, settled.reason) == (False, "withdrawn by the agent")


def withdrawn() -> ClaudeCodec:
    """Return a codec whose request for the call t1 was withdrawn, which states no decision."""
    codec = started()
    receive(codec, ask(input={"command": "make"}))
    steps = receive(codec, {"type": "control_cancel_request", "request_id": "r1"})
    assert not only(steps, facts.RequestResolved)
    return codec


def result_of(call_id: str, content: str, *, is_error: bool) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s"}


@pytest.mark.parametrize(
    ("content", "is_error", "granted", "reason"),
    [
        ("built", False, True, None),
        ("Exit code 2\nmake: *** No rule", True, True, None),
        ("<tool_use_error>File does not exist.</tool_use_error>", True, True, None),
        ("no builds today", True, False, "no builds today"),
        ("Permission denied by hook", True, False, "Permission denied by hook"),
    ],
)
def test_result_of_the_call_decides_a_request_that_a_hook_of_the_user_answered(
    content: str, is_error: bool, granted: bool, reason: str | None
) -> None:
    codec = withdrawn()
    assert not only(receive(codec, result_of("t2", "other", is_error=False)), facts.RequestResolved)
    steps = receive(codec, result_of("t1", content, is_error=is_error))
    assert steps[0] == facts.RequestResolved("r1", granted=granted, reason=reason)
    assert not only(receive(codec, RESULT), facts.RequestResolved)


def test_running_tool_shows_that_its_request_was_granted() -> None:
    steps = receive(withdrawn(), {"type": "tool_progress", "tool_use_id": "t1", "session_id": "s"})
    assert steps[0] == facts.RequestResolved("r1", granted=True)


def test_withdrawn_request_of_a_call_without_a_result_is_not_granted() -> None:
    assert receive(withdrawn(), RESULT)[0] == facts.RequestResolved(
        "r1", granted=False, reason="withdrawn by the agent"
    )


def test_withdrawn_request_takes_no_answer() -> None:
    (refusal,) = only(withdrawn().request(ApproveAction("r1")), Refuse)
    assert refusal.code == "INTERACTION_NOT_FOUND"


def test_leaving_plan_mode_is_an_approval() -> None:
    asked = only(recorded_facts("exit_plan_mode_stdio"), facts.ApprovalRequested)
    assert [fact.tool_name for fact in asked] == ["Write", "ExitPlanMode"]


def test_a_denial_without_asking_is_shown_as_one() -> None:
    (asked,) = only(recorded_facts("allowed_tools"), facts.ApprovalRequested)
    (settled,) = only(recorded_facts("allowed_tools"), facts.RequestResolved)
    assert (settled.request_id, settled.granted) == (asked.request_id, False)
    assert settled.reason


def test_a_permission_inside_a_sub_agent_is_asked_like_any_other() -> None:
    (asked,) = only(recorded_facts("perm_in_subagent"), facts.ApprovalRequested)
    assert asked.tool_name == "Bash"


# -- questions


def test_a_question_is_answered_with_its_text() -> None:
    codec = started()
    (asked,) = receive(codec, questions("Which?"))
    assert asked == facts.InputRequested("r1", "Which?", "H", ("A", "B"), "tool")
    steps = codec.request(AnswerAction("r1", "B"))
    assert sent(steps)[0]["response"]["response"]["updatedInput"]["answers"] == {"Which?": "B"}
    assert only(steps, facts.RequestResolved)[0].granted


def test_several_questions_are_answered_together_when_all_are_answered() -> None:
    codec = started()
    first, second = receive(codec, questions("Which?", "How many?"))
    early = codec.request(AnswerAction(first.request_id, "A"))
    assert effects(early) == []
    assert only(early, facts.RequestResolved)[0].request_id == first.request_id
    late = codec.request(AnswerAction(second.request_id, "2"))
    assert sent(late)[0]["response"]["response"]["updatedInput"]["answers"] == {"Which?": "A", "How many?": "2"}


def test_declining_one_of_several_questions_declines_them_all() -> None:
    codec = started()
    first, second = receive(codec, questions("Which?", "How many?"))
    codec.request(AnswerAction(first.request_id, "A"))
    steps = codec.request(DenyAction(second.request_id))
    assert sent(steps)[0]["response"]["response"]["behavior"] == "deny"
    assert [fact.request_id for fact in only(steps, facts.RequestResolved)] == [second.request_id]
    assert only(codec.request(AnswerAction(first.request_id, "B")), Refuse)


def test_an_answer_to_a_permission_and_a_yes_to_a_question_are_refused() -> None:
    codec = started()
    receive(codec, ask(input={}), questions("Which?") | {"request_id": "r2"})
    for action in (AnswerAction("r1", "yes"), ApproveAction("r2")):
        assert [type(step) for step in codec.request(action)] == [Refuse]
    assert sent(codec.request(ApproveAction("r1")))


def test_questions_come_even_where_everything_is_allowed() -> None:
    asked = only(recorded_facts("ask_two_questions"), facts.InputRequested)
    assert [(fact.question, fact.options) for fact in asked] == [("Which?", ("A", "B")), ("How many?", ("1", "2"))]


# -- what else the CLI may ask


def test_hook_callback_gets_an_empty_response() -> None:
    (line,) = native("hook_callback", type="control_request")
    (answer,) = sent(receive(started(), line))
    assert answer["response"] == {"subtype": "success", "request_id": line["request_id"], "response": {}}


def test_unknown_request_gets_an_error_response() -> None:
    line = {"type": "control_request", "request_id": "r9", "request": {"subtype": "elicitation"}}
    steps = receive(started(), line)
    assert sent(steps)[0]["response"]["subtype"] == "error"
    assert only(steps, facts.Note)


# -- somebody else's transcript


@pytest.mark.parametrize("ours_first", [True, False])
def test_the_answers_of_a_transcript_settle_its_requests_in_any_order(*, ours_first: bool) -> None:
    fixture = recording("perm_deny")
    codec = new_codec(TWO_WAY)
    sides = [(Source.STDIN, fixture.stdin), (Source.STDOUT, fixture.stdout_lines)]
    steps = [
        step
        for source, lines in (sides if ours_first else reversed(sides))
        for line in lines
        for step in codec.receive(line, source)
    ]
    (settled,) = only(steps, facts.RequestResolved)
    assert (settled.granted, settled.reason) == (False, "User said no")
    assert effects(steps) == []


def test_an_error_as_an_answer_denies() -> None:
    fixture = recording("perm_error_response")
    codec = new_codec(TWO_WAY)
    steps = receive(codec, *fixture.stdin, source=Source.STDIN) + receive(codec, *fixture.stdout_lines)
    assert [(fact.granted, fact.reason) for fact in only(steps, facts.RequestResolved)] == [(False, "host blew up")]


# -- when standard input is closed


def test_a_run_of_one_prompt_closes_after_its_result() -> None:
    codec = started("go")
    assert effects(receive(codec, INIT, replay("go"))) == []
    assert effects(receive(codec, RESULT)) == [CloseStdin()]
    assert effects(receive(codec, RESULT)) == []


def test_with_state_events_only_idle_closes() -> None:
    codec = started("go")
    running = IDLE | {"state": "running"}
    assert effects(receive(codec, running, INIT, replay("go"), RESULT)) == []
    assert effects(receive(codec, IDLE)) == [CloseStdin()]


def test_a_prompt_merged_into_the_turn_needs_no_result_of_its_own() -> None:
    codec = started("go")
    receive(codec, INIT, replay("go"))
    codec.request(Steer("and this"))
    assert effects(receive(codec, replay("and this"), RESULT)) == [CloseStdin()]


def test_a_prompt_that_came_too_late_for_the_turn_is_waited_for() -> None:
    codec = started("go")
    receive(codec, INIT, replay("go"))
    codec.request(Send("and this"))
    assert effects(receive(codec, RESULT | {"queued_turn_count": 0})) == []
    assert effects(receive(codec, INIT, replay("and this"), RESULT)) == [CloseStdin()]


def test_a_local_command_is_over_with_its_result_although_it_is_not_printed_again() -> None:
    codec = started("/compact")
    output = replay("<local-command-stdout>Compacted </local-command-stdout>")
    assert effects(receive(codec, INIT, output, RESULT | {"local_command": "compact"})) == [CloseStdin()]


def test_a_failure_before_any_turn_closes_too() -> None:
    (failure,) = native("err_resume_missing", type="result")
    assert effects(receive(started("go"), failure)) == [CloseStdin()]


def test_background_tasks_and_the_turn_they_begin_are_waited_for() -> None:
    codec = started("go")
    running = {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "b1"}]}
    ended = {"type": "system", "subtype": "task_notification", "task_id": "b1", "run_id": "run-1",
             "status": "completed"}  # fmt: skip
    assert effects(receive(codec, INIT, replay("go"), running, RESULT)) == []
    assert effects(receive(codec, ended, running | {"tasks": []})) == []
    assert effects(receive(codec, INIT, RESULT | TASK_TURN)) == [CloseStdin()]


def test_a_task_that_was_stopped_begins_no_turn() -> None:
    codec = started("go")
    running = {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "b1"}]}
    stopped = {"type": "system", "subtype": "task_notification", "task_id": "b1", "status": "stopped"}
    assert effects(receive(codec, INIT, replay("go"), running, RESULT, stopped)) == []
    assert effects(receive(codec, running | {"tasks": []})) == [CloseStdin()]


def test_a_notification_merged_into_the_turn_begins_none() -> None:
    codec = started("go")
    running = {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "b1"}]}
    ended = {"type": "system", "subtype": "task_notification", "task_id": "b1", "status": "completed"}
    merged = replay("<task-notification>\n<task-id>b1</task-id>\n</task-notification>")
    receive(codec, INIT, replay("go"), running, ended, running | {"tasks": []}, merged)
    assert effects(receive(codec, RESULT)) == [CloseStdin()]


@pytest.mark.parametrize("name", ["background_two_at_once", "ask_two_questions"])
def test_the_recorded_conversation_closes_at_its_last_line(name: str) -> None:
    codec = started("go")
    *before, last = recording(name).stdout_lines
    assert CloseStdin() not in receive(codec, *before)
    assert CloseStdin() in receive(codec, last)


def test_the_recorded_late_message_is_answered_before_closing() -> None:
    codec = started("first")
    lines = recording("stdin_late_message").stdout_lines
    steps = receive(codec, *lines[:6])
    codec.request(Send("mid message"))
    assert CloseStdin() not in steps + receive(codec, *lines[6:-1])
    assert CloseStdin() in receive(codec, lines[-1])


def test_an_interactive_run_stays_open_until_it_is_closed() -> None:
    codec = started(interactive=True)
    assert effects(receive(codec, INIT, replay("go"), RESULT)) == []
    assert codec.request(Close()) == (CloseStdin(),)
    assert [refusal.code for refusal in only(codec.request(Send("x")), Refuse)] == ["STDIN_NOT_AVAILABLE"]


def test_closing_in_mid_turn_waits_for_its_result() -> None:
    codec = started(interactive=True)
    receive(codec, INIT, replay("go"))
    assert codec.request(Close()) == ()
    assert effects(receive(codec, RESULT)) == [CloseStdin()]


# -- stopping


@pytest.mark.parametrize("action", [Interrupt(), Cancel()])
def test_an_interruption_is_asked_for_by_the_protocol(action: Interrupt | Cancel) -> None:
    (request,) = sent(started().request(action))
    assert request["request"] == {"subtype": "interrupt"}


def test_requests_of_ours_have_different_ids() -> None:
    codec = live()
    ids = [line["request_id"] for step in (codec.start(), codec.request(Interrupt())) for line in sent(step)[:1]]
    assert len(set(ids)) == 2


def test_a_one_shot_run_is_interrupted_by_a_signal_and_takes_nothing_else() -> None:
    codec = new_codec()
    assert codec.request(Interrupt()) == (SignalGroup(2),)
    assert codec.request(Cancel()) == ()
    assert codec.request(Close()) == ()
    for action in (Send("x"), Steer("x")):
        assert [refusal.code for refusal in only(codec.request(action), Refuse)] == ["STDIN_NOT_AVAILABLE"]
    assert [refusal.code for refusal in only(codec.request(ApproveAction("x")), Refuse)] == ["INTERACTION_NOT_FOUND"]


def test_a_refused_control_request_is_noted() -> None:
    refused = {"type": "control_response", "response": {"subtype": "error", "request_id": "mux-2", "error": "no"}}
    assert "no" in only(receive(started(), refused), facts.Note)[0].message
