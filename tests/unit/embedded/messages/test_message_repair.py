"""Repair of interrupted conversations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.strategies import conversations, messages

from agent_loop.messages import (
    ABORTED,
    SKIPPED,
    AssistantMessage,
    ExtensionMessage,
    Message,
    ToolCall,
    answer_unanswered,
    answers_to,
    assistant,
    tool_message,
    unanswered,
    user,
    validate,
)
from agent_loop.messages.validation import has_content

A, B = ToolCall("a", "look"), ToolCall("b", "write")


def test_calls_at_the_end_get_error_results_in_order() -> None:
    history = [user("u"), assistant("", A, B)]

    assert unanswered(history) == (A, B)
    assert answer_unanswered(history, timestamp=7) == [
        *history,
        tool_message("a", "look", ABORTED, is_error=True, timestamp=7),
        tool_message("b", "write", ABORTED, is_error=True, timestamp=7),
    ]


def test_calls_in_the_middle_get_their_results_before_the_next_message() -> None:
    history = [assistant("", A, B), tool_message("b", "write", "done"), user("go on")]

    assert answer_unanswered(history, SKIPPED) == [
        assistant("", A, B),
        tool_message("b", "write", "done"),
        tool_message("a", "look", SKIPPED, is_error=True),
        user("go on"),
    ]


def test_a_result_without_a_call_becomes_a_note_that_holds_it() -> None:
    repaired = answer_unanswered([user("u"), tool_message("a", "look", "secret of the depths")])

    assert isinstance(repaired[1], ExtensionMessage)
    assert repaired[1].kind == "dropped"
    assert repaired[1].data["tool_call_id"] == "a"
    assert repaired[1].data["content"][0]["text"] == "secret of the depths"


def test_answer_interrupted_before_its_first_token_becomes_a_note() -> None:
    nothing = AssistantMessage(content=(), stop_reason="aborted", error="told to")
    repaired = answer_unanswered([user("u"), nothing])

    assert isinstance(repaired[1], ExtensionMessage)
    assert repaired[1].data["error"] == "told to"


def test_skipped_calls_are_answered_without_a_history() -> None:
    assert [message.text for message in answers_to((A, B), SKIPPED)] == [SKIPPED, SKIPPED]


@pytest.mark.parametrize("text", [ABORTED, SKIPPED])
def test_text_for_the_model_begins_with_the_specified_word(text: str) -> None:
    assert text.startswith(("Aborted: ", "Skipped: "))


@given(history=conversations(), data=st.data())
def test_every_prefix_of_a_valid_history_validates_after_repair(history: list[Message], data: st.DataObject) -> None:
    prefix = history[: data.draw(st.integers(0, len(history)))]
    repaired = answer_unanswered(prefix)

    validate(repaired)
    assert repaired[: len(prefix)] == prefix
    assert len(repaired) == len(prefix) + len(unanswered(prefix))


@given(history=conversations(), data=st.data())
def test_valid_history_with_messages_removed_validates_after_repair(
    history: list[Message], data: st.DataObject
) -> None:
    kept = [message for message in history if data.draw(st.booleans())]

    validate(answer_unanswered(kept))


@pytest.mark.slow
@given(history=conversations())
def test_complete_history_stays_unchanged(history: list[Message]) -> None:
    assert answer_unanswered(history) == history
    assert unanswered(history) == ()


@given(anything=st.lists(messages, max_size=8))
def test_repair_loses_no_message_and_a_second_one_changes_nothing(anything: list[Message]) -> None:
    repaired = answer_unanswered(anything)

    assert answer_unanswered(repaired) == repaired
    assert [m for m in repaired if isinstance(m, AssistantMessage)] == [
        m for m in anything if isinstance(m, AssistantMessage) and has_content(m)
    ]
    assert len(repaired) == len(anything) + len(unanswered(anything))
