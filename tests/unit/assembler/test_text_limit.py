"""Texts above the limit of their run are cut in events, and the events state how much was cut."""

from typing import Any

import pytest

from agent_mux.assembler import StreamAssembler, StreamContext
from agent_mux.assembler.text_limit import LimitedText, cut_text, cut_value
from agent_mux.events import AgentEvent, Rebuilder, encode_event
from agent_mux.sdk import facts

LIMIT = 1024


def events_of(*given: Any, limit: int = LIMIT, buffered: bool = False) -> list[AgentEvent]:
    """Return the events of facts, followed by the end of the turn."""
    context = StreamContext(run_id="0" * 26, agent="a", max_text_bytes=limit, buffered=buffered, cwd="/w")
    assembler = StreamAssembler(context)
    assembler.receive(facts.SessionKnown("s"))
    for fact in given:
        assembler.receive(fact)
    assembler.receive(facts.TurnDone())
    return assembler.drain()


def of_type(events: list[AgentEvent], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize(
    ("fact", "delta", "stop", "field"),
    [
        (facts.TextDelta, "text_delta", "message_stop", "text"),
        (facts.ThinkingDelta, "thinking_delta", "thinking_stop", "thinking"),
    ],
)
def test_deltas_end_at_the_limit_and_the_stop_states_what_was_cut(
    fact: Any, delta: str, stop: str, field: str, buffered: bool
) -> None:
    events = events_of(*[fact("x" * 100)] * 50, fact("end"), buffered=buffered)
    deltas, (stopped,) = of_type(events, delta), of_type(events, stop)
    assert "".join(one.delta for one in deltas) == getattr(stopped, field) == "x" * LIMIT
    assert stopped.truncated_bytes == 50 * 100 + 3 - LIMIT
    assert max(len(one.accumulated) for one in deltas) == LIMIT
    assert sum(len(encode_event(one)) for one in events) < 12 * LIMIT
    rebuilder = Rebuilder()
    rebuilt = [rebuilder.decode(encode_event(event, accumulated=False)) for event in events]
    assert [encode_event(event) for event in rebuilt] == [encode_event(event) for event in events]


def test_a_short_text_states_no_cut() -> None:
    (stopped,) = of_type(events_of(facts.TextDelta("x" * LIMIT)), "message_stop")
    assert stopped.text == "x" * LIMIT
    assert stopped.truncated_bytes is None
    assert b"truncatedBytes" not in encode_event(stopped)


def test_a_stream_without_a_limit_cuts_nothing() -> None:
    (stopped,) = of_type(events_of(facts.TextDelta("x" * 10_000), limit=0), "message_stop")
    assert len(stopped.text) == 10_000


def test_tool_inputs_and_outputs_are_cut() -> None:
    events = events_of(
        facts.ToolBegin("1", "Write"),
        *[facts.ToolInput("1", "y" * 500)] * 4,
        facts.ToolReady("1", "Write", {"path": "/a", "content": "c" * 5000}),
        facts.ToolDone("1", output=[{"type": "text", "text": "o" * 5000}, {"type": "text", "text": "more"}]),
        facts.McpBegin("2", "server", "tool", {"q": "q" * 5000}),
        facts.McpDone("2", error="e" * 5000),
    )
    assert "".join(one.delta for one in of_type(events, "tool_input_delta")) == "y" * LIMIT
    (ready,), (result,) = of_type(events, "tool_call_ready"), of_type(events, "tool_result")
    assert ready.input == {"path": "/a", "content": "c" * LIMIT}
    assert ready.truncated_bytes == 5000 - LIMIT
    assert result.output == [{"type": "text", "text": "o" * LIMIT}, {"type": "text", "text": "more"}]
    assert result.truncated_bytes == 5000 - LIMIT
    (begun,), (failed,) = of_type(events, "mcp_tool_call_start"), of_type(events, "mcp_tool_error")
    assert (begun.truncated_bytes, failed.truncated_bytes) == (5000 - LIMIT, 5000 - LIMIT)


def test_output_of_a_command_is_cut_as_a_whole() -> None:
    whole = "x" * 3000
    events = events_of(
        facts.ToolReady("1", "Bash", {"command": "c"}, shell=facts.ShellInvocation("c")),
        *[facts.ToolOutput("1", "x" * 500)] * 6,
        facts.ToolDone("1", output="done", stdout=whole + "rest", exit_code=0),
    )
    assert "".join(one.delta for one in of_type(events, "shell_stdout_delta")) == "x" * LIMIT
    (exited,) = of_type(events, "shell_exit")
    assert exited.truncated_bytes == 3000 - LIMIT


def test_a_text_is_cut_between_characters_and_not_continued() -> None:
    text = LimitedText(1024)
    text.append(text.fit("é" * 511))
    assert text.fit("€") == ""
    assert text.fit("a") == ""
    assert (str(text), text.left_out) == ("é" * 511, 4)
    assert cut_text("\U0001f600" * 300, 1025) == ("\U0001f600" * 256, 44 * 4)
    assert cut_text("\ud800" * 400, 1024) == ("\ud800" * 341, 59 * 3)


def test_a_structure_of_many_values_becomes_the_beginning_of_its_json() -> None:
    cut, left_out = cut_value(list(range(10_000)), 1024)
    assert cut.startswith("[0,1,2,")
    assert len(cut) == 1024
    assert left_out > 10_000
    assert cut_value({"a": [1, None, True, "x"]}, 1024) == ({"a": [1, None, True, "x"]}, 0)
