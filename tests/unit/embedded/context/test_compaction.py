"""Compaction of histories in tiers."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.context.compaction import TieredCompaction
from agent_loop.context.splitting import split
from agent_loop.context.summaries import MARKER, SUMMARY
from agent_loop.messages import Image, SystemMessage, ToolMessage, user

from .histories import call, lawful_histories, lines, model_text, settings, tokens, working
from .history_rules import assert_valid_history

pytestmark = pytest.mark.anyio


async def compacted(history, budget: int, summarize=None, **known):
    with anyio.fail_after(60):
        made = await TieredCompaction(settings(**known), summarize).compact(history, budget)
    assert made is not None
    return made


async def test_compact_messages_tier_1_truncates_tool_outputs() -> None:
    history = working(20, lines(200))
    made = await compacted(history, tokens(history) // 2)
    assert made.tier == "tool_outputs"
    assert len(made.messages) == len(history)
    assert made.messages[-4:] == tuple(history[-4:])
    assert made.messages[:3] == tuple(history[:3])
    assert "150 lines left out" in made.messages[4].text


async def test_compact_messages_tier_2_summarizes_old_turns() -> None:
    asked = []

    async def summarize(messages) -> str:
        await anyio.lowlevel.checkpoint()
        asked.append(messages)
        return "The tests were run often."

    history = working(300)
    made = await compacted(history, tokens(history) // 4, summarize)
    assert made.tier == "summary"
    assert made.summary == "The tests were run often."
    assert [each.text for each in made.messages if each.text.startswith(SUMMARY)] == [
        f"{SUMMARY}\nThe tests were run often."
    ]
    assert tokens(asked[0]) <= tokens(history) // 4
    assert asked[0][-1] == history[-5]


async def test_compact_messages_tier_2_without_a_summarizer_is_a_digest() -> None:
    history = working(300)
    made = await compacted(history, tokens(history) // 3)
    assert made.tier == "summary"
    assert made.summary.endswith("- assistant: [called execute]")
    assert tokens(made.messages) <= tokens(history) // 3


async def test_failing_summarizer_is_replaced_by_a_digest_and_reported() -> None:
    async def summarize(_messages) -> str:
        raise OSError("the line is dead")

    history = working(300)
    made = await compacted(history, tokens(history) // 3, summarize)
    assert "[called execute]" in made.summary
    assert made.summary_failure == "OSError: the line is dead"


async def test_compact_messages_tier_3_keeps_first_and_recent_and_drops_the_middle() -> None:
    history = [
        user("Fix it"),
        model_text("Yes"),
        *(model_text("x" * 400) if n % 2 else user("y" * 400) for n in range(40)),
    ]
    kept = (*history[:2], *history[-4:])
    made = await compacted(history, tokens(kept) + 40)
    assert made.tier == "middle"
    assert made.messages == (*history[:2], user(MARKER, origin="compaction"), *history[-4:])


async def test_kept_outputs_are_cut_if_they_exceed_the_budget() -> None:
    history = working(4, lines(2_000))
    made = await compacted(history, 4_000)
    assert tokens(made.messages) <= 4_000
    assert made.messages[0] == history[0]
    assert_valid_history(made.messages)


async def test_fewer_messages_are_kept_than_wished_where_it_must_be() -> None:
    history = working(40, "x" * 900)
    made = await compacted(history, 300, keep_recent=30)
    assert tokens(made.messages) <= 300
    assert "Fix the tests" in made.messages[0].text
    assert_valid_history(made.messages)


async def test_pictures_of_tools_go_when_nothing_else_helps() -> None:
    seen = ToolMessage(tool_call_id="1", name="look", content=(Image("aGk=", "image/png"),) * 3)
    made = await compacted([user("look"), call("1", "look"), seen], 1_000)
    assert tokens(made.messages) < 100


async def test_instructions_in_the_middle_stay() -> None:
    rule = SystemMessage(content="Never push.")
    history = [*working(50), rule, *[each for turn in range(9) for each in (user(f"{turn}"), model_text("ok"))]]
    made = await compacted(history, 200)
    assert rule in made.messages


async def test_a_person_whose_request_is_left_out_is_quoted() -> None:
    history = [user("hello"), model_text("hi"), user("Rename the module"), *working(200)[1:]]
    made = await compacted(history, 600)
    assert any(each.text.endswith("Rename the module") for each in made.messages)


async def test_the_summarizer_is_not_asked_about_next_to_nothing() -> None:
    async def summarize(_messages) -> str:
        raise AssertionError("asked")

    history = [user("a"), model_text("b"), user("c"), model_text("d"), *working(3, lines(200))[1:]]
    made = await compacted(history, 5_000, summarize, keep_recent=6)
    assert made.summary_failure == ""


@pytest.mark.slow
@given(
    history=lawful_histories(),
    budget=st.integers(1, 3_000),
    keep_first=st.integers(0, 4),
    keep_recent=st.integers(1, 12),
    summary=st.none() | st.text(max_size=2_000),
)
def test_any_valid_history_stays_valid_and_fits_if_the_kept_part_fits(
    history, budget: int, keep_first: int, keep_recent: int, summary: str | None
) -> None:
    async def summarize(_messages) -> str:
        return summary or ""

    known = settings(keep_first=keep_first, keep_recent=keep_recent, tool_output_max_lines=3)
    strategy = TieredCompaction(known, None if summary is None else summarize)
    before = list(history)
    made = anyio.run(strategy.compact, history, budget)
    assert history == before
    parts = split(history, keep_first, keep_recent)
    pinned = (*parts.first, *parts.pinned, user(MARKER), *parts.recent)
    assert made is not None
    assert_valid_history(made.messages)
    if tokens(pinned) <= budget:
        assert tokens(made.messages) <= budget
