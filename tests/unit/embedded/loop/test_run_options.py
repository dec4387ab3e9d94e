"""The effect of each option of `Behavior` on requests, events and stored sessions."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop.agent import Agent
from agent_loop.behavior import (
    DEFAULT_CONTEXT_TOKENS,
    DEFAULTS,
    Behavior,
    ContextSettings,
    ExecutionLimits,
    RetrySettings,
    ThinkingDecay,
    ToolBudget,
)
from agent_loop.context import Compaction
from agent_loop.errors import ConfigurationError, ContextExceededError
from agent_loop.events import BudgetExceeded, ContextCompacted, ContextFilling, MessageInjected
from agent_loop.messages import Image, Message, Text, ToolMessage, UserMessage, user
from agent_loop.providers import NO_CACHE, CacheSettings
from agent_loop.tools.tool import ToolResult
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio


def results(messages: Any) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def looks(count: int, tool: str = "look", **arguments: Any) -> list[Any]:
    """Return answers that call a tool this often, one after the other, and then end."""
    return [*(reply("", calls(tool, str(number), **arguments)) for number in range(count)), reply("ok")]


# -- defaults and precedence ----------------------------------------------------------------------------------------


def test_defaults_of_the_behavior_are_those_of_the_seeds() -> None:
    options = {name: getattr(DEFAULTS, name) for name in DEFAULTS.__slots__}
    assert options["max_iterations"] == 200
    assert options["limits"] == ExecutionLimits(max_turns=50, max_total_tokens=1_000_000, max_duration=600.0)
    assert (options["max_tokens"], options["cache"], options["tool_choice"]) == (16_384, CacheSettings(), "auto")
    assert (options["dedup_reads"], options["require_read_before_edit"]) == (True, False)
    assert (options["read_line_numbers"], options["elide_stale_reads"]) == (True, False)
    assert (options["tool_execution"], options["steering_mode"], options["follow_up_mode"]) == (
        "parallel", "one_at_a_time", "one_at_a_time",
    )  # fmt: skip
    for off in (
        "thinking",
        "thinking_decay",
        "tool_output_budget",
        "output_schema",
        "persist_threshold",
        "persist_dir",
    ):
        assert options[off] is None
    assert (options["dedup_tools"], options["tool_budgets"], options["persist_exclude_tools"]) == ({}, {}, frozenset())


def test_defaults_of_compaction_are_those_of_the_seeds() -> None:
    settings = ContextSettings()
    assert (DEFAULT_CONTEXT_TOKENS, settings.system_prompt_tokens) == (100_000, 4_000)
    assert settings.max_context_tokens is None  # the window of the model
    assert (settings.keep_recent, settings.keep_first, settings.tool_output_max_lines) == (10, 2, 50)
    assert (settings.tail_threshold, settings.tail_keep_turns) == (128 * 1024, 4)


def test_defaults_of_retries_are_those_of_the_seeds() -> None:
    settings = RetrySettings()
    assert (settings.max_retries, settings.initial_delay, settings.multiplier, settings.max_delay) == (
        3,
        1.0,
        2.0,
        30.0,
    )
    assert settings.jitter == 0.2


async def test_option_precedence_is_run_then_agent_then_defaults_field_by_field() -> None:
    model = FakeProvider(reply("ok"), repeat=True)
    one = Agent(model, behavior=Behavior(max_tokens=100, temperature=0.5))
    await streamed(one, behavior=Behavior(temperature=0.0))
    await streamed(one)
    sent = [(request.settings.max_tokens, request.settings.temperature) for request in model.requests]
    assert sent == [(100, 0.0), (100, 0.5)]
    assert one.behavior.max_iterations == DEFAULTS.max_iterations


@pytest.mark.parametrize(
    "wrong",
    [
        Behavior(max_iterations=0),
        Behavior(batch_size=0),
        Behavior(retry=RetrySettings(max_retries=-1)),
        Behavior(context=ContextSettings(keep_recent=0)),
        Behavior(persist_threshold=1),
    ],
)
def test_behavior_that_cannot_be_is_refused_at_construction(wrong: Behavior) -> None:
    with pytest.raises(ConfigurationError):
        Agent(FakeProvider(), behavior=wrong)


# -- what is sent ---------------------------------------------------------------------------------------------------


async def test_settings_of_the_model_reach_the_request() -> None:
    model = FakeProvider(reply("ok"))
    options: dict[str, Any] = {"max_tokens": 7, "temperature": 0.1, "top_p": 0.2, "top_k": 3, "thinking": "low"}
    behavior = Behavior(**options, request_timeout=9.0, cache=NO_CACHE, tool_choice="required")
    await streamed(agent(model, FakeTool("look"), behavior=behavior, aliases={"look": "Look"}))
    (request,) = model.requests
    assert {name: getattr(request.settings, name) for name in options} == options
    assert (request.settings.timeout, request.settings.cache, request.tool_choice) == (9.0, NO_CACHE, "required")
    assert [definition.name for definition in request.tools] == ["Look"]


async def test_thinking_decay_lowers_the_budget_of_later_turns_of_a_run() -> None:
    model = FakeProvider(*looks(3))
    behavior = Behavior(thinking_budget=800, thinking_decay=ThinkingDecay(after_turn=1, factor=0.5, floor=300))
    await streamed(agent(model, FakeTool("look"), behavior=behavior))
    assert [request.settings.thinking_budget for request in model.requests] == [800, 400, 300, 300]


async def test_tool_aliases_are_visible_to_the_model_only() -> None:
    names: list[str] = []
    model = FakeProvider(reply("", calls("Look")), reply("ok"))
    hooks = {"tool:gate": lambda context: names.append(context.name)}
    one = agent(model, FakeTool("look"), aliases={"look": "Look"}, hooks=hooks)
    _, result = await streamed(one)
    assert (names, results(result.messages)) == (["look"], ["ok"])
    assert [m.tool_calls[0].name for m in one.messages if getattr(m, "tool_calls", ())] == ["look"]
    assert model.requests[1].messages[1].tool_calls[0].name == "Look"


async def test_images_of_a_stored_history_become_text_for_a_model_without_vision() -> None:
    picture = ToolResult((Image("aGk=", "image/png"),))
    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look", lambda: picture))
    await streamed(one, UserMessage(content=(Text("see"), Image("aGk=", "image/png"))))
    one.provider = blind = FakeProvider(reply("I cannot see."), vision=False)
    await streamed(one, "more")
    assert not any(isinstance(block, Image) for m in blind.requests[0].messages for block in m.content)
    assert sum(isinstance(block, Image) for m in one.messages for block in m.content) == 2
    marker = "[image omitted: image/png, 4 base64 characters; this model accepts no images]"
    assert blind.requests[0].messages[0].text == f"see\n{marker}"


async def test_elide_stale_reads_changes_the_request_and_not_the_history() -> None:
    model = FakeProvider(
        reply("", calls("read_file", "1", path="a")), reply("", calls("write_file", "2", path="a")), reply("ok")
    )
    tools = [
        FakeTool("read_file", lambda path: f"{path}: " + "x" * 500),
        FakeTool("write_file", lambda path: f"{path} written"),
    ]
    one = agent(model, *tools, behavior=Behavior(elide_stale_reads=True))
    await streamed(one)
    assert "x" * 500 in results(model.requests[1].messages)[0]
    assert "x" * 500 not in results(model.requests[2].messages)[0]
    assert "x" * 500 in results(one.messages)[0]


# -- the context ----------------------------------------------------------------------------------------------------

SMALL = ContextSettings(max_context_tokens=600, system_prompt_tokens=0, keep_recent=2, keep_first=1)


async def test_context_over_budget_is_compacted_and_reported_and_history_stays() -> None:
    def answer(request: Any) -> Any:
        asked = request.purpose == "turn" and len(turns) < 6
        turns.extend([request] * asked)
        return reply("", calls("look", str(len(turns))), usage=Usage(cost_usd=0.0)) if asked else reply("A word.")

    turns: list[Any] = []
    one = agent(
        FakeProvider(answer, repeat=True), FakeTool("look", lambda: "line\n" * 200), behavior=Behavior(context=SMALL)
    )
    received, result = await streamed(one)
    compacted = [event for event in received if isinstance(event, ContextCompacted)]
    assert compacted
    assert all(event.tokens_after < event.tokens_before for event in compacted)
    assert result.status == "completed"
    assert "line\n" * 200 in results(one.messages)[0]


async def test_nearly_full_context_is_reported() -> None:
    one = agent(FakeProvider(reply("ok")), behavior=Behavior(context=SMALL))
    received, _ = await streamed(one, "x" * 4 * 560)
    filling = next(event for event in received if isinstance(event, ContextFilling))
    assert (filling.max_tokens, 0.85 * 600 <= filling.used_tokens <= 600) == (600, True)


async def test_context_overflow_recovery_asks_again_with_less() -> None:
    history = FakeProvider(*looks(3))
    one = agent(history, FakeTool("look", lambda: "line\n" * 300))
    await streamed(one)
    one.provider = model = FakeProvider(ContextExceededError("too long"), reply("A summary."), reply("ok"))
    received, result = await streamed(
        one, "more", behavior=Behavior(context=ContextSettings(keep_recent=1, keep_first=1))
    )
    turns = [request for request in model.requests if request.purpose == "turn"]
    sizes = [sum(len(message.text) for message in request.messages) for request in turns]
    assert sizes[1] < sizes[0]
    assert any(isinstance(event, ContextCompacted) for event in received)
    assert result.status == "completed"


async def test_without_compaction_a_context_overflow_ends_the_run_with_its_kind() -> None:
    model = FakeProvider(ContextExceededError("too long"))
    one = agent(model, behavior=Behavior(context=ContextSettings(strategy="off")))
    received, result = await streamed(one)
    assert (len(model.requests), received[-1].error_kind, result.status) == (1, "context_exceeded", "failed")


async def test_a_compaction_strategy_of_the_application_is_used() -> None:
    class LastOnly:
        async def compact(self, messages: Any, budget: int) -> Compaction:
            kept: tuple[Message, ...] = (user("What came before is left out."),)
            return Compaction(kept, "last-only")

    one = agent(FakeProvider(reply("ok")), compaction=LastOnly(), behavior=Behavior(context=SMALL))
    received, _ = await streamed(one, "x" * 8_000)
    assert [event.tier for event in received if isinstance(event, ContextCompacted)] == ["last-only"]


# -- tools ----------------------------------------------------------------------------------------------------------


async def test_persist_threshold_puts_large_results_on_the_disk_in_a_run(tmp_path: Path) -> None:
    behavior = Behavior(persist_threshold=100, persist_dir=str(tmp_path / "results"))
    one = agent(FakeProvider(*looks(1)), FakeTool("look", lambda: "y" * 5_000), behavior=behavior)
    _, result = await streamed(one)
    assert results(result.messages)[0].startswith('<persisted-output tool="look" bytes="5000"')
    assert [path.read_text() for path in tmp_path.rglob("*.txt")] == ["y" * 5_000]  # noqa: ASYNC240  # nobody waits


@pytest.mark.parametrize("mode", ["block", "steer"])
async def test_tool_budgets_of_a_run_block_or_steer_and_are_reported(mode: Any) -> None:
    seen: list[tuple[str, int, str]] = []
    one = agent(
        FakeProvider(*looks(2)),
        FakeTool("look"),
        behavior=Behavior(tool_budgets={"look": ToolBudget(max_calls=1, on_exceed=mode, message="Enough.")}),
        hooks={"tool-budget:exceeded": lambda c: seen.append((c.tool, c.count, c.mode))},
    )
    received, result = await streamed(one)
    assert seen == [("look", 2, mode)]
    assert [(e.budget, e.limit, e.used, e.tool) for e in received if isinstance(e, BudgetExceeded)] == [
        ("tool_calls", 1, 2, "look")
    ]
    assert results(result.messages) == ["ok", "Blocked: Enough." if mode == "block" else "ok"]
    options = [e.message.text for e in received if isinstance(e, MessageInjected) and e.message.origin == "budget"]
    assert options == ([] if mode == "block" else ["Enough."])


async def test_dedup_tools_of_a_run_replay_with_transform_and_after() -> None:
    fired: list[str] = []
    tool = FakeTool("look", lambda **_: f"seen {len(tool.seen)}")
    one = agent(
        FakeProvider(*looks(2, path="a")),
        tool,
        behavior=Behavior(dedup_tools={"look": str}),
        hooks={
            name: lambda _, name=name: fired.append(name) for name in ("tool:before", "tool:transform", "tool:after")
        },
    )
    _, result = await streamed(one)
    assert results(result.messages) == ["seen 1", "seen 1"]
    assert fired == ["tool:before", "tool:transform", "tool:after", "tool:transform", "tool:after"]


async def test_tool_choice_none_without_tools() -> None:
    model = FakeProvider(reply("ok"))
    await streamed(agent(model))
    assert (model.requests[0].tools, model.requests[0].tool_choice) == ((), "none")
