"""Handshake, prompts, steering and the end of input with the app-server."""

import pytest
from codex_recordings import OWN_THREAD, codec_for, new_codec, recorded_facts, recording
from codex_transcript import CodexConversation, start
from tests.unit.adapters.codec_conversation import PROJECT, effects, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Cancel, Close, Interrupt, Refuse, Send, Steer

INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {
        "clientInfo": {"name": "agent-mux", "title": "agent-mux", "version": "1"},
        "capabilities": {"experimentalApi": True},
    },
}


def open_thread(method: str, **params: object) -> list[object]:
    asked = {"cwd": PROJECT, "approvalPolicy": "on-request", "sandbox": "workspace-write", **params}
    return [{"method": "initialized"}, {"id": 2, "method": method, "params": asked}]


def steer(number: int, turn: str, text: str) -> dict[str, object]:
    params = {"threadId": OWN_THREAD, "expectedTurnId": turn, "input": [{"type": "text", "text": text}]}
    return {"id": number, "method": "turn/steer", "params": params}


def interrupt(number: int, turn: str) -> dict[str, object]:
    return {"id": number, "method": "turn/interrupt", "params": {"threadId": OWN_THREAD, "turnId": turn}}


def test_a_one_turn_run_from_handshake_to_the_end_of_input() -> None:
    talk = CodexConversation()
    assert talk.sent() == [INITIALIZE]
    talk.receive_response(1, {"userAgent": "codex"})
    assert talk.sent() == open_thread("thread/start")
    talk.receive_response(2, {"thread": {"id": OWN_THREAD}, "model": "gpt-5.5"})
    assert talk.sent() == [start(3, "hello")]
    talk.receive_response(3, {"turn": {"id": "turn-1", "status": "inProgress"}})
    talk.begins("turn-1")
    assert talk.sent() == []
    talk.ends("turn-1")
    assert talk.sent() == ["EOF"]
    assert [fact for fact in talk.steps if isinstance(fact, facts.SessionKnown)] == [
        facts.SessionKnown(OWN_THREAD, model="gpt-5.5")
    ]


def test_all_options_are_sent() -> None:
    talk = CodexConversation(
        model="gpt-6.1-sol",
        system_prompt="be brief",
        thinking_effort="max",
        approval_mode="yolo",
        no_session=True,
        output_schema={"type": "object"},
        images=("/home/dev/a.png", "data:image/png;base64,AA=="),
    )
    talk.sent()
    talk.receive_response(1, {})
    asked = {"approvalPolicy": "never", "sandbox": "danger-full-access", "model": "gpt-6.1-sol",
             "developerInstructions": "be brief", "ephemeral": True}  # fmt: skip
    assert talk.sent() == open_thread("thread/start", **asked)
    talk.receive_response(2, {"thread": {"id": OWN_THREAD}})
    [turn] = talk.sent()
    assert turn["params"] == {
        "threadId": OWN_THREAD,
        "input": [
            {"type": "text", "text": "hello"},
            {"type": "localImage", "path": "/home/dev/a.png"},
            {"type": "image", "url": "data:image/png;base64,AA=="},
        ],
        "effort": "max",
        "outputSchema": {"type": "object"},
    }


def test_replacing_the_system_prompt_replaces_the_base_instructions() -> None:
    talk = CodexConversation(system_prompt="you are a pirate", system_prompt_mode="replace")
    talk.receive_response(1, {})
    assert talk.sent()[-1]["params"]["baseInstructions"] == "you are a pirate"


@pytest.mark.parametrize(
    ("mode", "policy", "sandbox"),
    [
        ("yolo", "never", "danger-full-access"),
        ("prompt", "on-request", "workspace-write"),
        ("deny", "untrusted", "read-only"),
    ],
)
def test_the_approval_mode_selects_policy_and_sandbox(mode: str, policy: str, sandbox: str) -> None:
    talk = CodexConversation(approval_mode=mode)
    talk.receive_response(1, {})
    params = talk.sent()[-1]["params"]
    assert (params["approvalPolicy"], params["sandbox"]) == (policy, sandbox)


def test_where_rules_decide_codex_asks_before_everything_and_may_write() -> None:
    talk = CodexConversation(asks_everything=True)
    talk.receive_response(1, {})
    params = talk.sent()[-1]["params"]
    assert (params["approvalPolicy"], params["sandbox"]) == ("untrusted", "workspace-write")


def test_a_resumed_or_forked_thread_gets_its_permissions_and_returns_no_history() -> None:
    for context, method in (({"session_id": "s"}, "thread/resume"), ({"fork_session_id": "s"}, "thread/fork")):
        talk = CodexConversation(**context)
        talk.sent()
        talk.receive_response(1, {})
        assert talk.sent() == open_thread(method, threadId="s", excludeTurns=True)


def test_a_session_that_is_not_there_fails_the_run() -> None:
    talk = CodexConversation(session_id="nope")
    talk.receive_response(1, {})
    talk.sent()
    [failed, _] = talk.receive_error(2, "no rollout found for thread id nope")
    assert failed == facts.TurnFailed(facts.Failure("SESSION_NOT_FOUND", "no rollout found for thread id nope"))
    assert talk.sent() == ["EOF"]


