"""Handshake, prompts, steering and the end of input with the headless runtime."""

from typing import Any

import pytest
from copilot_transcript import SESSION, CopilotConversation, event, new_codec
from tests.unit.adapters.codec_conversation import PROJECT, facts_of, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Cancel, Close, CodecContext, Interrupt, Refuse, Send, Source, Steer, WriteStdin
from agent_mux_adapters.copilot import ADAPTER

OPENED = {
    "workingDirectory": PROJECT,
    "streaming": True,
    "includeSubAgentStreamingEvents": True,
    "requestPermission": True,
    "requestUserInput": True,
    "enableConfigDiscovery": True,
}
RULES = {"approved": [{"kind": "read", "argument": None}], "denied": []}


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def prompt(number: int, text: str, **params: Any) -> dict[str, Any]:
    return request(number, "session.send", sessionId=SESSION, prompt=text, **params)


def abort(number: int) -> dict[str, Any]:
    return request(number, "session.abort", sessionId=SESSION)


def test_a_one_turn_run_from_handshake_to_the_end_of_input() -> None:
    talk = CopilotConversation()
    assert talk.sent() == [request(1, "connect")]
    talk.receive_response(1, {"protocolVersion": 3, "taskKinds": []})
    assert talk.sent() == [request(2, "session.create", **OPENED)]
    talk.receive_response(2, {"sessionId": SESSION, "workspacePath": "/w", "modelState": {"modelId": "big"}})
    configure = request(3, "session.permissions.configure", sessionId=SESSION, rules=RULES)
    assert talk.sent() == [configure, prompt(4, "hello")]
    talk.receive_response(3, {"success": True})
    talk.takes_up(4, "m1")
    talk.receive_notification("assistant.idle")
    assert talk.sent() == []  # something may still run in the background
    talk.receive_notification("session.idle")
    assert talk.sent() == ["EOF"]
    assert talk.facts() == [
        facts.SessionKnown(SESSION, model="big"), facts.TurnBegin(), facts.StepBegin(), facts.TurnDone()
    ]  # fmt: skip


def test_release_without_the_handshake_opens_a_session() -> None:
    talk = CopilotConversation()
    talk.sent()
    unknown = {"code": -32601, "message": "Unhandled method connect"}
    talk.receive({"jsonrpc": "2.0", "id": 1, "error": unknown})
    assert talk.sent() == [request(2, "session.create", **OPENED)]
    talk.receive_response(2, {"sessionId": SESSION, "workspacePath": "/w"})
    talk.receive({"jsonrpc": "2.0", "id": 3, "error": {**unknown, "message": "Unhandled method"}})
    notes = [fact for fact in talk.facts() if isinstance(fact, facts.Note)]
    assert [note.level for note in notes] == ["info"]


def test_session_idle_closes_a_turn_that_nothing_else_closed() -> None:
    talk = CopilotConversation().running()
    talk.receive_notification("session.idle")
    assert facts_of(talk.steps)[-1] == facts.TurnDone()
    assert talk.sent() == ["EOF"]


def test_session_idle_after_an_error_fails_the_turn() -> None:
    talk = CopilotConversation().running()
    talk.receive_notification("session.error", errorType="authentication", message="no", statusCode=401)
    talk.receive_notification("session.idle")
    failed = facts_of(talk.steps)[-1]
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "AUTH_ERROR"


def test_version_of_the_runtime_is_reported() -> None:
    talk = CopilotConversation()
    assert talk.receive_response(1, {"protocolVersion": 3, "version": "1.0.54"})[0] == facts.AgentVersion("1.0.54")


