"""Conversations as JSON, and rejection of other data."""

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.strategies import conversations, messages

from agent_loop.errors import MessageError
from agent_loop.messages import (
    AssistantMessage,
    Image,
    Message,
    Messages,
    Text,
    Thinking,
    ToolCall,
    assistant,
    restore_messages,
    save_messages,
    user,
)
from agent_loop.messages.message import ToolMessage


@pytest.mark.slow
@given(history=st.lists(messages, max_size=6) | conversations())
def test_saved_messages_are_restored_unchanged(history: list[Message]) -> None:
    restored = restore_messages(save_messages(history))

    assert restored == history
    assert isinstance(restored, Messages)


def test_saved_messages_are_the_json_of_the_seed() -> None:
    saved = json.loads(save_messages([assistant("", ToolCall("call_1", "calculate", {"expr": "2+2"}))]))

    assert saved == [
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "id": "call_1", "name": "calculate", "arguments": {"expr": "2+2"}}],
            "stop_reason": "tool_use",
        }
    ]


def test_content_blocks_are_saved_as_stored_sessions_have_them() -> None:
    answer = AssistantMessage(content=(Thinking("Hm.", "c2ln"), Text("Yes."), ToolCall("1", "look", {"path": "a"})))
    seen = ToolMessage(tool_call_id="1", name="look", content=(Text("seen"), Image(mime_type="image/png", data=b"png")))
    saved = [message["content"] for message in json.loads(save_messages([answer, seen]))]
    assert saved == [
        [
            {"type": "thinking", "text": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Yes."},
            {"type": "tool_call", "id": "1", "name": "look", "arguments": {"path": "a"}},
        ],
        [{"type": "text", "text": "seen"}, {"type": "image", "data": "cG5n", "mime_type": "image/png"}],
    ]  # fmt: skip


def test_fields_of_a_newer_version_are_skipped() -> None:
    data = '[{"role": "user", "mood": "good", "content": [{"type": "text", "text": "u", "colour": "red"}]}]'

    assert restore_messages(data) == [user("u")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"{}", "array"),
        (b'[{"role": "moderator"}]', "moderator"),
        (b'[{"content": []}]', "role"),
        (b'[{"role": "user", "content": "text"}]', r"\$\[0\].content"),
        (b'["\xff"]', "utf-8|array|object"),
        (b'[{"role": "extension", "kind": "k", "data": ' + b"[" * 100_000, "recursion"),
    ],
)
def test_invalid_conversation_is_reported_with_its_position(data: bytes, words: str) -> None:
    with pytest.raises(MessageError, match=f"(?is)not a saved conversation.*({words}).*save_messages"):
        restore_messages(data)


def test_odd_values_never_keep_a_conversation_from_being_saved() -> None:
    odd = {"path": PurePosixPath("/a"), ("a", 1): "half \ud83d"}
    message = ToolMessage(tool_call_id="a", name="look", content=(), details=odd)

    restored = restore_messages(save_messages([message, user("half \ud83d")]))

    assert restored[1] == user("half \ufffd")
    details = restored.tool_messages[0].details
    assert details == {"path": "/a", "('a', 1)": "half \ufffd"}


def test_too_deeply_nested_data_raises() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    message = ToolMessage(tool_call_id="a", name="look", content=(), details=deep)

    with pytest.raises(MessageError, match="cannot be saved: it is nested too deeply"):
        save_messages([message])
