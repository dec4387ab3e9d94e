"""Shortened outputs, digests and stand-in messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.context.estimation import estimate_message, estimate_tokens
from agent_loop.context.splitting import find_pairing_problem, safe_cuts, split
from agent_loop.context.summaries import (
    digest,
    latest_request,
    shorten,
    stand_in_message,
    truncate_to_tokens,
    without_images,
)
from agent_loop.messages import Image, SystemMessage, Text, ToolMessage, user

from .histories import call, lawful_histories, lines, model_text, result, tokens, working
from .history_rules import assert_valid_history


def test_tool_outputs_are_cut_to_their_beginning_and_end() -> None:
    cut = shorten(result("1", lines(100)), 10).text.split("\n")
    assert len(cut) == 11
    assert cut[0].startswith("000000")
    assert cut[5] == "[... 90 lines left out ...]"
    assert cut[-1].startswith("000099")


def test_an_endless_line_is_cut_as_well() -> None:
    assert len(shorten(result("1", "x" * 1_000_000), 50).text) < 50 * 200 + 100


def test_short_outputs_and_other_messages_are_the_same_objects() -> None:
    short, asked = result("1", lines(10)), user(lines(1_000))
    assert shorten(short, 10) is short
    assert shorten(asked, 10) is asked
    assert without_images(asked) is asked
    assert without_images(short) is short


def test_images_of_tools_become_a_text() -> None:
    seen = ToolMessage(tool_call_id="1", name="look", content=(Image("aGk=", "image/png"), Text("a cat")))
    assert without_images(seen).text == "[Image left out.]\na cat"


@given(st.text(max_size=3_000), st.integers(1, 60), st.integers(1, 500))
def test_shortening_never_makes_larger(text: str, max_lines: int, max_characters: int) -> None:
    before = result("1", text)
    assert estimate_message(shorten(before, max_lines, max_characters)) <= estimate_message(before)


@given(st.text(max_size=300), st.integers(-5, 90))
def test_a_cut_text_takes_no_more_than_it_may(text: str, room: int) -> None:
    assert estimate_tokens(truncate_to_tokens(text, room)) <= max(0, room)


def test_a_digest_has_one_line_per_turn_and_no_tool_output() -> None:
    history = [
        user("do it"),
        call("1", "read_file"),
        result("1", "SECRET", "read_file", is_error=True),
        model_text("a\nb " * 99),
    ]
    received = digest(history, 1_000).split("\n")
    assert received[:3] == ["- user: do it", "- assistant: [called read_file]", "- read_file failed"]
    assert received[3].startswith("- assistant: a b a b")
    assert len(received) == 4
    assert len(received[3]) < 200
    assert "SECRET" not in "".join(received)


def test_a_digest_that_would_be_too_long_keeps_the_newest() -> None:
    received = digest([user(f"request {number}") for number in range(100)], 50)
    assert estimate_tokens(received) <= 50
    assert received.endswith("- user: request 99")


def test_earlier_summary_is_part_of_the_next_one() -> None:
    earlier = stand_in_message("- user: first things", "", 1_000)
    assert digest([earlier, model_text("more")], 1_000) == "- user: first things\n- assistant: more"


def test_the_latest_request_is_quoted_where_it_would_be_left_out() -> None:
    middle = [user("old"), user("new"), model_text("yes")]
    assert latest_request(middle, [model_text("working")]) == "new"
    assert latest_request(middle, [user("newest")]) == ""
    again = stand_in_message("", "new", 1_000)
    assert latest_request([again, model_text("yes")], []) == "new"
    assert again.text.endswith("new")
    assert again.origin == "compaction"


def test_what_stands_in_for_others_keeps_to_its_room() -> None:
    assert estimate_tokens(stand_in_message("s" * 9_000, "r" * 400, 300).text) <= 300
    assert stand_in_message("s" * 9_000, "r" * 400, 300).text.endswith("r" * 400)
    assert "r" not in stand_in_message("", "r" * 4_000, 30).text.partition("]")[2]


def test_calls_and_results_are_never_cut_apart() -> None:
    history = [user("x"), model_text("first"), call("1"), result("1"), model_text("y"), user("z")]
    assert safe_cuts(history) == [0, 1, 4, 5, 6]


def test_parallel_calls_with_text_between_results_stay_together() -> None:
    history = [user("x"), call("1"), user("faster", origin="steering"), result("1"), user("z")]
    assert safe_cuts(history) == [0, 1, 4, 5]


def test_ids_that_come_again_belong_to_the_latest_call() -> None:
    assert safe_cuts([*working(1), call("call_0"), result("call_0")]) == [0, 1, 3, 5]


def test_keep_first_and_keep_recent_are_at_least_that_many() -> None:
    parts = split(working(20), 2, 4)
    assert (len(parts.first), len(parts.middle), len(parts.recent)) == (3, 34, 4)
    assert split(working(1), 2, 10).middle == ()
    assert split([], 2, 10).recent == ()


@given(lawful_histories(), st.integers(0, 9), st.integers(0, 9))
def test_each_part_of_a_split_has_whole_pairs(history, first: int, recent: int) -> None:
    parts = split(history, first, recent)
    assert [*parts.first, *parts.middle, *parts.recent] == history
    for part in (parts.first, parts.middle, parts.recent):
        assert_valid_history([user("x"), *part])
    assert all(isinstance(each, SystemMessage) for each in parts.pinned)


@given(lawful_histories())
def test_valid_histories_have_no_problem(history) -> None:
    assert find_pairing_problem(history) is None
    assert tokens(history) > 0


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ([model_text("hi")], "begins with"),
        ([user("x"), result("1")], "answers no call"),
        ([user("x"), call("1")], "has no result"),
        ([user("x"), call("1"), result("1"), result("1")], "answers no call"),
    ],
)
def test_invalid_histories_are_detected(history, problem: str) -> None:
    assert problem in find_pairing_problem(history)