def test_all_options_are_sent() -> None:
    talk = CopilotConversation(
        model="m",
        provider={"type": "openai"},
        thinking_effort="high",
        system_prompt="be brief",
        system_prompt_mode="append",
        answers_questions=False,
        streams_subagents=False,
        approves_all=True,
        output_schema={"type": "object"},
        attachments=({"type": "file", "path": "/a", "displayName": "a"},),
        interactive=True,
    )
    talk.opened()
    _, create, mode, first = talk.sent()
    assert create["params"] == {
        **OPENED,
        "includeSubAgentStreamingEvents": False,
        "requestUserInput": False,
        "enableConfigDiscovery": True,
        "model": "m",
        "provider": {"type": "openai"},
        "reasoningEffort": "high",
        "systemMessage": {"mode": "append", "content": "be brief"},
    }
    assert mode == request(3, "session.permissions.setMode", sessionId=SESSION, mode="allow-all")
    schema = {"type": "json_schema", "jsonSchema": {"name": "answer", "schema": {"type": "object"}}}
    attached = [{"type": "file", "path": "/a", "displayName": "a"}]
    assert first == prompt(4, "hello", attachments=attached, responseFormat=schema)
    talk.takes_up(4, "m1")
    talk.hands_back()
    talk.request(Send("more"))
    assert talk.sent() == [prompt(5, "more", responseFormat=schema)]  # attachments go with the first prompt


def test_a_plain_codec_context_is_accepted() -> None:
    plain = {"system_prompt": "you are a pirate", "system_prompt_mode": "replace", "images": ("/a/dot.png",)}
    talk = CopilotConversation()
    talk.codec = ADAPTER.protocols["headless"].codec(
        CodecContext(agent="copilot", protocol="headless", cwd=PROJECT, prompt="hello", **plain)
    )
    talk.collect(talk.codec.start())
    _, _, create, _, first = talk.opened().sent()
    assert create["params"]["systemMessage"] == {"mode": "replace", "content": "you are a pirate"}
    assert first == prompt(4, "hello", attachments=[{"type": "file", "path": "/a/dot.png", "displayName": "dot.png"}])


# -- sessions


def test_a_session_is_resumed() -> None:
    talk = CopilotConversation(session_id=SESSION)
    talk.opened()
    assert talk.sent()[1] == request(2, "session.resume", sessionId=SESSION, **OPENED)
    assert talk.facts() == [facts.SessionKnown(SESSION, resumed=True)]


def test_a_fork_is_made_and_then_resumed() -> None:
    talk = CopilotConversation(fork_session_id="old")
    talk.receive_response(1, {"protocolVersion": 3})
    talk.receive_response(2, {"sessionId": SESSION})
    talk.receive_response(3, {"sessionId": SESSION, "workspacePath": "/w"})
    assert talk.sent()[1:3] == [
        request(2, "sessions.fork", sessionId="old"), request(3, "session.resume", sessionId=SESSION, **OPENED)
    ]  # fmt: skip
    assert talk.facts() == [facts.SessionKnown(SESSION, forked_from="old")]


@pytest.mark.parametrize(
    ("context", "message", "code"),
    [
        ({"session_id": "x"}, "Request session.resume failed: Session not found: x", "SESSION_NOT_FOUND"),
        ({"fork_session_id": "x"}, "Cannot fork session x", "SESSION_NOT_FOUND"),
        ({}, "Session was not created with authentication info or custom provider", "AGENT_CRASH"),
        ({}, "No authentication information found", "AUTH_ERROR"),
        ({}, "Custom providers require an explicit model", "VALIDATION_ERROR"),
    ],
)
def test_a_session_that_cannot_be_opened_ends_the_run(context: dict[str, Any], message: str, code: str) -> None:
    talk = CopilotConversation(**context)
    talk.receive_response(1, {"protocolVersion": 3})
    talk.receive_error(2, message)
    [failed] = talk.facts()
    assert isinstance(failed, facts.TurnFailed)
    assert (failed.failure.code, failed.failure.message) == (code, message)
    assert talk.sent()[-1] == "EOF"


def test_an_answer_without_a_session_ends_the_run() -> None:
    talk = CopilotConversation()
    talk.receive_response(1, {"protocolVersion": 3})
    talk.receive_response(2, {})
    assert isinstance(talk.facts()[0], facts.TurnFailed)
    assert talk.sent()[-1] == "EOF"


