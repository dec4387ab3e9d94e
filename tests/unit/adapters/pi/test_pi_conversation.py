"""Our side of pi's rpc mode, read like a transcript."""

from typing import Any

import pytest
from tests.unit.adapters.pi_family import BEGINS, SETTLED, Talk, agent_end, answer, update
from tests.unit.adapters.talking import codec_of, facts_of, receive

from agent_mux import facts
from agent_mux.actions import Cancel, Close, Interrupt, Send, Steer
from agent_mux.adapter import Source
from agent_mux.effects import Refuse
from agent_mux_adapters.pi import ADAPTER

END = agent_end(willRetry=False)
TURNS = (facts.TurnBegin, facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
IDLE = {"isStreaming": False, "isCompacting": False}


def ask(number: int, command: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"mux-{number}", "type": command, **fields}


def opened(**context: Any) -> Talk:
    """The session is named, and the first prompt is sent."""
    talk = Talk(ADAPTER, **context)
    talk.sent()
    talk.answers("mux-1", "get_state", sessionId="s", model={"provider": "fake", "id": "fake-model"})
    return talk


def running(**context: Any) -> Talk:
    """The first turn runs."""
    talk = opened(**context)
    talk.answers("mux-2", "prompt")
    talk.says(BEGINS)
    talk.sent()
    return talk


def idle(**context: Any) -> Talk:
    """The first turn is over."""
    talk = running(interactive=True, **context)
    talk.says(answer("hi"), END, SETTLED)
    talk.sent()
    return talk


def test_a_run_of_one_turn_from_the_first_line_to_the_end_of_input() -> None:
    talk = Talk(ADAPTER)
    assert talk.sent() == [ask(1, "get_state")]
    steps = talk.answers("mux-1", "get_state", sessionId="s", model={"provider": "fake", "id": "fake-model"})
    assert facts_of(steps) == [facts.SessionKnown("s", model="fake/fake-model")]
    assert talk.sent() == [ask(2, "prompt", message="hello")]
    talk.answers("mux-2", "prompt")
    talk.says(BEGINS, answer("hi"), END)
    assert talk.sent() == []
    talk.says(SETTLED)
    assert talk.sent() == ["EOF"]
    assert facts_of(talk.steps, *TURNS) == [facts.TurnBegin(), facts.TurnDone()]


@pytest.mark.parametrize(
    ("context", "known"),
    [
        ({"session_id": "s"}, facts.SessionKnown("s", resumed=True, prior_turns=2)),
        ({"fork_session_id": "old"}, facts.SessionKnown("s", forked_from="old", prior_turns=2)),
    ],
)
def test_of_a_session_that_goes_on_we_ask_how_many_turns_it_has(context: dict[str, Any], known: Any) -> None:
    talk = Talk(ADAPTER, **context)
    assert talk.sent() == [ask(1, "get_session_stats"), ask(2, "get_state")]
    talk.answers("mux-1", "get_session_stats", userMessages=2)
    assert facts_of(talk.answers("mux-2", "get_state", sessionId="s")) == [known]


def test_an_agent_that_does_not_name_its_session_is_asked_all_the_same() -> None:
    talk = Talk(ADAPTER)
    talk.sent()
    [note] = facts_of(talk.refuses("mux-1", "get_state", "not today"))
    assert note == facts.Note("pi does not report its session: not today", "warn")
    assert talk.sent() == [ask(2, "prompt", message="hello")]


def test_inline_images_go_with_the_first_prompt_only() -> None:
    images = ("data:image/png;base64,AA==", "/not/a/url.png", "data:broken")
    talk = opened(images=images, interactive=True)
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert talk.sent() == [ask(2, "prompt", message="hello", images=[image])]
    talk.says(BEGINS, END, SETTLED)
    talk.want(Send("and now"))
    assert talk.sent() == [ask(3, "prompt", message="and now")]


def test_prompts_come_one_after_the_other() -> None:
    talk = running(interactive=True)
    talk.want(Send("second"))
    talk.want(Send("third"))
    assert talk.sent() == []
    talk.says(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(3, "prompt", message="second")]
    talk.says(BEGINS, answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(4, "prompt", message="third")]
    talk.says(BEGINS, answer("hi"), END, SETTLED)
    assert talk.sent() == []


def test_prompts_are_on_one_line_each_whatever_is_in_them() -> None:
    talk = idle()
    talk.want(Send("a\nb\u2028c \ud800 größe"))
    [prompt] = talk.sent()
    assert prompt["message"].startswith("a\nb\u2028c ")
    assert prompt["message"].endswith(" größe")


def test_a_blank_prompt_is_none() -> None:
    talk = idle()
    talk.want(Send("  \n"))
    assert talk.sent() == []


def test_an_open_run_ends_its_input_when_it_is_closed_and_idle() -> None:
    talk = running(interactive=True)
    talk.want(Close())
    assert talk.sent() == []
    talk.says(answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]
    [refused] = talk.want(Send("too late"))
    assert isinstance(refused, Refuse)
    assert refused.code == "STDIN_NOT_AVAILABLE"


def test_closing_lets_the_prompts_that_wait_be_answered() -> None:
    talk = running(interactive=True)
    talk.want(Send("second"))
    talk.want(Close())
    talk.says(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(3, "prompt", message="second")]
    talk.says(BEGINS, answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]


# -- in the turn


def test_steering_is_a_prompt_for_the_turn_that_runs() -> None:
    talk = running(interactive=True)
    talk.want(Steer("rather so"))
    assert talk.sent() == [ask(3, "prompt", message="rather so", streamingBehavior="steer")]


def test_steering_nobody_is_a_prompt() -> None:
    talk = idle()
    talk.want(Steer("rather so"))
    assert talk.sent() == [ask(3, "prompt", message="rather so")]


def test_a_message_that_comes_too_late_for_its_turn_begins_the_next() -> None:
    talk = running()
    talk.want(Steer("rather so"))
    talk.says(answer("hi"), END, SETTLED)
    assert "EOF" not in talk.sent()  # it is still under way
    talk.answers("mux-3", "prompt")
    talk.says(BEGINS, answer("so"), END, SETTLED)
    assert talk.sent() == ["EOF"]


def test_a_message_that_is_not_taken_into_the_turn_is_the_next_prompt() -> None:
    talk = running()
    talk.want(Steer("rather so"))
    [note] = facts_of(talk.refuses("mux-3", "prompt", "not now"))
    assert note == facts.Note("the message was not added to the turn: not now", "warn")
    talk.sent()
    talk.says(answer("hi"), END, SETTLED)
    assert talk.sent() == [ask(4, "prompt", message="rather so")]


def test_an_interruption_is_an_abort_and_the_agent_lives_on() -> None:
    talk = running(interactive=True)
    talk.want(Interrupt())
    assert talk.sent() == [ask(3, "abort")]
    steps = talk.says(answer("so fa", stopReason="aborted"), END, SETTLED)
    talk.answers("mux-3", "abort")
    assert facts_of(steps, *TURNS) == [facts.TurnStopped()]
    talk.want(Send("go on"))
    assert talk.sent() == [ask(4, "prompt", message="go on")]


def test_an_interruption_before_the_turn_began_waits_for_its_beginning() -> None:
    talk = opened(interactive=True)
    talk.sent()
    talk.want(Interrupt())
    assert talk.sent() == []
    talk.says(BEGINS)
    assert talk.sent() == [ask(3, "abort")]


def test_there_may_be_nothing_to_interrupt() -> None:
    talk = idle()
    assert talk.want(Interrupt()) == [facts.Note("nothing to interrupt: pi is waiting for a prompt")]


def test_an_abort_that_nothing_else_tells_of_ends_the_turn() -> None:
    talk = running(interactive=True)
    talk.want(Interrupt())
    assert facts_of(talk.answers("mux-3", "abort"), *TURNS) == [facts.TurnStopped()]


def test_aborting_the_run_stops_the_turn_and_forgets_the_prompts_that_wait() -> None:
    talk = running(interactive=True)
    talk.want(Send("second"))
    talk.want(Cancel())
    assert talk.sent() == [ask(3, "abort")]
    talk.says(answer("so fa", stopReason="aborted"), END, SETTLED)
    assert talk.sent() == ["EOF"]


def test_aborting_an_idle_run_ends_its_input() -> None:
    talk = idle()
    talk.want(Cancel())
    assert talk.sent() == ["EOF"]


# -- refusals and odd prompts


def test_a_prompt_that_is_refused_fails_its_turn() -> None:
    talk = opened()
    talk.sent()
    steps = talk.refuses("mux-2", "prompt", "No API key found for fake.")
    assert facts_of(steps, *TURNS) == [facts.TurnFailed(facts.Failure("AUTH_ERROR", "No API key found for fake."))]
    assert talk.sent() == ["EOF"]


def test_an_unknown_command_is_answered_without_an_id() -> None:
    talk = running()
    assert facts_of(talk.refuses(None, "nonsense", "Unknown command: nonsense")) == [
        facts.Note("pi refused nonsense: Unknown command: nonsense", "warn")
    ]


def test_a_command_of_pi_begins_no_turn_so_we_ask_whether_it_is_idle() -> None:
    talk = opened(prompt="/name x")
    talk.sent()
    talk.answers("mux-2", "prompt")
    assert talk.sent() == [ask(3, "get_state")]
    assert facts_of(talk.answers("mux-3", "get_state", **IDLE), *TURNS) == [facts.TurnBegin(), facts.TurnDone()]
    assert talk.sent() == ["EOF"]


def test_a_prompt_that_only_looks_like_a_command_is_a_turn() -> None:
    talk = opened(prompt="/tmp is full")
    talk.answers("mux-2", "prompt")
    talk.says(BEGINS)
    talk.sent()
    assert facts_of(talk.answers("mux-3", "get_state", isStreaming=True), *TURNS) == []
    talk.says(answer("hi"), END, SETTLED)
    assert talk.sent() == ["EOF"]


# -- somebody else's run


def test_an_observer_says_nothing() -> None:
    talk = Talk(ADAPTER, prompt=None)
    talk.says(BEGINS, answer("hi"), agent_end(), BEGINS, answer("hi"), END, SETTLED)
    assert talk.sent() == []
    assert talk.want(Send("x")) == []
    assert talk.sent() == []


def test_an_observer_learns_the_session_from_any_answer_that_names_it() -> None:
    talk = Talk(ADAPTER, prompt=None)
    assert facts_of(talk.answers("x", "get_state", sessionId="s")) == [facts.SessionKnown("s")]


def test_an_observer_knows_which_refusal_is_that_of_a_prompt() -> None:
    codec = codec_of(ADAPTER, "rpc")
    receive(codec, {"id": "p", "type": "prompt", "message": "hi"}, source=Source.STDIN)
    refused = {"id": "p", "type": "response", "command": "prompt", "success": False, "error": "No API key"}
    assert facts_of(receive(codec, refused), *TURNS) == [facts.TurnFailed(facts.Failure("AUTH_ERROR", "No API key"))]


def test_what_another_client_writes_is_not_ours_to_tell() -> None:
    codec = codec_of(ADAPTER, "rpc")
    assert facts_of(receive(codec, {"type": "get_state"}, source=Source.STDIN)) == []
    assert facts_of(receive(codec, b"nonsense", source=Source.STDIN)) == [
        facts.Note("a line on stdin is not a JSON object", "warn")
    ]


def test_json_mode_takes_nothing_but_signals() -> None:
    codec = codec_of(ADAPTER, "json")
    assert list(codec.start()) == []
    [refused] = codec.request(Send("x"))
    assert isinstance(refused, Refuse)
    assert list(codec.request(Close())) == list(codec.request(Cancel())) == []
    [signal] = codec.request(Interrupt())
    assert type(signal).__name__ == "SignalGroup"


def test_fragments_take_the_fast_path_in_rpc_mode_too() -> None:
    talk = running()
    assert talk.says(update("text_delta", delta="hi")) == [facts.TextDelta("hi")]
