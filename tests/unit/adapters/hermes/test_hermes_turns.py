"""Our requests to the gateway: opening, prompts, steering, interruptions, leaving."""

from hermes_transcript import LIVE, STORED, HermesConversation, talk_in_turn
from tests.unit.adapters.codec_conversation import PROJECT

from agent_mux.sdk.codec import ApproveAction, Cancel, Close, Interrupt, Refuse, Send, Source, Steer
from agent_mux.sdk.facts import (
    ImageAccepted,
    Note,
    SessionKnown,
    StepBegin,
    TextDelta,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnStopped,
)

_STDIN = Source.STDIN

# -- opening


def test_a_session_is_created_with_the_model_and_the_effort() -> None:
    talk = HermesConversation(model="some-model", thinking_effort="max")
    assert talk.takes() == (
        "session.create",
        {"cwd": PROJECT, "cols": 80, "model": "some-model", "reasoning_effort": "max"},
    )


def test_the_prompt_waits_until_the_agent_is_built() -> None:
    talk = HermesConversation()
    assert talk.takes()[0] == "session.create"
    (known,) = talk.receive_response(session_id=LIVE, stored_session_id=STORED, message_count=0, info={"model": "m"})
    assert known == SessionKnown(STORED, model="m")
    assert talk.sent == []
    talk.is_built(lazy=True)
    assert talk.sent == []
    talk.is_built()
    assert talk.takes() == ("prompt.submit", {"session_id": LIVE, "text": "hello"})


def test_a_session_without_an_id_is_none() -> None:
    talk = HermesConversation()
    talk.takes()
    (failed,) = talk.receive_response(info={"model": "m"})
    assert isinstance(failed, TurnFailed)
    assert failed.failure.message == "hermes opened no session"
    assert talk.is_closed


def test_an_agent_that_is_built_before_the_answer_comes_counts() -> None:
    talk = HermesConversation()
    talk.takes()
    talk.is_built()
    talk.receive_response(session_id=LIVE, stored_session_id=STORED, message_count=0, info={})
    assert talk.takes()[0] == "prompt.submit"


def test_configured_servers_are_started_before_the_prompt() -> None:
    talk = HermesConversation()
    talk.opens(mcp_servers=[{"name": "echo", "status": "configured"}])
    assert talk.takes() == ("reload.mcp", {"session_id": LIVE, "confirm": True})
    talk.is_built(mcp_servers=[{"name": "echo", "status": "connected"}])
    assert talk.sent == []
    talk.receive_response(status="reloaded")
    assert talk.takes()[0] == "prompt.submit"


def test_servers_that_are_being_started_are_left_alone() -> None:
    talk = HermesConversation()
    talk.opens(mcp_servers=[{"name": "slow", "status": "connecting"}])
    assert talk.takes()[0] == "prompt.submit"


def test_a_failed_server_is_reported_once() -> None:
    talk = HermesConversation()
    failed = [{"name": "dead", "status": "failed", "error": "no such file"}]
    assert talk.opens(mcp_servers=failed)[-1] == Note(
        "hermes could not start the MCP server dead: no such file", "warn"
    )
    assert talk.is_built(mcp_servers=failed) == []


def test_images_are_attached_before_the_first_prompt_only() -> None:
    talk = HermesConversation(images=("/home/dev/a b.png", "data:image/png;base64,AAAA"), interactive=True)
    talk.opens()
    assert talk.takes() == ("image.attach", {"session_id": LIVE, "path": "/home/dev/a b.png"})
    assert talk.sent == []
    assert talk.receive_response(attached=True, name="a b.jpg") == [ImageAccepted("image/jpeg")]
    assert talk.takes() == (
        "image.attach_bytes",
        {"session_id": LIVE, "content_base64": "data:image/png;base64,AAAA"},
    )
    assert talk.receive_error(4017, "data is not valid base64") == [
        Note("hermes refused image.attach_bytes: data is not valid base64", "warn")
    ]
    assert talk.takes()[0] == "prompt.submit"
    talk.begins()
    talk.ends()
    talk.request(Send("more"))
    assert talk.takes()[0] == "prompt.submit"


def test_a_session_that_cannot_be_created_ends_the_run() -> None:
    talk = HermesConversation()
    talk.takes()
    (failed,) = talk.receive_error(4090, "too many sessions")
    assert isinstance(failed, TurnFailed)
    assert talk.is_closed


def test_an_agent_that_cannot_be_built_ends_the_run() -> None:
    talk = HermesConversation()
    talk.takes()
    talk.receive_response(session_id=LIVE, stored_session_id=STORED, message_count=0, info={})
    (failed,) = talk.emits("error", message="agent init failed: No LLM provider configured. Run `hermes model`.")
    assert isinstance(failed, TurnFailed)
    assert failed.failure.code == "AUTH_ERROR"
    assert talk.is_closed