def test_another_version_of_the_protocol_is_noted() -> None:
    talk = CopilotConversation()
    talk.receive_response(1, {"protocolVersion": 4})
    [note] = talk.facts()
    assert isinstance(note, facts.Note)
    assert talk.methods()[-1] == "session.create"


def test_a_session_that_is_to_be_forgotten_is_deleted_before_the_end() -> None:
    for refuse in (False, True):
        talk = CopilotConversation(no_session=True).running()
        talk.hands_back()
        assert talk.sent() == [request(5, "sessions.delete", sessionId=SESSION)]
        assert talk.request(Send("more")) == [Refuse("STDIN_NOT_AVAILABLE", talk.steps[-1].message)]  # type: ignore[union-attr]
        talk.receive_error(5, "no") if refuse else talk.receive_response(5, {})
        assert talk.sent()[-1] == "EOF"


# -- prompts


def test_prompts_are_sent_one_after_the_other() -> None:
    talk = CopilotConversation(interactive=True)
    talk.request(Send("second"))
    talk.opened()
    assert talk.methods() == ["connect", "session.create", "session.permissions.configure", "session.send"]
    talk.takes_up(4, "m1")
    talk.request(Send("third"))
    assert talk.sent() == []
    talk.hands_back()
    assert talk.sent() == [prompt(5, "second")]
    talk.takes_up(5, "m2")
    talk.receive_notification("assistant.idle")
    assert talk.sent() == [prompt(6, "third")]
    talk.takes_up(6, "m3")
    talk.hands_back()
    assert talk.sent() == []
    talk.request(Close())
    assert talk.sent() == ["EOF"]


def test_a_session_without_a_prompt_waits_for_one() -> None:
    talk = CopilotConversation(prompt="", interactive=True).opened()
    assert talk.methods() == ["connect", "session.create", "session.permissions.configure"]
    talk.request(Send("now"))
    assert talk.sent() == [prompt(4, "now")]


def test_the_run_ends_when_the_background_is_done() -> None:
    talk = CopilotConversation().running()
    talk.receive_notification("assistant.idle")
    talk.request(Close())
    assert talk.sent() == []
    talk.receive_notification(
        "assistant.turn_start"
    )  # a command in the background ended: Copilot begins a turn on its own
    talk.receive_notification("assistant.idle")
    assert talk.sent() == []
    talk.receive_notification("session.idle")
    assert talk.sent() == ["EOF"]


def test_a_prompt_that_is_refused_fails_its_turn_and_the_next_one_is_sent() -> None:
    talk = CopilotConversation(interactive=True).opened()
    talk.request(Send("second"))
    talk.sent()
    talk.receive_error(4, "rate limit exceeded")
    failed = talk.facts()[-1]
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "RATE_LIMITED"
    assert talk.sent() == [prompt(5, "second")]


def test_a_prompt_that_fails_before_the_model_sees_it() -> None:
    talk = CopilotConversation(interactive=True).opened()
    talk.receive_response(4, {"messageId": "m1"})
    talk.request(Send("second"))
    talk.sent()
    talk.receive_notification("session.error", message="no", originatingMessageId="m1")
    talk.receive_notification("assistant.idle")
    assert talk.sent() == [prompt(5, "second")]


def test_the_answer_to_a_prompt_may_come_after_its_turn_has_begun() -> None:
    talk = CopilotConversation().opened()
    talk.receive_notification("user.message", messageId="m1")
    talk.receive_notification("assistant.turn_start")
    talk.receive_response(4, {"messageId": "m1"})
    talk.sent()
    talk.hands_back()
    assert talk.sent() == ["EOF"]


# -- steering and stopping


def test_a_steering_message_is_sent_into_the_turn() -> None:
    talk = CopilotConversation().running()
    talk.request(Steer("hurry"))
    assert talk.sent() == [prompt(5, "hurry", mode="immediate")]
    talk.receive_response(5, {"messageId": "m2"})
    talk.hands_back()
    assert talk.sent() == ["EOF"]


