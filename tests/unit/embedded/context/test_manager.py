"""Selection of the messages to send, and its persistence."""

from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.context import Compaction, ContextManager
from agent_loop.context.overlay import Overlay, load_overlay, save_overlay
from agent_loop.errors import MessageError
from agent_loop.messages import Message, ToolCall, assistant, tool_message, user
from agent_loop.messages.formatting import encode_json
from agent_loop.state import AgentState
from agent_loop.usage import Usage

from .histories import call, lawful_histories, lines, model_text, result, settings, tokens, working
from .history_rules import assert_valid_history

pytestmark = pytest.mark.anyio


async def test_fitting_history_is_sent_unchanged() -> None:
    history = working(3)
    fitted = await ContextManager(settings()).fit(history)
    assert fitted.messages == tuple(history)
    assert fitted.compaction is None
    assert not fitted.is_filling
    assert not fitted.is_exhausted


async def test_effective_budget_is_max_context_tokens_less_system_prompt_tokens() -> None:
    history = [user("a"), *(model_text("x" * 396) for _ in range(1)), user("y" * 2_330), model_text("z")]
    known = settings(max_context_tokens=1_000, system_prompt_tokens=300, keep_recent=1, keep_first=0)
    assert 690 < tokens(history) <= 700
    assert (await ContextManager(known).fit(history)).compaction is None
    assert (await ContextManager(known).fit([*history, user("xxxxxxxx" * 6)])).compaction is not None


async def test_the_window_of_the_provider_counts_where_it_is_smaller() -> None:
    history = working(60)
    assert (await ContextManager(settings()).fit(history)).compaction is None
    fitted = await ContextManager(settings(), window=500).fit(history)
    assert fitted.max_tokens == 500
    assert fitted.compaction is not None
    assert fitted.used_tokens <= 500


async def test_overhead_counts_as_used_and_against_the_reserve() -> None:
    history = working(60)
    assert (await ContextManager(settings()).fit(history, overhead_tokens=10)).used_tokens == tokens(history) + 10
    assert (await ContextManager(settings()).fit(history, overhead_tokens=1_500)).compaction is not None


async def test_the_context_is_filling_at_85_percent() -> None:
    manager = ContextManager(settings(max_context_tokens=1_000))
    assert not (await manager.fit([user("x" * 3_380)])).is_filling
    assert (await manager.fit([user("x" * 3_384)])).is_filling


async def test_what_the_provider_counts_decides() -> None:
    manager, history = ContextManager(settings()), working(20)
    await manager.fit(history, overhead_tokens=100)
    manager.record(Usage(input_tokens=1_000, cache_read_tokens=1_050), len(history))
    history = [*history, user("go on")]
    assert (await manager.fit(history, overhead_tokens=100)).compaction is not None


async def test_what_the_provider_counts_of_a_compacted_history_is_believed_too() -> None:
    manager, history = ContextManager(settings()), working(200)
    sent = (await manager.fit(history)).messages
    manager.record(Usage(input_tokens=1_234), len(sent))
    assert (await manager.fit(history)).used_tokens == 1_234


async def test_counts_for_another_history_are_not_believed() -> None:
    manager, history = ContextManager(settings()), working(2)
    await manager.fit(history)
    manager.record(Usage(input_tokens=9_000), 99)
    assert (await manager.fit(history)).used_tokens == tokens(history)


async def test_compaction_overlays_are_used_again_so_that_the_cached_prefix_stays() -> None:
    asked = 0

    async def summarize(_messages) -> str:
        nonlocal asked
        asked += 1
        await anyio.lowlevel.checkpoint()
        return "Much was done."

    manager, history = ContextManager(settings(), summarize=summarize), working(200)
    with anyio.fail_after(60):
        first = await manager.fit(history)
        assert first.compaction is not None
        assert first.compaction.tier == "summary"
        assert first.compaction.tokens_after < first.compaction.tokens_before
        for turn in range(5):
            history = [*history, call(f"more_{turn}"), result(f"more_{turn}")]
            again = await manager.fit(history)
            assert again.compaction is None
            assert again.messages[: len(first.messages)] == first.messages
            assert again.messages[-1] is history[-1]
    assert asked == 1


