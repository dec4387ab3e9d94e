"""Our side of pi's rpc mode, as transcripts of both sides."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import codec_of, facts_of, receive
from tests.unit.adapters.pi_family import AGENT_START, SETTLED, PiConversation, agent_end, answer, update

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Cancel, Close, Interrupt, Refuse, Send, Source, Steer
from agent_mux_adapters.pi import ADAPTER

END = agent_end(willRetry=False)
TURNS = (facts.TurnBegin, facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
IDLE = {"isStreaming": False, "isCompacting": False}


def ask(number: int, command: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"mux-{number}", "type": command, **fields}


def opened(**context: Any) -> PiConversation:
    """Return a transcript in which the session is known and the first prompt is sent."""
    talk = PiConversation(ADAPTER, **context)
    talk.sent()
    talk.receive_response("mux-1", "get_state", sessionId="s", model={"provider": "fake", "id": "fake-model"})
    return talk


def running(**context: Any) -> PiConversation:
    """Return a transcript in which the first turn runs."""
    talk = opened(**context)
    talk.receive_response("mux-2", "prompt")
    talk.receive(AGENT_START)
    talk.sent()
    return talk


def idle(**context: Any) -> PiConversation:
    """Return a transcript in which the first turn is over."""
    talk = running(interactive=True, **context)
    talk.receive(answer("hi"), END, SETTLED)
    talk.sent()
    return talk


def test_one_turn_run_from_first_line_to_end_of_input() -> None:
    talk = PiConversation(ADAPTER)
    assert talk.sent() == [ask(1, "get_state")]
    steps = talk.receive_response("mux-1", "get_state", sessionId="s", model={"provider": "fake", "id": "fake-model"})
    assert facts_of(steps) == [facts.SessionKnown("s", model="fake/fake-model")]
    assert talk.sent() == [ask(2, "prompt", message="hello")]
    talk.receive_response("mux-2", "prompt")
    talk.receive(AGENT_START, answer("hi"), END)
    assert talk.sent() == []
    talk.receive(SETTLED)
    assert talk.sent() == ["EOF"]
    assert facts_of(talk.steps, *TURNS) == [facts.TurnBegin(), facts.TurnDone(stop_reason="end")]


@pytest.mark.parametrize(
    ("context", "known"),
    [
        ({"session_id": "s"}, facts.SessionKnown("s", resumed=True, prior_turns=2)),
        ({"fork_session_id": "old"}, facts.SessionKnown("s", forked_from="old", prior_turns=2)),
    ],
)
def test_continued_session_is_asked_for_its_turn_count(context: dict[str, Any], known: Any) -> None:
    talk = PiConversation(ADAPTER, **context)
    assert talk.sent() == [ask(1, "get_session_stats"), ask(2, "get_state")]
    talk.receive_response("mux-1", "get_session_stats", userMessages=2)
    assert facts_of(talk.receive_response("mux-2", "get_state", sessionId="s")) == [known]


def test_prompt_is_sent_although_the_session_is_not_reported() -> None:
    talk = PiConversation(ADAPTER)
    talk.sent()
    [note] = facts_of(talk.receive_error("mux-1", "get_state", "not today"))
    assert note == facts.Note("pi does not report its session: not today", "warn")
    assert talk.sent() == [ask(2, "prompt", message="hello")]


def test_inline_images_are_sent_with_first_prompt_only() -> None:
    images = ("data:image/png;base64,AA==", "/not/a/url.png", "data:broken")
    talk = opened(images=images, interactive=True)
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert talk.sent() == [ask(2, "prompt", message="hello", images=[image])]
    talk.receive(AGENT_START, END, SETTLED)
    talk.request(Send("and now"))
    assert talk.sent() == [ask(3, "prompt", message="and now")]


def test_next_prompt_waits_for_end_of_turn() -> None:
    talk = running(interactive=True)
    talk.request(Send("second"))
    talk.request(Send("third"))
    assert talk.sent() == []
    talk.receive(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(3, "prompt", message="second")]
    talk.receive(AGENT_START, answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(4, "prompt", message="third")]
    talk.receive(AGENT_START, answer("hi"), END, SETTLED)
    assert talk.sent() == []


def test_each_prompt_is_one_line() -> None:
    talk = idle()
    talk.request(Send("a\nb\u2028c \ud800 größe"))
    [prompt] = talk.sent()
    assert prompt["message"].startswith("a\nb\u2028c ")
    assert prompt["message"].endswith(" größe")


def test_blank_prompt_is_not_sent() -> None:
    talk = idle()
    talk.request(Send("  \n"))
    assert talk.sent() == []


def test_interactive_run_closes_stdin_when_closed_and_idle() -> None:
    talk = running(interactive=True)
    talk.request(Close())
    assert talk.sent() == []
    talk.receive(answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]
    [refused] = talk.request(Send("too late"))
    assert isinstance(refused, Refuse)
    assert refused.code == "STDIN_NOT_AVAILABLE"


def test_close_lets_waiting_prompts_finish() -> None:
    talk = running(interactive=True)
    talk.request(Send("second"))
    talk.request(Close())
    talk.receive(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(3, "prompt", message="second")]
    talk.receive(AGENT_START, answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]


# -- in the turn


def test_steering_sends_a_prompt_into_the_running_turn() -> None:
    talk = running(interactive=True)
    talk.request(Steer("rather so"))
    assert talk.sent() == [ask(3, "prompt", message="rather so", streamingBehavior="steer")]


def test_steering_without_a_turn_is_a_prompt() -> None:
    talk = idle()
    talk.request(Steer("rather so"))
    assert talk.sent() == [ask(3, "prompt", message="rather so")]


def test_late_message_starts_the_next_turn() -> None:
    talk = running()
    talk.request(Steer("rather so"))
    talk.receive(answer("hi"), END, SETTLED)
    assert "EOF" not in talk.sent()  # the message is not confirmed yet
    talk.receive_response("mux-3", "prompt")
    talk.receive(AGENT_START, answer("so"), END, SETTLED)
    assert talk.sent() == ["EOF"]


def test_rejected_message_becomes_the_next_prompt() -> None:
    talk = running()
    talk.request(Steer("rather so"))
    [note] = facts_of(talk.receive_error("mux-3", "prompt", "not now"))
    assert note == facts.Note("the message was not added to the turn: not now", "warn")
    talk.sent()
    talk.receive(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(4, "prompt", message="rather so")]


def test_interrupt_aborts_the_turn_and_keeps_the_process() -> None:
    talk = running(interactive=True)
    talk.request(Interrupt())
    assert talk.sent() == [ask(3, "abort")]
    steps = talk.receive(answer("so fa", stopReason="aborted"), END, SETTLED)
    talk.receive_response("mux-3", "abort")
    assert facts_of(steps, *TURNS) == [facts.TurnStopped()]
    talk.request(Send("go on"))
    assert talk.sent() == [ask(4, "prompt", message="go on")]


def test_interrupt_before_the_turn_waits_for_its_start() -> None:
    talk = opened(interactive=True)
    talk.sent()
    talk.request(Interrupt())
    assert talk.sent() == []
    talk.receive(AGENT_START)
    assert talk.sent() == [ask(3, "abort")]


def test_interrupt_while_idle_is_noted() -> None:
    talk = idle()
    assert talk.request(Interrupt()) == [facts.Note("nothing to interrupt: pi is waiting for a prompt")]


def test_abort_response_alone_ends_the_turn() -> None:
    talk = running(interactive=True)
    talk.request(Interrupt())
    assert facts_of(talk.receive_response("mux-3", "abort"), *TURNS) == [facts.TurnStopped()]


def test_cancel_aborts_the_turn_and_drops_waiting_prompts() -> None:
    talk = running(interactive=True)
    talk.request(Send("second"))
    talk.request(Cancel())
    assert talk.sent() == [ask(3, "abort")]
    talk.receive(answer("so fa", stopReason="aborted"), END, SETTLED)
    assert talk.sent() == ["EOF"]


def test_cancel_while_idle_closes_stdin() -> None:
    talk = idle()
    talk.request(Cancel())
    assert talk.sent() == ["EOF"]


# -- refusals and special prompts


def test_refused_prompt_fails_its_turn() -> None:
    talk = opened()
    talk.sent()
    steps = talk.receive_error("mux-2", "prompt", "No API key found for fake.")
    assert facts_of(steps, *TURNS) == [facts.TurnFailed(facts.Failure("AUTH_ERROR", "No API key found for fake."))]
    assert talk.sent() == ["EOF"]


def test_refusal_without_id_is_noted() -> None:
    talk = running()
    assert facts_of(talk.receive_error(None, "nonsense", "Unknown command: nonsense")) == [
        facts.Note("pi refused nonsense: Unknown command: nonsense", "warn")
    ]


def test_slash_command_probes_whether_the_agent_is_idle() -> None:
    talk = opened(prompt="/name x")
    talk.sent()
    talk.receive_response("mux-2", "prompt")
    assert talk.sent() == [ask(3, "get_state")]
    assert facts_of(talk.receive_response("mux-3", "get_state", **IDLE), *TURNS) == [
        facts.TurnBegin(),
        facts.TurnDone(),
    ]
    assert talk.sent() == ["EOF"]


def test_prompt_that_looks_like_a_command_is_a_turn() -> None:
    talk = opened(prompt="/tmp is full")
    talk.receive_response("mux-2", "prompt")
    talk.receive(AGENT_START)
    talk.sent()
    assert facts_of(talk.receive_response("mux-3", "get_state", isStreaming=True), *TURNS) == []
    talk.receive(answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]


# -- observing another client's run


def test_observer_sends_nothing() -> None:
    talk = PiConversation(ADAPTER, prompt=None)
    talk.receive(AGENT_START, answer("hi"), agent_end(), AGENT_START, answer("hi"), END, SETTLED)
    assert talk.sent() == []
    assert talk.request(Send("x")) == []
    assert talk.sent() == []


def test_observer_reads_session_from_any_response_with_it() -> None:
    talk = PiConversation(ADAPTER, prompt=None)
    assert facts_of(talk.receive_response("x", "get_state", sessionId="s")) == [facts.SessionKnown("s")]


def test_observer_recognizes_the_refusal_of_a_prompt() -> None:
    codec = codec_of(ADAPTER, "rpc")
    receive(codec, {"id": "p", "type": "prompt", "message": "hi"}, source=Source.STDIN)
    refused = {"id": "p", "type": "response", "command": "prompt", "success": False, "error": "No API key"}
    assert facts_of(receive(codec, refused), *TURNS) == [facts.TurnFailed(facts.Failure("AUTH_ERROR", "No API key"))]


def test_lines_of_another_client_are_ignored() -> None:
    codec = codec_of(ADAPTER, "rpc")
    assert facts_of(receive(codec, {"type": "get_state"}, source=Source.STDIN)) == []
    assert facts_of(receive(codec, b"nonsense", source=Source.STDIN)) == [
        facts.Note("a line on stdin is not a JSON object", "warn")
    ]


def test_json_mode_accepts_signals_only() -> None:
    codec = codec_of(ADAPTER, "json")
    assert list(codec.start()) == []
    [refused] = codec.request(Send("x"))
    assert isinstance(refused, Refuse)
    assert list(codec.request(Close())) == list(codec.request(Cancel())) == []
    [signal] = codec.request(Interrupt())
    assert type(signal).__name__ == "SignalGroup"


def test_deltas_take_the_hot_path_in_rpc_mode() -> None:
    talk = running()
    assert talk.receive(update("text_delta", delta="hi")) == [facts.TextDelta("hi")]