def test_a_handshake_that_is_refused_fails_the_run() -> None:
    talk = CodexConversation()
    talk.sent()
    [failed, _] = talk.receive_error(1, "Invalid request: missing field `clientInfo`")
    assert failed.failure.code == "AGENT_CRASH"
    assert talk.sent() == ["EOF"]


def test_an_answer_without_a_thread_fails_the_run() -> None:
    talk = CodexConversation()
    talk.receive_response(1, {})
    talk.sent()
    kinds = [type(step).__name__ for step in talk.receive_response(2, {"thread": 7})]
    assert kinds == ["TurnFailed", "CloseStdin"]


def test_a_turn_that_cannot_begin_fails_and_the_run_ends() -> None:
    talk = CodexConversation().opened()
    talk.sent()
    [failed, _] = talk.receive_error(3, "unexpected status 401 Unauthorized")
    assert failed.failure.code == "AUTH_ERROR"
    assert talk.sent() == ["EOF"]


def test_a_prompt_sent_in_mid_turn_waits_for_its_own_turn() -> None:
    # Sent at once, Codex would merge it into the running turn.
    talk = CodexConversation().running()
    talk.request(Send("second"))
    assert talk.sent() == []
    talk.ends("turn-1")
    assert talk.sent() == [start(4, "second")]
    talk.begins("turn-2")
    talk.ends("turn-2")
    assert talk.sent() == ["EOF"]


def test_prompts_sent_before_the_thread_is_open_come_in_order() -> None:
    talk = CodexConversation(prompt="one")
    talk.request(Send("two"))
    talk.opened()
    assert talk.sent()[-1] == start(3, "one")
    talk.begins("turn-1")
    talk.ends("turn-1")
    assert talk.sent() == [start(4, "two")]


def test_an_interactive_run_stays_until_it_is_closed() -> None:
    talk = CodexConversation(interactive=True, prompt="").opened()
    assert talk.sent()[-1]["method"] == "thread/start"
    talk.request(Send("hi"))
    assert talk.sent() == [start(3, "hi")]
    talk.begins("turn-1")
    talk.ends("turn-1")
    assert talk.sent() == []
    talk.request(Close())
    assert talk.sent() == ["EOF"]


def test_closing_in_mid_turn_waits_because_the_end_of_input_would_lose_the_turn() -> None:
    talk = CodexConversation(interactive=True).running()
    talk.request(Send("last words"))
    talk.request(Close())
    assert talk.sent() == []
    talk.ends("turn-1")
    assert talk.sent() == [start(4, "last words")]
    talk.begins("turn-2")
    talk.ends("turn-2", "failed", error={"message": "no"})
    assert talk.sent() == ["EOF"]


def test_steering_goes_into_the_turn_that_runs() -> None:
    talk = CodexConversation().running()
    talk.request(Steer("left"))
    assert talk.sent() == [steer(4, "turn-1", "left")]
    talk.receive_response(4, {})
    talk.ends("turn-1")
    assert talk.sent() == ["EOF"]


def test_steering_without_a_turn_is_a_prompt() -> None:
    talk = CodexConversation(interactive=True, prompt="").opened()
    talk.sent()
    talk.request(Steer("left"))
    assert talk.sent() == [start(3, "left")]


def test_orders_wait_until_the_turn_runs_because_before_that_they_are_refused() -> None:
    # After the result of turn/start, Codex still refuses: "no active turn to interrupt".
    talk = CodexConversation().opened()
    talk.sent()
    talk.request(Steer("left"))
    talk.request(Interrupt())
    talk.receive_response(3, {"turn": {"id": "turn-1", "status": "inProgress"}})
    assert talk.sent() == []
    talk.begins("turn-1")
    assert talk.sent() == [steer(4, "turn-1", "left"), interrupt(5, "turn-1")]


def test_steering_that_came_too_late_is_the_next_prompt() -> None:
    talk = CodexConversation().running()
    talk.request(Steer("left"))
    talk.sent()
    talk.ends("turn-1")
    assert talk.sent() == []  # the steering message may still be refused
    steps = talk.receive_error(4, "no active turn to steer")
    assert isinstance(steps[0], facts.Note)
    assert talk.sent() == [start(5, "left")]


def test_interrupting_stops_the_turn_and_the_run_ends() -> None:
    talk = CodexConversation().running()
    talk.request(Interrupt())
    assert talk.sent() == [interrupt(4, "turn-1")]
    talk.receive_response(4, {})
    [stopped, _] = talk.ends("turn-1", "interrupted")
    assert stopped == facts.TurnStopped()
    assert talk.sent() == ["EOF"]


def test_interrupting_before_the_first_turn_stops_it_as_it_begins() -> None:
    talk = CodexConversation()
    talk.request(Interrupt())
    talk.opened()
    talk.begins("turn-1")
    assert talk.sent()[-1] == interrupt(4, "turn-1")