async def test_an_overlay_is_extended_when_it_no_longer_fits() -> None:
    manager, history = ContextManager(settings()), working(150)
    whole, compactions = list(history), 0
    for turn in range(300):
        history = [*history, call(f"more_{turn}"), result(f"more_{turn}", "x" * 80)]
        fitted = await manager.fit(history)
        compactions += fitted.compaction is not None
        assert fitted.used_tokens <= 2_000
        assert fitted.messages[0] is history[0]
        assert_valid_history(fitted.messages)
    assert 2 <= compactions <= 40
    assert history[: len(whole)] == whole


async def test_another_history_is_not_sent_with_the_overlay_of_the_last_one() -> None:
    manager, history = ContextManager(settings()), working(200)
    await manager.fit(history)
    branch = [user("Something else"), *working(3)[1:]]
    assert (await manager.fit(branch)).messages == tuple(branch)
    assert manager.save(branch) is None


async def test_overlays_are_saved_with_the_session_and_reused_after_loading() -> None:
    manager, history = ContextManager(settings()), working(200, lines(3))
    before = await manager.fit(history)
    state = AgentState(extra={"context": manager.save(history)})
    assert "Fix the tests" not in str(state.extra["context"])
    stored = msgspec.json.decode(msgspec.json.encode(state), type=AgentState)
    again = ContextManager(settings())
    assert again.load(stored.extra["context"], history)
    after = await again.fit(history)
    assert after.messages == before.messages
    assert after.compaction is None


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"fingerprint": "", "covered": 0, "parts": [0]},
        {"fingerprint": 1},
        {"covered": -1, "parts": [], "fingerprint": ""},
    ],
)
async def test_invalid_overlay_data_is_ignored(plain) -> None:
    manager, history = ContextManager(settings()), working(2)
    assert not manager.load(plain, history)
    assert (await manager.fit(history)).messages == tuple(history)


def test_saved_overlays_of_another_history_are_ignored() -> None:
    history = working(3)
    plain = save_overlay(Overlay(2, (history[0], user("between"))), history)
    assert load_overlay(plain, history) == Overlay(2, (history[0], user("between")))
    assert load_overlay(plain, [user("else"), *history[1:]]) is None
    assert load_overlay(plain, history[:1]) is None


async def test_context_overflow_recovery_shrinks_clearly_each_time_or_is_exhausted() -> None:
    manager, history = ContextManager(settings(max_context_tokens=100_000)), working(40, lines(80))
    used, forced = (await manager.fit(history)).used_tokens, 0
    while not (fitted := await manager.fit(history, force=True)).is_exhausted:
        assert fitted.used_tokens <= used * 0.9
        assert_valid_history(fitted.messages)
        used, forced = fitted.used_tokens, forced + 1
        assert forced < 30
    assert forced >= 3
    assert fitted.used_tokens < 300


async def test_after_an_overflow_the_size_that_was_refused_is_not_tried_again() -> None:
    manager, history = ContextManager(settings(max_context_tokens=100_000)), working(100)
    refused = (await manager.fit(history)).used_tokens
    await manager.fit(history, force=True)
    for turn in range(100):
        history = [*history, call(f"more_{turn}"), result(f"more_{turn}")]
        assert (await manager.fit(history)).used_tokens < refused


async def test_a_single_request_that_is_too_long_cannot_be_made_smaller() -> None:
    history = [user("x" * 40_000)]
    manager = ContextManager(settings())
    assert (await manager.fit(history)).messages == tuple(history)
    fitted = await manager.fit(history, force=True)
    assert fitted.is_exhausted
    assert fitted.compaction is None


async def test_compact_strategy_off_changes_nothing() -> None:
    history = working(400)
    manager = ContextManager(settings(strategy="off"))
    assert (await manager.fit(history)).messages == tuple(history)
    assert (await manager.fit(history, force=True)).is_exhausted


