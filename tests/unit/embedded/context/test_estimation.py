"""Token estimates of texts, messages, tools and conversations."""

import pytest

from agent_loop.context import ContextManager, ContextTracker, Estimator, estimate_message, estimate_tokens
from agent_loop.context.estimation import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_overhead, estimate_tools
from agent_loop.messages import AssistantMessage, ExtensionMessage, Image, Thinking, ToolCall, UserMessage, user
from agent_loop.providers import ToolDefinition

from .histories import settings, working

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("x" * 4_000, 1_000), ("漢字漢字", 3), ("\ud800", 1)]
)
def test_estimate_tokens_is_four_characters_to_the_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_estimate_tokens_of_a_message_counts_the_raw_arguments() -> None:
    small = AssistantMessage(content=(ToolCall("1", "edit", {}, "{}"),))
    large = AssistantMessage(content=(ToolCall("1", "edit", {}, "x" * 400),))
    assert estimate_message(large) - estimate_message(small) == 99
    assert estimate_message(AssistantMessage(content=(ToolCall("1", "edit", {"text": "x" * 400}),))) > 100


def test_images_count_alike_and_notes_of_the_application_not_at_all() -> None:
    assert estimate_message(UserMessage(content=(Image("x" * 9_999, "image/png"),))) == IMAGE_TOKENS + MESSAGE_TOKENS
    assert estimate_message(ExtensionMessage(kind="note", data="x" * 400)) == 0


def test_reasoning_counts_with_its_signature() -> None:
    message = AssistantMessage(content=(Thinking("x" * 40, signature="s" * 40), Thinking("", redacted="r" * 40)))
    assert estimate_message(message) == MESSAGE_TOKENS + 30


def test_tools_and_the_system_prompt_are_overhead() -> None:
    tool = ToolDefinition("read_file", "Reads a file.", {"type": "object"})
    assert estimate_overhead("x" * 400, [tool]) == 100 + estimate_tools([tool])
    assert estimate_tools([tool, tool]) == 2 * estimate_tools([tool]) > 10


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, message) -> int:
        self.calls += 1
        return estimate_message(message)


@pytest.mark.slow
async def test_a_history_of_ten_thousand_messages_is_estimated_once() -> None:
    measure = Counted()
    manager = ContextManager(settings(max_context_tokens=10**9), estimator=Estimator(measure))
    history = working(5_000)
    for turn in range(50):
        await manager.fit(history)
        history = [*history, user(f"go on {turn}")]
    assert measure.calls == 10_001 + 49


async def test_compacting_a_long_history_estimates_each_message_a_bounded_number_of_times() -> None:
    counts = []
    for turns in (500, 1_000):
        measure = Counted()
        manager = ContextManager(settings(), estimator=Estimator(measure))
        history = working(turns, "x" * 400)
        for _ in range(10):
            await manager.fit(history)
        counts.append(measure.calls)
    assert counts[1] <= 2 * counts[0] + 100


def test_estimates_of_messages_that_are_gone_are_forgotten() -> None:
    estimator = Estimator()
    for _ in range(30):
        last = [user("x") for _ in range(100)]
        estimator.total(last)
        estimator.retain_only(last)
    assert len(estimator._estimates) <= 1_200
    assert estimator.total(last) == 500


def test_context_tracker_combines_reported_tokens_with_estimates_of_what_came_since() -> None:
    tracker, history = ContextTracker(), [user("x" * 4_000)]
    assert tracker.used(history) == 1_004
    tracker.record(700, history)
    assert tracker.used(history) == 700
    assert tracker.used([*history, user("y" * 40)]) == 714


def test_context_tracker_takes_the_overhead_off_what_was_reported() -> None:
    tracker, history = ContextTracker(), [user("x" * 400)]
    tracker.record(600, history, 500)
    assert tracker.used(history) == 100


def test_context_tracker_after_a_reset_estimates_at_the_scale_of_the_provider() -> None:
    tracker, history = ContextTracker(), [user("x" * 40_000)]
    tracker.record(20_008, history)
    tracker.reset()
    assert tracker.scale == 2.0
    assert tracker.used([user("x" * 400)]) == 208


def test_context_tracker_does_not_believe_in_absurd_counts() -> None:
    tracker, history = ContextTracker(), [user("x" * 40_000)]
    tracker.record(0, history)
    assert tracker.used(history) == 10_004
    tracker.record(10**9, history)
    assert tracker.scale == 4.0
    assert tracker.used([user("x" * 4)]) == 10**9
