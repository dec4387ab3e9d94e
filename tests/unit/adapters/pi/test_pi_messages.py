"""The model's messages in pi, emitted once: from deltas, from the ends of blocks, or from the whole message."""

import tracemalloc
from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import as_line, codec_of, facts_of, receive
from tests.unit.adapters.pi_family import AGENT_START, answer, call_block, update
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source
from agent_mux_adapters.pi import ADAPTER

ALL = Recordings(ADAPTER, "json")
SAID = (facts.WholeText, facts.TextDelta, facts.TextEnd, facts.WholeThinking, facts.ThinkingDelta, facts.ThinkingEnd)
CALLS = (facts.ToolBegin, facts.ToolInput, facts.ToolReady)
MESSAGE_STARTS = {"type": "message_start", "message": {"role": "assistant", "content": []}}


def emitted(*lines: Any) -> list[Any]:
    return facts_of(receive(codec_of(ADAPTER, "json"), AGENT_START, MESSAGE_STARTS, *lines), *SAID, *CALLS)


def test_deltas_are_emitted_once() -> None:
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
    assert emitted(*lines) == [
        *(facts.ThinkingDelta("hm"), facts.ThinkingEnd()),
        *(facts.TextDelta("he"), facts.TextDelta("llo"), facts.TextEnd()),
    ]


def test_blocks_may_end_late() -> None:
    lines = [
        update("thinking_delta", delta="hm"),
        update("text_delta", 1, delta="hello"),
        update("thinking_end", content="hm"),
        update("text_end", 1, content="hello"),
        answer({"type": "thinking", "thinking": "hm"}, "hello"),
    ]
    assert emitted(*lines) == [
        facts.ThinkingDelta("hm"),
        facts.ThinkingEnd(),
        facts.TextDelta("hello"),
        facts.TextEnd(),
    ]


def test_block_without_deltas_is_emitted_at_its_end() -> None:
    lines = [update("text_start"), update("text_end", content="hello"), answer("hello")]
    assert emitted(*lines) == [facts.WholeText("hello")]


def test_message_without_deltas_is_emitted_whole() -> None:
    message = answer({"type": "thinking", "thinking": "hm"}, "hello", "", call_block("c", "bash", command="ls"))
    assert emitted(message) == [
        facts.WholeThinking("hm"),
        facts.WholeText("hello"),
        facts.ToolReady("c", "bash", {"command": "ls"}, facts.ShellInvocation("ls")),
    ]


def test_block_indices_restart_with_each_message() -> None:
    lines = [update("text_delta", delta="a"), answer("a"), MESSAGE_STARTS, update("text_delta", delta="b"), answer("b")]
    assert emitted(*lines) == [facts.TextDelta("a"), facts.TextEnd(), facts.TextDelta("b"), facts.TextEnd()]


def test_redacted_thinking_emits_nothing() -> None:
    assert emitted(update("thinking_start"), update("thinking_end", content=""), answer("")) == []


def test_call_input_streams_before_it_is_ready() -> None:
    block = call_block("c", "bash", command="ls")
    lines = [
        update("toolcall_start", id="c", toolName="bash"),
        update("toolcall_delta", delta='{"command":'),
        update("toolcall_delta", delta='"ls"}'),
        update("toolcall_end", toolCall=block),
        answer(block),
    ]
    assert emitted(*lines) == [
        facts.ToolBegin("c", "bash"),
        *(facts.ToolInput("c", '{"command":'), facts.ToolInput("c", '"ls"}')),
        facts.ToolReady("c", "bash", {"command": "ls"}, facts.ShellInvocation("ls")),
    ]


def test_until_0_73_call_id_is_read_from_the_repeated_message() -> None:
    partial = {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"id": "c", "name": "bash"}]}
    lines = [update("toolcall_start", 1, partial=partial), update("toolcall_delta", 1, delta="{", partial=partial)]
    assert emitted(*lines) == [facts.ToolBegin("c", "bash"), facts.ToolInput("c", "{")]


@pytest.mark.parametrize("content", [[], [{"id": 3, "name": "bash"}], "x", None])
def test_call_without_id_is_emitted_when_complete(content: Any) -> None:
    lines = [
        update("toolcall_start", partial={"content": content}),
        update("toolcall_delta", delta="{", partial={"content": content}),
        update("toolcall_end", toolCall=call_block("c", "ls", path="."), partial={"content": content}),
    ]
    assert emitted(*lines) == [facts.ToolReady("c", "ls", {"path": "."})]


def test_call_known_from_its_execution_is_emitted_then() -> None:
    started = {"type": "tool_execution_start", "toolCallId": "c", "toolName": "ls", "args": {"path": "."}}
    assert emitted(started, started) == [facts.ToolReady("c", "ls", {"path": "."})]


def test_text_that_looks_like_the_repetition_is_text() -> None:
    trap = '","partial":{'
    line = update("text_delta", delta=trap, partial={"content": [{"type": "text", "text": trap}]})
    assert emitted(line) == [facts.TextDelta(trap)]


def test_the_order_of_keys_does_not_matter() -> None:
    line = {"assistantMessageEvent": {"delta": "hi", "contentIndex": 0, "type": "text_delta"}, "type": "message_update"}
    assert emitted(line) == [facts.TextDelta("hi")]


def test_empty_delta_emits_nothing() -> None:
    assert emitted(update("text_delta", delta="")) == []


def test_unknown_update_is_reported() -> None:
    [unknown] = facts_of(receive(codec_of(ADAPTER, "json"), update("hologram_delta", delta="x")))
    assert isinstance(unknown, facts.Unknown)


def test_repeating_line_of_0_73_is_not_decoded_whole() -> None:
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
    assert most < len(line) / 10  # decoding the whole line would allocate all of it


@pytest.mark.parametrize("name", ["0.73.1/unicode", "0.87.1/unicode"])
def test_every_character_survives(name: str) -> None:
    texts = [event.text for event in ALL.events(name) if event.type == "message_stop"]
    expected = [block["text"] for step in ALL.get(name).script["steps"] for block in step["blocks"] if "text" in block]
    assert texts == expected


def test_images_in_results_are_emitted() -> None:
    result = {"content": [{"type": "image", "data": "AA==", "mimeType": "image/gif"}, {"type": "text", "text": "a"}]}
    ended = {"type": "tool_execution_end", "toolCallId": "c", "toolName": "read", "result": result, "isError": False}
    [done, image] = facts_of(receive(codec_of(ADAPTER, "json"), ended), facts.ToolDone, facts.ImageProduced)
    assert done.output == [{"type": "image", "mimeType": "image/gif"}, {"type": "text", "text": "a"}]
    assert image == facts.ImageProduced("image/gif", base64="AA==")