def test_an_interrupt_between_turns_is_noted() -> None:
    talk = CodexConversation(interactive=True, prompt="").opened()
    [note] = talk.request(Interrupt())
    assert isinstance(note, facts.Note)
    talk.request(Send("hi"))
    talk.begins("turn-1")
    assert [message["method"] for message in talk.sent()[-1:]] == ["turn/start"]


def test_an_interrupt_that_came_too_late_is_noted() -> None:
    talk = CodexConversation(interactive=True).running()
    talk.request(Interrupt())
    talk.ends("turn-1")
    [note] = talk.receive_error(4, "no active turn to interrupt")
    assert isinstance(note, facts.Note)


def test_cancelling_interrupts_the_turn_and_forgets_what_was_queued() -> None:
    talk = CodexConversation(interactive=True).running()
    talk.request(Send("never"))
    talk.request(Cancel())
    assert talk.sent() == [interrupt(4, "turn-1")]
    talk.ends("turn-1", "interrupted")
    assert talk.sent() == ["EOF"]


def test_cancelling_between_turns_hangs_up() -> None:
    talk = CodexConversation(interactive=True, prompt="").opened()
    talk.sent()
    talk.request(Cancel())
    assert talk.sent() == ["EOF"]


def test_nothing_is_sent_after_the_end_of_input() -> None:
    talk = CodexConversation().running()
    talk.ends("turn-1")
    assert talk.sent() == ["EOF"]
    [refused] = talk.request(Send("more"))
    assert isinstance(refused, Refuse)
    assert refused.code == "STDIN_NOT_AVAILABLE"
    talk.request(Close())
    assert [effect for effect in talk.sent() if not isinstance(effect, Refuse)] == []


def test_an_answer_that_comes_after_its_turn_does_not_revive_it() -> None:
    talk = CodexConversation(interactive=True).running()
    talk.ends("turn-1")
    talk.receive_response(3, {"turn": {"id": "turn-1", "status": "inProgress"}})
    talk.begins("turn-1")
    talk.request(Send("next"))
    assert talk.sent() == [start(4, "next")]


def test_a_turn_ends_whatever_is_wrong_with_its_ending() -> None:
    for status, error in (("evaporated", None), (None, "x"), ("failed", {"message": 7})):
        talk = CodexConversation().running()
        talk.ends("turn-1", status, error=error)  # type: ignore[arg-type]
        assert talk.sent() == ["EOF"]


def test_we_do_not_hang_up_on_a_sub_agent_that_still_works() -> None:
    talk = CodexConversation().running()
    other = "01a20000-0000-7000-8000-000000000009"
    talk.receive_notification("item/started", item={"type": "subAgentActivity", "id": "a", "kind": "started",
                                     "agentThreadId": other, "agentPath": "/root/a"})  # fmt: skip
    talk.receive_notification("turn/started", threadId=other, turn={"id": "inner"})
    talk.ends("turn-1")
    assert talk.sent() == []
    talk.receive_notification("turn/completed", threadId=other, turn={"id": "inner", "status": "completed"})
    assert talk.sent() == ["EOF"]


def test_an_interrupted_run_does_not_wait_for_its_sub_agents() -> None:
    for action in (Interrupt(), Cancel()):
        talk = CodexConversation().running()
        talk.receive_notification("turn/started", threadId="01a20000-0000-7000-8000-000000000009", turn={"id": "inner"})
        talk.request(action)
        talk.ends("turn-1", "interrupted")
        assert talk.sent() == [interrupt(4, "turn-1"), "EOF"]


def test_an_idle_sub_agent_without_a_report_does_not_keep_the_input_open() -> None:
    talk = CodexConversation().running()
    other = "01a20000-0000-7000-8000-000000000009"
    talk.receive_notification("turn/started", threadId=other, turn={"id": "inner"})
    talk.ends("turn-1")
    talk.receive_notification("thread/status/changed", threadId=other, status={"type": "systemError"})
    assert talk.sent() == ["EOF"]


def test_an_observer_sends_nothing() -> None:
    for name in ("as_exec", "as_approval_accept", "as_resume_missing", "as_bad_json"):
        codec = codec_for(name)
        steps = [*codec.start(), *receive(codec, *recording(name).stdout_lines), *codec.request(Close())]
        assert effects(steps) == []


def test_orders_that_another_client_gave_too_late_are_notes() -> None:
    notes = [fact.message for fact in recorded_facts("as_orders_refused", facts.Note)]
    assert any("turn/interrupt" in message for message in notes)
    assert any("to the turn" in message for message in notes)


def test_whatever_a_prompt_holds_is_one_line_of_utf_8() -> None:
    talk = CodexConversation(prompt="a\nb\u2028c \ud800 \N{GRINNING FACE}").opened()
    assert talk.sent()[-1]["params"]["input"][0]["text"] == "a\nb\u2028c ? \N{GRINNING FACE}"


def test_a_codec_of_ours_asks_nothing_before_it_is_started() -> None:
    assert effects(receive(new_codec(prompt="x"), {"method": "configWarning", "params": {"summary": "s"}})) == []
