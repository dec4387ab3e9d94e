"""What the model says in pi, told once: by fragments, by the ends of blocks, or by the whole message."""

import tracemalloc
from typing import Any

import pytest
from tests.unit.adapters.pi_family import BEGINS, answer, call_block, update
from tests.unit.adapters.recordings import Recordings
from tests.unit.adapters.talking import as_line, codec_of, facts_of, receive

from agent_mux import facts
from agent_mux.adapter import Source
from agent_mux_adapters.pi import ADAPTER

ALL = Recordings(ADAPTER, "json")
SAID = (facts.Text, facts.TextDelta, facts.TextEnd, facts.Thinking, facts.ThinkingDelta, facts.ThinkingEnd)
CALLS = (facts.ToolBegin, facts.ToolInput, facts.ToolReady)
MESSAGE_STARTS = {"type": "message_start", "message": {"role": "assistant", "content": []}}


def said(*lines: Any) -> list[Any]:
    return facts_of(receive(codec_of(ADAPTER, "json"), BEGINS, MESSAGE_STARTS, *lines), *SAID, *CALLS)


def test_fragments_are_told_and_what_repeats_them_is_not() -> None:
    lines = [
        update("thinking_start"),
        update("thinking_delta", delta="hm"),
        update("thinking_end", content="hm"),
        update("text_start", 1),
        update("text_delta", 1, delta="he"),
        update("text_delta", 1, delta="llo"),
        update("text_end", 1, content="hello"),
        answer({"type": "thinking", "thinking": "hm"}, "hello"),
    ]
    assert said(*lines) == [
        *(facts.ThinkingDelta("hm"), facts.ThinkingEnd()),
        *(facts.TextDelta("he"), facts.TextDelta("llo"), facts.TextEnd()),
    ]


def test_blocks_may_end_late_all_at_once() -> None:
    lines = [
        update("thinking_delta", delta="hm"),
        update("text_delta", 1, delta="hello"),
        update("thinking_end", content="hm"),
        update("text_end", 1, content="hello"),
        answer({"type": "thinking", "thinking": "hm"}, "hello"),
    ]
    assert said(*lines) == [facts.ThinkingDelta("hm"), facts.ThinkingEnd(), facts.TextDelta("hello"), facts.TextEnd()]


def test_a_block_that_did_not_stream_is_told_whole_by_its_end() -> None:
    lines = [update("text_start"), update("text_end", content="hello"), answer("hello")]
    assert said(*lines) == [facts.Text("hello")]


def test_a_message_that_did_not_stream_is_told_whole() -> None:
    message = answer({"type": "thinking", "thinking": "hm"}, "hello", "", call_block("c", "bash", command="ls"))
    assert said(message) == [
        facts.Thinking("hm"),
        facts.Text("hello"),
        facts.ToolReady("c", "bash", {"command": "ls"}, facts.Shell("ls")),
    ]


def test_the_next_message_counts_its_blocks_anew() -> None:
    lines = [update("text_delta", delta="a"), answer("a"), MESSAGE_STARTS, update("text_delta", delta="b"), answer("b")]
    assert said(*lines) == [facts.TextDelta("a"), facts.TextEnd(), facts.TextDelta("b"), facts.TextEnd()]


def test_a_thought_nobody_may_read_says_nothing() -> None:
    assert said(update("thinking_start"), update("thinking_end", content=""), answer("")) == []


def test_the_input_of_a_call_streams_and_then_it_is_ready() -> None:
    block = call_block("c", "bash", command="ls")
    lines = [
        update("toolcall_start", id="c", toolName="bash"),
        update("toolcall_delta", delta='{"command":'),
        update("toolcall_delta", delta='"ls"}'),
        update("toolcall_end", toolCall=block),
        answer(block),
    ]
    assert said(*lines) == [
        facts.ToolBegin("c", "bash"),
        *(facts.ToolInput("c", '{"command":'), facts.ToolInput("c", '"ls"}')),
        facts.ToolReady("c", "bash", {"command": "ls"}, facts.Shell("ls")),
    ]


def test_until_0_73_the_id_of_a_call_stands_in_the_repetition() -> None:
    partial = {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"id": "c", "name": "bash"}]}
    lines = [update("toolcall_start", 1, partial=partial), update("toolcall_delta", 1, delta="{", partial=partial)]
    assert said(*lines) == [facts.ToolBegin("c", "bash"), facts.ToolInput("c", "{")]


@pytest.mark.parametrize("content", [[], [{"id": 3, "name": "bash"}], "x", None])
def test_a_call_whose_beginning_names_nothing_is_told_when_it_is_complete(content: Any) -> None:
    lines = [
        update("toolcall_start", partial={"content": content}),
        update("toolcall_delta", delta="{", partial={"content": content}),
        update("toolcall_end", toolCall=call_block("c", "ls", path="."), partial={"content": content}),
    ]
    assert said(*lines) == [facts.ToolReady("c", "ls", {"path": "."})]


def test_a_call_that_was_only_seen_to_start_is_told_then() -> None:
    started = {"type": "tool_execution_start", "toolCallId": "c", "toolName": "ls", "args": {"path": "."}}
    assert said(started, started) == [facts.ToolReady("c", "ls", {"path": "."})]


def test_words_that_look_like_the_repetition_are_words() -> None:
    trap = '","partial":{'
    line = update("text_delta", delta=trap, partial={"content": [{"type": "text", "text": trap}]})
    assert said(line) == [facts.TextDelta(trap)]


def test_the_order_of_keys_does_not_matter() -> None:
    line = {"assistantMessageEvent": {"delta": "hi", "contentIndex": 0, "type": "text_delta"}, "type": "message_update"}
    assert said(line) == [facts.TextDelta("hi")]


def test_a_fragment_without_text_is_silent() -> None:
    assert said(update("text_delta", delta="")) == []


def test_an_unknown_kind_of_fragment_is_not_dropped() -> None:
    [unknown] = facts_of(receive(codec_of(ADAPTER, "json"), update("hologram_delta", delta="x")))
    assert isinstance(unknown, facts.Unknown)


def test_a_line_of_0_73_that_repeats_everything_costs_little_more_than_looking_at_it() -> None:
    codec = codec_of(ADAPTER, "json")
    partial = {"role": "assistant", "content": [{"type": "text", "text": "word " * 40_000}]}
    line = as_line({**update("text_delta", delta="word ", partial=partial), "message": partial})
    assert len(line) > 360_000
    tracemalloc.start()
    try:
        assert facts.TextDelta("word ") in list(codec.receive(line, Source.STDOUT))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < len(line) / 10  # whoever decodes it makes all of it anew


@pytest.mark.parametrize("name", ["0.73.1/unicode", "0.87.1/unicode"])
def test_every_character_survives(name: str) -> None:
    texts = [event.text for event in ALL.events(name) if event.type == "message_stop"]
    expected = [block["text"] for step in ALL.get(name).script["steps"] for block in step["blocks"] if "text" in block]
    assert texts == expected


def test_images_in_results_are_told() -> None:
    result = {"content": [{"type": "image", "data": "AA==", "mimeType": "image/gif"}, {"type": "text", "text": "a"}]}
    ended = {"type": "tool_execution_end", "toolCallId": "c", "toolName": "read", "result": result, "isError": False}
    [done, image] = facts_of(receive(codec_of(ADAPTER, "json"), ended), facts.ToolDone, facts.ImageProduced)
    assert done.output == [{"type": "image", "mimeType": "image/gif"}, {"type": "text", "text": "a"}]
    assert image == facts.ImageProduced("image/gif", base64="AA==")
