"""The rules for roles, and for calls and their results."""

from typing import Any

import pytest
from hypothesis import given
from tests.unit.embedded.strategies import conversations

from agent_loop.errors import MessageError
from agent_loop.messages import (
    AssistantMessage,
    ExtensionMessage,
    Image,
    Message,
    Messages,
    Text,
    Thinking,
    ToolCall,
    UserMessage,
    assistant,
    system,
    tool_message,
    user,
    validate,
    validate_user_input,
)

A, B = ToolCall("a", "look"), ToolCall("b", "look")
NOTE = ExtensionMessage(kind="note")

BROKEN: dict[str, tuple[list[Any], int, str]] = {
    "an unknown role": ([user("u"), {"role": "moderator"}], 1, "none of the roles"),
    "a tool message without tool_call_id": ([assistant("", A), tool_message("", "look", "t")], 1, "no tool_call_id"),
    "a tool message without name": ([assistant("", A), tool_message("a", "", "t")], 1, "no name"),
    "an assistant message without content and calls": ([user("u"), assistant("")], 1, "neither content nor tool calls"),
    "an assistant message of blanks": ([AssistantMessage(content=(Text(" \n"),))], 0, "neither content nor"),
    "a tool call without id": ([assistant("", ToolCall("", "look"))], 0, "tool call without an id"),
    "a tool call without name": ([assistant("", ToolCall("a", ""))], 0, "tool call without a name"),
    "an empty user message": ([user("u"), user(" ")], 1, "is empty"),
    "a user message without blocks": ([UserMessage(content=())], 0, "is empty"),
    "an empty system message": ([system("\n")], 0, "is empty"),
    "a result without a call": ([user("u"), tool_message("a", "look", "t")], 1, "no call with this id is open"),
    "a result of another call": ([assistant("", A), tool_message("b", "look", "t")], 1, "'b'"),
    "two results for one call": (
        [assistant("", A), tool_message("a", "look", "t"), tool_message("a", "look", "t")], 2, "no call with this id"),
    "a call without result at the end": ([user("u"), assistant("", A)], 1, "'a' has no result"),
    "a call without result before a user message": ([assistant("", A), user("u")], 0, "'a' has no result"),
    "a call without result before a system message": ([assistant("", A), system("s")], 0, "'a' has no result"),
    "half of the results before the next answer": (
        [assistant("", A, B), tool_message("b", "look", "t"), assistant("x")], 0, "'a' has no result"),
    "a result behind the next user message": (
        [assistant("", A), user("u"), tool_message("a", "look", "t")], 0, "'a' has no result"),
    "the same id twice in one answer": ([assistant("", A), assistant("", A)], 1, "second tool call with the id 'a'"),
}  # fmt: skip

LAWFUL: dict[str, list[Message]] = {
    "nothing": [],
    "results in any order": [
        assistant("", A, B), tool_message("b", "look", "t"), tool_message("a", "look", "t"), assistant("x")],
    "one answer of two messages": [
        assistant("", A), assistant("x", B), tool_message("a", "look", "t"), tool_message("b", "look", "t")],
    "notes anywhere": [NOTE, assistant("", A), NOTE, tool_message("a", "look", ""), NOTE],
    "an id that comes again later": [
        assistant("", A), tool_message("a", "look", "t"), assistant("", A), tool_message("a", "look", "t")],
    "a picture alone": [UserMessage(content=(Image("aGk=", "image/png"),))],
    "reasoning alone": [AssistantMessage(content=(Thinking("", redacted="x"),))],
}  # fmt: skip


@pytest.mark.parametrize(("messages", "index", "words"), BROKEN.values(), ids=BROKEN)
def test_validate_names_the_first_problem_and_its_place(messages: list[Any], index: int, words: str) -> None:
    with pytest.raises(MessageError, match=f"message {index} ") as caught:
        validate(messages)

    assert words in str(caught.value)
    assert caught.value.index == index


@pytest.mark.parametrize("messages", LAWFUL.values(), ids=LAWFUL)
def test_validate_takes_what_providers_take(messages: list[Message]) -> None:
    validate(messages)


@pytest.mark.slow
@given(history=conversations())
def test_valid_conversations_validate(history: list[Message]) -> None:
    validate(history)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "send at least one"),
        ([user("u"), assistant("a")], "message 1 \\(assistant\\): may not come from outside"),
        ([tool_message("a", "look", "t")], "message 0 \\(tool\\): may not come from outside"),
        ([NOTE], "message 0 \\(extension\\)"),
        ([system("s"), user("")], "message 1 \\(user\\): is empty"),
    ],
)
def test_validate_user_input_accepts_only_user_and_system_messages(messages: list[Message], words: str) -> None:
    with pytest.raises(MessageError, match=words):
        validate_user_input(messages)


def test_validate_user_input_takes_what_a_person_sends() -> None:
    chain = Messages().system("s").user("u")

    assert chain.validate_user_input() is chain