def test_steering_while_nothing_runs_is_a_prompt() -> None:
    talk = CopilotConversation(interactive=True).running()
    talk.hands_back()
    talk.request(Steer("more"))
    assert talk.sent() == [prompt(5, "more")]


def test_an_interrupt_stops_the_turn_and_the_session_continues() -> None:
    talk = CopilotConversation(interactive=True).running()
    talk.request(Interrupt())
    assert talk.sent() == [abort(5)]
    talk.receive_response(5, {"success": True})
    talk.hands_back(aborted=True)
    assert isinstance(talk.facts()[-1], facts.TurnStopped)
    talk.request(Send("go on"))
    assert talk.sent() == [prompt(6, "go on")]


def test_an_interrupt_waits_for_the_turn_to_begin() -> None:
    talk = CopilotConversation().opened()
    talk.sent()
    talk.request(Interrupt())
    talk.receive_response(4, {"messageId": "m1"})
    assert talk.sent() == []
    talk.receive_notification("user.message", messageId="m1")
    assert talk.sent() == [abort(5)]
    talk.receive_notification("assistant.idle", aborted=True)  # session.idle may never come
    assert talk.sent() == ["EOF"]


def test_an_interrupt_of_nothing_is_noted() -> None:
    talk = CopilotConversation(interactive=True).running()
    talk.hands_back()
    assert isinstance(talk.request(Interrupt())[0], facts.Note)
    assert talk.sent() == []


def test_a_cancelled_run_stops_and_forgets_its_prompts() -> None:
    talk = CopilotConversation(interactive=True).running()
    talk.request(Send("never"))
    talk.request(Cancel())
    assert talk.sent() == [abort(5)]
    talk.receive_notification("assistant.idle", aborted=True)
    assert talk.sent() == ["EOF"]


def test_an_idle_run_is_cancelled_at_once() -> None:
    talk = CopilotConversation(interactive=True).running()
    talk.hands_back()
    talk.request(Cancel())
    assert talk.sent() == ["EOF"]


def test_sub_agents_neither_begin_nor_end_our_turn() -> None:
    talk = CopilotConversation().running()
    for kind in ("assistant.idle", "session.idle"):
        talk.receive_notification(kind, "inner")
    assert talk.sent() == []


# -- observing


def test_an_observed_run_sends_nothing() -> None:
    codec = new_codec()
    assert list(codec.start()) == []
    ours = request(7, "session.create", workingDirectory="/")
    steps = receive(codec, ours, prompt(8, "x"), source=Source.STDIN)
    steps += receive(codec, {"id": 7, "result": {"sessionId": SESSION, "workspacePath": "/w"}}, {"id": 8, "result": {}})
    steps += receive(codec, *(
        {"method": "session.event", "params": {"sessionId": SESSION, "event": one}}
        for one in (event("user.message"), event("assistant.idle"), event("session.idle"))
    ), request(0, "tool.call"))  # fmt: skip
    assert not [step for step in steps if isinstance(step, WriteStdin)]
    assert facts_of(steps) == [facts.SessionKnown(SESSION), facts.TurnBegin(), facts.TurnDone()]


def test_without_our_side_the_session_is_known_by_the_shape_of_the_answer() -> None:
    steps = receive(new_codec(), {"id": 2, "result": {"sessionId": SESSION, "workspacePath": "/w"}})
    assert facts_of(steps) == [facts.SessionKnown(SESSION)]
    [note] = facts_of(receive(new_codec(), {"id": 2, "error": {"message": "no"}}))
    assert note == facts.Note("copilot refused a request: no", "warn")


@pytest.mark.parametrize("line", [b"not json", b"[]", b'{"jsonrpc":"2.0"}'])
def test_strange_lines_on_standard_input(line: bytes) -> None:
    [fact] = receive(new_codec(), line, source=Source.STDIN)
    assert isinstance(fact, facts.Note | facts.Unknown)