async def test_compact_strategy_tail_stubs_old_outputs_and_reports_it_once() -> None:
    history = working(10, "x" * 1_000)
    manager = ContextManager(settings(strategy="tail", tail_threshold=5_000, tail_keep_turns=2))
    fitted = await manager.fit(history)
    assert fitted.compaction is not None
    assert fitted.compaction.tier == "tail"
    assert [len(each.text) > 500 for each in fitted.messages[2::2]] == [False] * 8 + [True] * 2
    assert (await manager.fit(history)).compaction is None


async def test_compact_strategy_tail_recovers_from_an_overflow_too() -> None:
    history = working(10, "x" * 1_000)
    fitted = await ContextManager(settings(strategy="tail")).fit(history, force=True)
    assert not fitted.is_exhausted
    assert fitted.used_tokens < tokens(history) * 0.8


class Own:
    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.given: list[int] = []

    async def compact(self, messages, budget: int) -> Compaction | None:
        self.given.append(budget)
        return Compaction((user("In short."), *messages[-self.kept :]), "own") if self.kept else None


async def test_compaction_strategy_of_the_application() -> None:
    own, history = Own(2), working(200)
    fitted = await ContextManager(settings(), strategy=own).fit(history)
    assert fitted.messages == (user("In short."), *history[-2:])
    assert fitted.compaction is not None
    assert fitted.compaction.tier == "own"
    assert own.given == [pytest.approx(2_000, abs=1)]


async def test_strategy_that_separates_pairs_raises() -> None:
    with pytest.raises(MessageError, match="'own' made a conversation that cannot be sent: the tool result"):
        await ContextManager(settings(), strategy=Own(1)).fit(working(200))


async def test_a_strategy_that_cannot_help_changes_nothing() -> None:
    history = working(200)
    assert (await ContextManager(settings(), strategy=Own(0)).fit(history)).messages == tuple(history)


@pytest.mark.slow
@given(history=lawful_histories(20), window=st.integers(100, 1_500), forced=st.lists(st.booleans(), max_size=8))
def test_growing_history_is_sent_valid_within_budget_and_unchanged(history, window, forced) -> None:
    async def play() -> None:
        manager = ContextManager(settings(keep_recent=3, tool_output_max_lines=3), window=window)
        again = ContextManager(settings(keep_recent=3, tool_output_max_lines=3), window=window)
        for count, force in enumerate(forced, 1):
            part = history[: max(1, len(history) * count // len(forced))]
            while part and _torn(part):
                part = part[:-1]
            if not part:
                continue
            fitted = await manager.fit(part, force=force)
            assert_valid_history(fitted.messages)
            assert tokens(fitted.messages) <= tokens(part)
            plain = manager.save(part)
            if plain is not None:
                assert again.load(msgspec.json.decode(msgspec.json.encode(plain)), part)

    before = list(history)
    anyio.run(play)
    assert history == before


def _torn(history) -> bool:
    try:
        assert_valid_history(history)
    except (AssertionError, IndexError):
        return True
    return False


async def test_an_empty_history_is_nothing_to_compact() -> None:
    fitted = await ContextManager(settings()).fit([], force=True)
    assert fitted.messages == ()
    assert fitted.is_exhausted


async def test_an_overlay_of_odd_messages_is_saved_and_found_again() -> None:
    """Unpaired surrogates, and details that are no plain data."""
    manager = ContextManager(settings())
    odd = tool_message("odd", "look", "half \ud800", details={"where": Path("/x")})
    history = [user("begin \ud800"), assistant("", ToolCall("odd", "look")), odd, *working(200, lines(3))]
    before = await manager.fit(history)
    assert before.compaction is not None
    kept = AgentState(extra={"context": manager.save(history)})
    stored = msgspec.json.decode(encode_json(kept), type=AgentState)
    again = msgspec.json.decode(encode_json(history), type=list[Message])
    assert ContextManager(settings()).load(stored.extra["context"], again)
