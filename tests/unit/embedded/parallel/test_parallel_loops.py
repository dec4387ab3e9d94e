"""Parallel loops: isolation, selection, failures, aborts, and what the session keeps."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.loop.harness import WAIT, agent

from agent_evaluation import Selection
from agent_loop import Agent, MemorySessionStore, ScriptedProvider, Usage, resume, tool
from agent_loop.errors import AbortedError, ConfigurationError, ProviderError, RunInProgressError
from agent_loop.events import LoopEnd, LoopEvent, ParallelEvent, ParallelLoopEnd, ParallelLoopStart
from agent_loop.parallel import Evaluation, LoopVariant, ParallelLoopOutcome, ParallelLoopResult, run_parallel
from agent_loop.providers.script import call, say
from agent_loop.state import Todo
from agent_loop.tools.builtin import default_tools
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio


def answering(*steps: Any, model: str = "script") -> ScriptedProvider:
    return ScriptedProvider(steps, model=model)


def tokens(text: str, count: int) -> Any:
    return say(text, usage=Usage(input_tokens=count, cost_usd=count / 1000))


async def in_parallel(one: Agent, *providers: Any, prompt: Any = "go", **options: Any) -> ParallelLoopResult:
    variants = [each if isinstance(each, LoopVariant) else LoopVariant(provider=each) for each in providers]
    with anyio.fail_after(WAIT):
        return await run_parallel(one, prompt, variants, **options)


async def test_selected_loop_continues_the_session_and_the_others_stay_on_record() -> None:
    store = MemorySessionStore()
    own = answering("hello", say("next"))
    one = agent(own, store=store)
    with anyio.fail_after(WAIT):
        await one.run("hi")
    result = await in_parallel(
        one, answering(tokens("long", 90)), answering(tokens("short", 10)), strategy="token-efficient"
    )

    assert result.selected is not None
    assert (result.selected.index, result.selected.result.text) == (1, "short")
    assert [message.text for message in one.messages] == ["hi", "hello", "go", "short"]  # type: ignore[union-attr]
    stored = await resume(store, one.session.session_id)
    loser, winner = (stored.get_loop(outcome.loop_id) for outcome in result.outcomes)
    assert loser is not None
    assert winner is not None
    assert (loser.messages[-1].text, winner.messages[-1].text) == ("long", "short")  # type: ignore[union-attr]
    assert loser.parent_loop_id == winner.parent_loop_id == stored.loops[0].loop_id
    assert stored.head() is winner
    assert winner.parallel_group is not None
    assert loser.parallel_group is not None
    assert (winner.parallel_group.is_selected, loser.parallel_group.is_selected) == (True, False)
    assert winner.parallel_group.loop_ids == (loser.loop_id, winner.loop_id)
    assert stored.parallel_siblings(winner.loop_id) == [loser]
    assert stored.parallel_siblings(stored.loops[0].loop_id) == []
    assert stored.total_usage().input_tokens == 100
    resumed = agent(answering("next"), session=stored)
    with anyio.fail_after(WAIT):
        await resumed.run("more")
    assert [message.text for message in resumed.messages][2:] == ["go", "short", "more", "next"]  # type: ignore[union-attr]
    assert resumed.session.loops[-1].parent_loop_id == winner.loop_id


async def test_selected_loop_that_started_first_is_the_head_of_the_session() -> None:
    store = MemorySessionStore()
    one = agent(answering(), store=store)
    await in_parallel(one, answering("first"), answering("second"), strategy="pick-first")
    stored = await resume(store, one.session.session_id)
    assert [message.text for message in stored.history()] == ["go", "first"]  # type: ignore[union-attr]


async def test_loops_share_the_context_and_neither_messages_nor_state() -> None:
    @tool(risk="low")
    def mark(name: str, context: ToolContext) -> str:
        """Mark."""
        context.state.todos.append(Todo(name, name))
        return ",".join(todo.id for todo in context.state.todos)

    one = agent(answering("hello"), mark)
    with anyio.fail_after(WAIT):
        await one.run("hi")
    one.session.state.todos = [Todo("0", "before")]
    first, second = answering(call("mark", name="a"), "A"), answering(call("mark", name="b"), "B")
    result = await in_parallel(one, first, second, strategy="pick-first", max_concurrency=1)

    assert [outcome.original_context_len for outcome in result.outcomes] == [2, 2]
    for provider, name in ((first, "a"), (second, "b")):
        texts = [getattr(message, "text", "") for message in provider.requests[-1].messages]
        assert texts == ["hi", "hello", "go", "", f"0,{name}"]
    assert [todo.id for todo in one.session.state.todos] == ["0", "a"]


async def test_failure_of_one_loop_does_not_end_the_others() -> None:
    one = agent(answering())
    result = await in_parallel(one, answering(ProviderError("broken")), answering("fine"), strategy="pick-first")
    assert isinstance(result.outcomes[0].result.error, ProviderError)
    assert result.selected is not None
    assert result.selected.result.text == "fine"
    assert result.selection.excluded == {result.outcomes[0].loop_id: "unjudged, and its run did not complete: failed"}


async def test_without_a_usable_outcome_the_conversation_stays_as_it_was() -> None:
    one = agent(answering("hello", "again"))
    with anyio.fail_after(WAIT):
        await one.run("hi")
        result = await in_parallel(one, *(answering(ProviderError("broken")) for _ in range(2)))
        assert (result.selected, result.selection.note) == (None, "no run completed")
        assert len(one.messages) == 2
        await one.run("hi again")
    last = one.session.loops[-1]
    assert (last.parent_loop_id, last.base) == (one.session.loops[0].loop_id, 2)


async def test_events_name_their_loop_and_lie_between_start_and_end_of_the_group() -> None:
    received: list[LoopEvent | ParallelEvent] = []

    async def on_event(event: LoopEvent | ParallelEvent) -> None:
        received.append(event)

    one = agent(answering())
    result = await in_parallel(one, answering("a"), answering("b"), on_event=on_event)
    start, *inner, end = received
    ids = tuple(outcome.loop_id for outcome in result.outcomes)
    assert isinstance(start, ParallelLoopStart)
    assert isinstance(end, ParallelLoopEnd)
    assert start.loop_ids == end.loop_ids == ids
    assert (end.selected_loop_id, end.selected_index) == (ids[0], 0)
    assert len(set(ids)) == 2
    assert {event.loop_id for event in inner if not isinstance(event, ParallelEvent)} == set(ids)


async def test_calls_that_write_are_blocked_without_a_workspace_of_their_own(tmp_path: Path) -> None:
    asked: list[str] = []
    write = call("write_file", path="new.txt", content="x")
    own = tmp_path / "own"
    own.mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    one = agent(
        answering(),
        *default_tools(),
        workspace=Workspace(shared),
        hooks={"tool:gate": lambda gate: None if gate.block else asked.append(gate.name)},
    )
    result = await in_parallel(
        one,
        answering(write, say("{{result}}")),
        LoopVariant(provider=answering(write, "written"), workspace=own),
    )
    assert "several loops work on these files" in result.outcomes[0].result.text
    assert not (shared / "new.txt").exists()
    assert (own / "new.txt").read_text() == "x"
    assert asked == ["write_file"]


async def test_one_configuration_may_write(tmp_path: Path) -> None:
    one = agent(answering(), *default_tools(), workspace=tmp_path)
    await in_parallel(one, answering(call("write_file", path="new.txt", content="x"), "ok"), strategy="transparent")
    assert (tmp_path / "new.txt").exists()


async def test_at_most_max_concurrency_loops_run_at_the_same_time() -> None:
    running = most = 0

    @tool(read_only=True)
    async def work() -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return "done"

    one = agent(answering(), work)
    await in_parallel(one, *(answering(call("work"), "ok") for _ in range(5)), max_concurrency=2)
    assert most == 2


async def test_abort_ends_all_loops_and_leaves_the_session_where_it_was() -> None:
    providers = [answering(say("never", wait="gate")) for _ in range(2)]
    store = MemorySessionStore()
    one = agent(answering("hello"), store=store)
    with anyio.fail_after(WAIT):
        await one.run("hi")

        async def abort() -> None:
            for provider in providers:
                await provider.reached("gate")
            assert one.is_running
            with pytest.raises(RunInProgressError):
                await one.run("meanwhile")
            one.abort("enough")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort)
            with pytest.raises(AbortedError, match="enough"):
                await in_parallel(one, *providers, answering("queued"), max_concurrency=2)
    stored = await store.load(one.session.session_id)
    assert [loop.status for loop in stored.loops] == ["completed", "aborted", "aborted"]
    assert [message.text for message in stored.history()] == ["hi", "hello"]  # type: ignore[union-attr]
    assert not one.is_running


async def test_cancellation_ends_all_loops_and_records_their_end() -> None:
    provider, other = answering(say("never", wait="gate")), answering("done")
    one = agent(answering())
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await in_parallel(one, provider, other)

            tasks.start_soon(run)
            await provider.reached("gate")
            tasks.cancel_scope.cancel()
    assert {loop.status for loop in one.session.loops} <= {"completed", "aborted"}
    assert one.session.loops[0].status == "aborted"
    assert one.messages == ()
    assert not one.is_running


async def test_session_of_a_process_that_ended_before_the_selection_continues_from_before_the_loops() -> None:
    store = MemorySessionStore()
    one = agent(answering("hello"), store=store)
    snapshots = []

    async def on_event(event: LoopEvent | ParallelEvent) -> None:
        if isinstance(event, LoopEnd):
            snapshots.append(await resume(store, one.session.session_id))

    with anyio.fail_after(WAIT):
        await one.run("hi")
    await in_parallel(one, answering("a"), answering("b"), on_event=on_event)
    assert len(snapshots) == 2
    for stored in snapshots:
        assert [message.text for message in stored.history()] == ["hi", "hello"]  # type: ignore[union-attr]


async def test_exception_of_the_subscriber_ends_all_loops_and_is_raised_unchanged() -> None:
    waiting = answering(say("never", wait="gate"))

    async def on_event(event: LoopEvent | ParallelEvent) -> None:
        if isinstance(event, LoopEnd):
            raise LookupError("mine")  # noqa: TRY004  # any exception

    one = agent(answering())
    with pytest.raises(LookupError, match="mine"):
        await in_parallel(one, waiting, answering("b"), on_event=on_event)
    assert {loop.status for loop in one.session.loops} == {"aborted", "completed"}


async def test_empty_prompt_continues_a_history_that_ends_with_a_user_message() -> None:
    one = agent(answering(ProviderError("broken")))
    with pytest.raises(ProviderError):
        await one.run("hi")
    result = await in_parallel(one, answering("a"), answering("b"), prompt=())
    assert [message.text for message in one.messages] == ["hi", "a"]  # type: ignore[union-attr]
    assert one.session.loops[-1].continuation_kind == "default"
    assert result.outcomes[0].original_context_len == 1


@pytest.mark.parametrize(
    ("strategy", "winner"), [("pick-first", 0), ("token-efficient", 1), ("elaborate", 2), ("cheapest", 1)]
)
async def test_strategies_of_the_shared_package_select(strategy: str, winner: int) -> None:
    one = agent(answering())
    result = await in_parallel(one, *(answering(tokens("x", n)) for n in (20, 10, 30)), strategy=strategy)
    assert result.selected is not None
    assert result.selected.index == winner
    assert result.usage.input_tokens == 60


async def test_checks_decide_before_the_strategy() -> None:
    async def mentions_b(outcome: ParallelLoopOutcome) -> bool:
        return "b" in outcome.result.text

    one = agent(answering())
    result = await in_parallel(one, answering("a"), answering("b"), checks={"b": mentions_b})
    assert result.selected is not None
    assert result.selected.index == 1
    assert [outcome.verdict().verdict for outcome in result.outcomes] == ["fail", "pass"]


class _Longest:
    async def evaluate(self, outcomes: Any) -> Evaluation:
        best = max(outcomes, key=lambda outcome: len(outcome.result.text))
        selection = Selection(strategy="longest", winner=best.loop_id, note="the longest", ranking=(best.loop_id,))
        return Evaluation(selection, Usage(input_tokens=5))


async def test_strategy_of_the_caller_selects_or_is_refused() -> None:
    class Invents:
        async def evaluate(self, outcomes: Any) -> Evaluation:
            return Evaluation(Selection(strategy="invents", winner="none.such.1", note="", ranking=()))

    one = agent(answering())
    result = await in_parallel(one, answering("a"), answering("bbb"), strategy=_Longest())
    assert result.selected is not None
    assert result.selected.result.text == "bbb"
    assert one.session.total_usage().input_tokens == 5
    with pytest.raises(ConfigurationError, match=r"none\.such"):
        await in_parallel(one, answering("a"), strategy=Invents())


async def test_unusable_arguments_are_refused_before_anything_runs() -> None:
    one = agent(answering())
    for options, message in (
        ({"strategy": "best"}, "no strategy is named 'best'"),
        ({"strategy": "transparent"}, "selects nothing among 2"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"prompt": " "}, "the prompt is empty"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            await in_parallel(one, answering("a"), answering("b"), **options)
    with pytest.raises(ConfigurationError, match="at least one"):
        await in_parallel(one)
    assert one.session.loops == []
    assert not one.is_running