# -- stored sessions


def resumed(talk: HermesConversation, place: str = PROJECT, session: str = LIVE) -> list[object]:
    assert talk.takes() == ("session.resume", {"session_id": "old", "cols": 80})
    messages = [
        {"role": "user", "text": "one"}, {"role": "assistant", "text": "1"},
        {"role": "user", "text": "[System: The active model has changed]"}, {"role": "user", "text": "two"},
    ]  # fmt: skip
    info = {"model": "fake-model", "cwd": place, "lazy": True}
    return list(talk.receive_response(session_id=session, resumed="old", message_count=4, messages=messages, info=info))


def test_a_resumed_session_keeps_its_id_and_counts_its_turns() -> None:
    talk = HermesConversation(session_id="old")
    assert resumed(talk) == [SessionKnown("old", resumed=True, prior_turns=2, model="fake-model")]
    talk.is_built(stored="old")
    assert talk.takes()[0] == "prompt.submit"


def test_a_resumed_session_gets_directory_and_model_of_the_run() -> None:
    talk = HermesConversation(session_id="old", model="other")
    resumed(talk, place="/elsewhere")
    assert talk.takes() == ("session.cwd.set", {"session_id": LIVE, "cwd": PROJECT})
    talk.receive_response(cwd=PROJECT)
    talk.is_built(stored="old")
    assert talk.takes() == ("config.set", {"session_id": LIVE, "key": "model", "value": "other --session"})
    assert talk.receive_response(key="model", value="other", warning="not in the list") == [
        Note("not in the list", "warn")
    ]
    assert talk.takes()[0] == "prompt.submit"


def test_a_model_that_would_be_taken_for_flags_is_not_set() -> None:
    for model in ("other --global", "--global"):
        talk = HermesConversation(session_id="old", model=model)
        resumed(talk)
        talk.is_built(stored="old")
        assert talk.takes()[0] == "prompt.submit"


def test_a_missing_session_is_session_not_found() -> None:
    talk = HermesConversation(session_id="old")
    talk.takes()
    (failed,) = talk.receive_error(4007, "session not found")
    assert isinstance(failed, TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"
    assert talk.is_closed


def test_a_fork_is_opened_through_the_session_it_is_made_of() -> None:
    talk = HermesConversation(fork_session_id="old")
    assert resumed(talk, session="a1") == []
    assert talk.takes() == ("session.branch", {"session_id": "a1"})
    talk.is_built("a1", stored="old")
    talk.is_built("b2", stored="new")
    assert talk.receive_response(session_id="b2", parent="old") == [
        SessionKnown("new", forked_from="old", prior_turns=2, model="fake-model")
    ]
    assert talk.takes() == ("session.cwd.set", {"session_id": "b2", "cwd": PROJECT})
    assert talk.takes() == ("prompt.submit", {"session_id": "b2", "text": "hello"})


def test_events_of_another_session_are_ignored() -> None:
    talk = talk_in_turn()
    assert talk.emits("message.delta", session="ffff", text="not ours") == []
    assert talk.emits("message.complete", session="ffff", status="complete") == []


def test_a_session_that_must_not_be_kept_is_deleted() -> None:
    talk = talk_in_turn(no_session=True)
    talk.ends()
    assert talk.takes() == ("session.close", {"session_id": LIVE})
    assert not talk.is_closed
    talk.receive_response(closed=True)
    assert talk.takes() == ("session.delete", {"session_id": STORED})
    talk.receive_response(deleted=STORED)
    assert talk.is_closed


def test_a_session_that_cannot_be_deleted_does_not_hold_the_run() -> None:
    talk = talk_in_turn(no_session=True)
    talk.ends()
    talk.takes()
    talk.receive_error(5000, "no")
    assert talk.is_closed


# -- prompts


def test_a_run_leaves_when_hermes_is_idle_after_its_turn() -> None:
    talk = talk_in_turn()
    assert isinstance(talk.ends(is_idle=False)[-1], TurnDone)
    assert not talk.is_closed
    talk.is_built()
    assert talk.is_closed


def test_prompts_go_out_one_after_the_other() -> None:
    talk = talk_in_turn(interactive=True)
    talk.request(Send("second"))
    talk.request(Send("third"))
    assert talk.sent == []
    talk.ends(is_idle=False)
    assert talk.sent == []  # now it would be queued, and the turn before it interrupted
    talk.is_built()
    assert talk.takes() == ("prompt.submit", {"session_id": LIVE, "text": "second"})
    talk.begins()
    talk.ends()
    assert talk.takes()[1]["text"] == "third"


def test_close_waits_for_the_prompts_before_it() -> None:
    talk = talk_in_turn(interactive=True)
    talk.request(Send("second"))
    talk.request(Close())
    talk.ends()
    talk.takes()
    talk.begins()
    assert not talk.is_closed
    talk.ends()
    assert talk.is_closed
    (refused,) = talk.request(Send("too late"))
    assert isinstance(refused, Refuse)
    assert refused.code == "STDIN_NOT_AVAILABLE"


def test_a_refused_prompt_is_a_failed_turn_and_not_the_end() -> None:
    talk = HermesConversation(interactive=True)
    talk.opens()
    talk.takes()
    (failed,) = talk.receive_error(4009, "session busy")
    assert isinstance(failed, TurnFailed)
    talk.request(Send("again"))
    assert talk.takes()[0] == "prompt.submit"


def test_a_turn_that_hermes_itself_fails_is_followed_by_the_next() -> None:
    talk = talk_in_turn(interactive=True)
    talk.request(Send("again"))
    (failed,) = talk.emits("error", message="'NoneType' object is not iterable")
    assert isinstance(failed, TurnFailed)
    assert talk.sent == []
    talk.is_built()
    assert talk.takes()[1]["text"] == "again"


def test_a_prompt_that_is_refused_before_its_turn_begins_fails_at_once() -> None:
    talk = HermesConversation()
    talk.opens()
    talk.takes()
    talk.emits("error", message="agent initialization timed out")
    assert talk.is_closed


# -- turns that hermes begins


def test_a_run_waits_for_the_reports_of_sub_agents() -> None:
    talk = talk_in_turn()
    dispatched = {"status": "dispatched", "mode": "background", "delegation_id": "deleg_1"}
    talk.emits("tool.complete", tool_id="c1", name="delegate_task", args={"goal": "g"}, result=dispatched)
    talk.ends("I delegated it.")
    assert not talk.is_closed
    talk.emits("status.update", kind="process", text="[ASYNC DELEGATION BATCH COMPLETE — deleg_1]")
    assert talk.emits("message.start")[0] == TurnBegin()
    assert talk.emits("message.start") == []  # steps twice
    talk.ends("It is done.")
    assert talk.is_closed


def test_a_report_that_was_not_announced_counts() -> None:
    talk = talk_in_turn()
    started = {
        "output": "Background process started",
        "session_id": "proc_1",
        "exit_code": 0,
        "notify_on_complete": True,
    }
    talk.emits(
        "tool.complete", tool_id="c1", name="terminal", args={"command": "x", "background": True}, result=started
    )
    talk.ends("Started.")
    assert not talk.is_closed
    talk.begins()
    talk.ends("It is done.")
    assert talk.is_closed


def test_a_background_command_that_the_model_waited_for_reports_no_more() -> None:
    talk = talk_in_turn()
    started = {"session_id": "proc_1", "exit_code": 0, "notify_on_complete": True}
    talk.emits(
        "tool.complete", tool_id="c1", name="terminal", args={"command": "x", "background": True}, result=started
    )
    waited = {"action": "wait", "session_id": "proc_1"}
    talk.emits("tool.complete", tool_id="c2", name="process", args=waited, result={"status": "exited", "exit_code": 0})
    talk.ends("It is done.")
    assert talk.is_closed


def test_an_interrupted_run_does_not_wait_for_reports() -> None:
    talk = talk_in_turn()
    dispatched = {"mode": "background", "delegation_id": "deleg_1"}
    talk.emits("tool.complete", tool_id="c1", name="delegate_task", args={}, result=dispatched)
    talk.request(Interrupt())
    talk.ends(status="interrupted")
    assert talk.is_closed


# -- steering


def test_a_message_for_the_turn_is_steered_into_it() -> None:
    talk = talk_in_turn()
    talk.request(Steer("faster"))
    assert talk.takes() == ("session.steer", {"session_id": LIVE, "text": "faster"})
    talk.receive_response(status="queued", text="faster")
    talk.emits("tool.complete", tool_id="c1", name="todo", args={}, result={"todos": []})
    talk.ends()
    assert talk.sent == []
    assert talk.is_closed


def test_a_message_that_no_tool_result_carried_is_the_next_prompt() -> None:
    talk = talk_in_turn()
    talk.request(Steer("faster"))
    talk.takes()
    talk.receive_response(status="queued", text="faster")
    talk.ends()
    assert talk.takes() == ("prompt.submit", {"session_id": LIVE, "text": "faster"})


def test_a_message_that_hermes_does_not_take_is_the_next_prompt() -> None:
    talk = talk_in_turn()
    talk.request(Steer("faster"))
    talk.takes()
    (note,) = talk.receive_response(status="rejected", text="faster")
    assert isinstance(note, Note)
    talk.ends()
    assert talk.takes()[1]["text"] == "faster"


def test_steering_waits_until_the_turn_runs() -> None:
    talk = HermesConversation()
    talk.opens()
    talk.takes()
    talk.request(Steer("faster"))
    assert talk.sent == []
    talk.begins()
    assert talk.takes()[0] == "session.steer"


def test_steering_without_a_turn_is_a_prompt() -> None:
    talk = talk_in_turn(interactive=True)
    talk.ends()
    talk.request(Steer("go on"))
    assert talk.takes() == ("prompt.submit", {"session_id": LIVE, "text": "go on"})


# -- interrupting


def test_an_interruption_stops_the_turn_and_not_the_run() -> None:
    talk = talk_in_turn(interactive=True)
    talk.request(Interrupt())
    assert talk.takes() == ("session.interrupt", {"session_id": LIVE})
    talk.receive_response(status="interrupted")
    assert isinstance(talk.ends("w0 w1", status="interrupted")[-1], TurnStopped)
    talk.request(Send("more"))
    assert talk.takes()[0] == "prompt.submit"


def test_an_interruption_waits_until_the_turn_runs() -> None:
    talk = HermesConversation()
    talk.opens()
    talk.takes()
    talk.request(Interrupt())
    assert talk.sent == []  # hermes would drop the prompt without a word
    talk.begins()
    assert talk.takes()[0] == "session.interrupt"


def test_nothing_is_interrupted_between_turns() -> None:
    talk = talk_in_turn(interactive=True)
    talk.ends()
    (note,) = talk.request(Interrupt())
    assert isinstance(note, Note)
    assert talk.sent == []


def test_cancel_interrupts_and_leaves() -> None:
    talk = talk_in_turn(interactive=True)
    talk.request(Send("never sent"))
    talk.request(Cancel())
    assert talk.takes()[0] == "session.interrupt"
    talk.ends(status="interrupted")
    assert talk.sent == []
    assert talk.is_closed


def test_cancel_leaves_at_once_where_nothing_runs() -> None:
    talk = talk_in_turn(interactive=True)
    talk.ends()
    talk.request(Cancel())
    assert talk.is_closed


# -- observing


def test_an_observer_writes_nothing() -> None:
    talk = HermesConversation(prompt=None)
    assert talk.sent == []
    talk.prints({"jsonrpc": "2.0", "id": "r1", "method": "session.create", "params": {}}, source=_STDIN)
    created = {"session_id": LIVE, "stored_session_id": STORED, "message_count": 0, "info": {"model": "m"}}
    assert talk.prints({"jsonrpc": "2.0", "id": "r1", "result": created}) == [SessionKnown(STORED, model="m")]
    talk.is_built()
    talk.begins()
    assert talk.emits("message.delta", text="Hi") == [TextDelta("Hi")]
    talk.emits("terminal.read.request", request_id="x")
    talk.emits("sudo.request", request_id="y")
    talk.ends("Hi")
    assert talk.sent == []
    assert not talk.is_closed


def test_an_observer_knows_the_session_by_its_shape() -> None:
    talk = HermesConversation(prompt=None)
    created = {"session_id": LIVE, "stored_session_id": STORED, "message_count": 0, "info": {}}
    assert talk.prints({"jsonrpc": "2.0", "id": "r1", "result": created}) == [SessionKnown(STORED)]


def test_an_observer_who_came_late_still_knows_the_session() -> None:
    talk = HermesConversation(prompt=None)
    assert talk.is_built() == [SessionKnown(STORED, model="fake-model")]
    assert talk.begins() == [TurnBegin(), StepBegin()]


def test_an_observer_distinguishes_a_fork_from_its_origin() -> None:
    talk = HermesConversation(prompt=None)
    talk.prints({"jsonrpc": "2.0", "id": 1, "method": "session.resume", "params": {"session_id": "old"}}, source=_STDIN)
    opened = {"session_id": "a1", "resumed": "old", "message_count": 0, "messages": [], "info": {}}
    assert talk.prints({"jsonrpc": "2.0", "id": 1, "result": opened}) == []
    talk.prints({"jsonrpc": "2.0", "id": 2, "method": "session.branch", "params": {"session_id": "a1"}}, source=_STDIN)
    assert talk.is_built("a1", stored="old") == []
    assert talk.is_built("b2", stored="new") == []
    steps = talk.prints({"jsonrpc": "2.0", "id": 2, "result": {"session_id": "b2", "parent": "old"}})
    assert steps == [SessionKnown("new", forked_from="old", model="fake-model")]


def test_an_approval_without_a_request_is_refused() -> None:
    (refused,) = talk_in_turn().request(ApproveAction("approval-7"))
    assert isinstance(refused, Refuse)
    assert refused.code == "INTERACTION_NOT_FOUND"
