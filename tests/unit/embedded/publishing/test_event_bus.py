"""The event bus: subscribers, filters, late and slow ones, secrets, threads, and runs that it never delays."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest
from tests.unit.embedded.loop.harness import WAIT, Counted, agent, kinds

from agent_loop import Agent, EventBus, Gap, PublishedEvent, ScriptedProvider, Subscription, tool
from agent_loop.errors import ConfigurationError
from agent_loop.events import (
    LoopEnd,
    LoopEvent,
    Noted,
    OutputProduced,
    SubAgentEvent,
    TextDelta,
    ToolCalled,
    ToolResulted,
)
from agent_loop.messages import ToolCall
from agent_loop.parallel import LoopVariant, run_parallel
from agent_loop.providers.script import call, say
from agent_loop.publishing.published import EVENT_TYPES, QuestionAsked, QuestionClosed, type_of
from agent_loop.subagents import SubAgentTool
from agent_loop.tools.builtin import AskUserTool

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def look(note: str = "") -> str:
    """Look."""
    return "seen by key-1234"


async def run(one: Agent, prompt: str = "go") -> list[LoopEvent]:
    """Run the agent and return the events that its callback received."""
    received: list[LoopEvent] = []

    async def collect(event: LoopEvent) -> None:
        received.append(event)

    with anyio.fail_after(WAIT):
        await one.run(prompt, on_event=collect)
    return received


async def published(bus: EventBus, after: int | None = -1, **filters: Any) -> list[PublishedEvent]:
    """Close the bus and return the events that a late subscriber gets."""
    bus.close()
    return [item for item in await rest(bus.subscribe(after=after, **filters)) if isinstance(item, PublishedEvent)]


async def rest(subscription: AsyncIterator[PublishedEvent | Gap]) -> list[PublishedEvent | Gap]:
    with anyio.fail_after(WAIT):
        return [item async for item in subscription]


def note(text: str, loop_id: str = "s.c.1") -> Noted:
    return Noted(loop_id=loop_id, text=text)


def types_of(items: list[PublishedEvent]) -> list[str]:
    return [type_of(item.event) for item in items]


def texts(items: list[PublishedEvent | Gap] | list[PublishedEvent]) -> list[Any]:
    return [
        (item.first, item.last)
        if isinstance(item, Gap)
        else item.event.text
        if isinstance(item.event, Noted)
        else item.event
        for item in items
    ]


async def test_two_subscribers_get_all_events_of_a_run_in_order_and_numbered() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([call("look"), say("done")]), look, event_bus=bus)
    items: dict[str, list[PublishedEvent]] = {"browser": [], "logger": []}

    async def follow(name: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with bus.subscribe() as events:
            task_status.started()
            async for item in events:
                assert isinstance(item, PublishedEvent)
                items[name].append(item)
                if isinstance(item.event, LoopEnd):
                    return

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            for name in items:
                await tasks.start(follow, name)
            received = await run(one)
    for each in items.values():
        assert [item.event for item in each] == received
        assert [item.number for item in each] == list(range(len(received)))
        assert {item.session_id for item in each} == {one.session_id}


async def test_late_subscriber_gets_what_the_buffer_has_after_its_number() -> None:
    bus = EventBus()
    for number in range(5):
        bus.publish("s", note(str(number)))
    live = bus.subscribe()
    bus.publish("s", note("5"))
    bus.close()
    assert texts(await rest(bus.subscribe(after=2))) == ["3", "4", "5"]
    assert texts(await rest(bus.subscribe(after=-1))) == ["0", "1", "2", "3", "4", "5"]
    assert texts(await rest(live)) == ["5"]


async def test_subscriber_behind_the_buffer_gets_one_gap_and_continues() -> None:
    bus = EventBus(buffer=3)
    slow = bus.subscribe()
    for number in range(10):
        bus.publish("s", note(str(number)))
    with anyio.fail_after(WAIT):
        assert texts([await anext(slow) for _ in range(3)]) == [(0, 6), "7", "8"]
    for number in range(10, 12):
        bus.publish("s", note(str(number)))
    bus.close()
    assert texts(await rest(slow)) == ["9", "10", "11"]
    assert texts(await rest(bus.subscribe(after=4))) == [(5, 8), "9", "10", "11"]
    assert texts(await rest(bus.subscribe(after=-1))) == [(0, 8), "9", "10", "11"]


async def test_reader_keeps_up_with_bursts_between_two_checkpoints() -> None:
    bus = EventBus(buffer=40)
    items: list[PublishedEvent | Gap] = []

    async def follow(subscription: Subscription) -> None:
        items.extend(await rest(subscription))

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, bus.subscribe())
            for number in range(800):
                bus.publish("s", note(str(number)))
                if number % 20 == 19:  # fewer turns of the event loop than events
                    for _ in range(10):
                        await anyio.lowlevel.checkpoint()
            bus.close()
    assert texts(items) == [str(number) for number in range(800)]


async def test_reader_of_a_full_buffer_can_be_cancelled() -> None:
    bus = EventBus()
    for number in range(1000):
        bus.publish("s", note(str(number)))
    count = 0
    with anyio.CancelScope() as scope:
        async for _ in bus.subscribe(after=-1):
            count += 1
            scope.cancel()
    assert count < 100


async def test_filtered_subscriber_that_waits_has_no_gap() -> None:
    bus = EventBus(buffer=2)
    subscription = bus.subscribe(session="quiet")
    found: list[Any] = []

    async def follow() -> None:
        found.append(await anext(subscription))

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for number in range(9):
                while subscription.position < number:
                    await anyio.lowlevel.checkpoint()
                bus.publish("noisy", note(str(number)))
            bus.publish("quiet", note("here"))
    assert texts(found) == ["here"]


async def test_subscriber_that_raises_or_leaves_does_not_end_the_run() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([call("look"), say("done")]), look, event_bus=bus)
    seen: list[Any] = []

    async def fail(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with bus.subscribe() as events:
            task_status.started()
            seen.append(await anext(events))
            raise ValueError("broken")

    async def guarded(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        with pytest.raises(ValueError, match="broken"):
            await fail(task_status=task_status)

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            await tasks.start(guarded)
            result = await one.run("go")
    assert (result.status, len(seen)) == ("completed", 1)


async def test_stalled_subscriber_does_not_delay_the_run_and_costs_no_memory() -> None:
    bus = EventBus(buffer=10)
    stalled = bus.subscribe()
    one = agent(ScriptedProvider([say("word " * 500)]), event_bus=bus)
    received = await run(one)
    assert len(received) > 20
    bus.close()
    items = await rest(stalled)
    assert (texts(items)[0], len(items)) == ((0, len(received) - 11), 11)


async def test_filters_select_session_loop_and_type() -> None:
    bus = EventBus()
    ids = Counted()
    first, second = (agent(ScriptedProvider([say("a"), say("b")]), event_bus=bus, counted=ids) for _ in range(2))
    for each in (first, second, first):
        await run(each)
    second_session = second.session_id
    every = await published(bus)
    loop = first.session.loops[1].loop_id
    assert {item.session_id for item in await published(bus, session=second_session)} == {second_session}
    of_loop = await published(bus, loop=loop)
    assert types_of(of_loop)[0] == "loop_start"
    assert {item.event.loop_id for item in of_loop} == {loop}  # type: ignore[union-attr]
    ends = await published(bus, types={"loop_end", "final"}, session=first.session_id)
    assert types_of(ends) == ["final", "loop_end"] * 2
    assert sum(item.session_id == second_session for item in every) < len(every)


async def test_events_of_sub_agents_are_published_once_with_their_ids() -> None:
    bus = EventBus()
    model = ScriptedProvider([call("delegate", task="count"), call("look"), say("three"), say("{{result}}")])
    one = agent(model, look, SubAgentTool(), event_bus=bus)
    received = await run(one)
    every = await published(bus)
    assert [item.event for item in every] == received
    inner = [item.event for item in every if isinstance(item.event, SubAgentEvent)]
    session, loop = inner[0].subagent_id, inner[0].event.loop_id
    of_session = await published(bus, session=session)
    assert types_of(of_session)[:2] == ["sub_agent_start", "sub_agent_event"]
    assert [item.event for item in await published(bus, loop=loop)] == inner
    assert bus.knows(session)


async def test_events_of_parallel_loops_are_published_once() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider(), event_bus=bus)
    received: list[Any] = []

    async def collect(event: Any) -> None:
        received.append(event)

    with anyio.fail_after(WAIT):
        await run_parallel(
            one, "go", [LoopVariant(provider=ScriptedProvider([text])) for text in ("a", "b")], on_event=collect
        )
    every = await published(bus)
    assert [item.event for item in every] == received
    assert [types_of(every)[0], types_of(every)[-1]] == ["parallel_loop_start", "parallel_loop_end"]


async def test_secrets_are_replaced_in_published_events_only() -> None:
    bus = EventBus(secrets=["key-1234", ""])
    one = agent(ScriptedProvider([call("look", note='"key-1234"'), say("it was key-1234")]), look, event_bus=bus)
    received = await run(one)
    every = await published(bus)
    assert types_of(every) == kinds(received)
    assert "key-1234" not in msgspec.json.encode([item.event for item in every]).decode()
    results = [item.event.message.text for item in every if isinstance(item.event, ToolResulted)]
    calls = [item.event.call.arguments for item in every if isinstance(item.event, ToolCalled)]
    assert (results[0], calls[0]) == ("seen by (redacted)", {"note": '"(redacted)"'})
    assert "key-1234" in one.messages[-1].text


async def test_event_that_cannot_be_searched_for_secrets_is_withheld() -> None:
    bus = EventBus(secrets=["key-1234"])
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    bus.publish("s", OutputProduced(loop_id="s.c.1", value=deep))
    assert texts(await published(bus)) == ["an event 'output' is not shown: it cannot be redacted"]


async def test_secrets_are_replaced_in_names_and_values_of_arguments() -> None:
    bus = EventBus(secrets=["key-1234"])
    bus.publish("s", ToolCalled(loop_id="s.c.1", call=ToolCall("1", "set", {"key-1234": 1, "type": "key-1234"})))
    (item,) = await published(bus)
    arguments = {"(redacted)": 1, "type": "(redacted)"}
    assert item.event == ToolCalled(loop_id="s.c.1", call=ToolCall("1", "set", arguments))


async def test_event_whose_format_contains_a_secret_is_withheld() -> None:
    bus = EventBus(secrets=["tool_call"])
    bus.publish("s", ToolCalled(loop_id="s.c.1", call=ToolCall("1", "set", {})))
    assert texts(await published(bus)) == ["an event 'tool_call' is not shown: it cannot be redacted"]


async def test_close_ends_waiting_subscribers_and_later_runs_are_not_published() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([say("a")]), event_bus=bus)
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(rest, bus.subscribe())
            await anyio.wait_all_tasks_blocked()
            bus.close()
    assert kinds(await run(one))[-1] == "loop_end"
    assert await rest(bus.subscribe(after=-1)) == []


async def test_closing_a_subscription_ends_the_wait_of_its_reader() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rest, subscription)
            await anyio.wait_all_tasks_blocked()
            subscription.close()
    bus.publish("s", note("later"))
    assert await rest(subscription) == []


async def test_cancelled_subscriber_leaves_nothing_behind() -> None:
    bus = EventBus()
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rest, bus.subscribe())
            await anyio.wait_all_tasks_blocked()
            assert len(bus._waiters) == 1
            tasks.cancel_scope.cancel()
    assert not bus._waiters


async def test_run_in_another_thread_reaches_a_subscriber() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([say("hello")]), event_bus=bus)
    subscription = bus.subscribe(types=["loop_end"])
    thread = threading.Thread(target=one.run_sync, args=("go",), daemon=True)
    with anyio.fail_after(WAIT):
        thread.start()
        item = await anext(subscription)
        await anyio.to_thread.run_sync(thread.join)
    assert isinstance(item, PublishedEvent)
    assert isinstance(item.event, LoopEnd)


async def test_abort_from_another_thread_ends_the_active_run() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider([say("word " * 50, wait="never", wait_after_chunks=3)]), event_bus=bus)
    assert not bus.abort(one.session_id, "nothing runs")
    subscription = bus.subscribe(types=["text_delta", "loop_end"])
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.attempt, "go")
            assert isinstance((await anext(subscription)).event, TextDelta)  # type: ignore[union-attr]
            assert bus.active_agent(one.session_id) is one
            assert await anyio.to_thread.run_sync(bus.abort, one.session_id, "enough")
    assert bus.active_agent(one.session_id) is None
    bus.close()
    assert [item.event.status for item in await rest(subscription) if isinstance(item.event, LoopEnd)] == ["aborted"]  # type: ignore[union-attr]


def asking(bus: EventBus, **options: Any) -> Agent:
    """Return an agent whose model asks the user, and repeats the answer."""
    model = ScriptedProvider([call("ask_user", question="Which?", options=["a", "b"]), say("{{result}}")])
    return agent(model, AskUserTool(), event_bus=bus, **options)


async def question_of(subscription: Subscription) -> QuestionAsked:
    item = await anext(subscription)
    assert isinstance(item, PublishedEvent)
    assert isinstance(item.event, QuestionAsked)
    return item.event


async def test_question_of_a_tool_is_published_and_answered_once() -> None:
    bus = EventBus(answers=True)
    one = asking(bus)
    subscription = bus.subscribe(types=["question_asked"])
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run, "go")
            asked = await question_of(subscription)
            assert not bus.answer("other", asked.question_id, "a")
            answers = [await anyio.to_thread.run_sync(bus.answer, one.session_id, asked.question_id, "b") for _ in "12"]
    assert (asked.question, asked.options, asked.loop_id) == ("Which?", ("a", "b"), one.session.loops[0].loop_id)
    assert answers == [True, False]
    assert one.messages[-1].text == "b"
    closed = await published(bus, types=["question_closed"])
    assert [item.event for item in closed] == [
        QuestionClosed(loop_id=asked.loop_id, question_id=asked.question_id, is_answered=True)
    ]


async def test_end_of_the_run_closes_its_question() -> None:
    bus = EventBus(answers=True)
    one = asking(bus)
    subscription = bus.subscribe(types=["question_asked"])
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.attempt, "go")
            asked = await question_of(subscription)
            one.abort()
    assert not bus.answer(one.session_id, asked.question_id, "a")
    (closed,) = await published(bus, types=["question_closed"])
    assert isinstance(closed.event, QuestionClosed)
    assert not closed.event.is_answered


async def test_question_of_a_closed_bus_is_an_error_for_the_model() -> None:
    bus = EventBus(answers=True)
    one = asking(bus)
    subscription = bus.subscribe(types=["question_asked"])
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run, "go")
            await question_of(subscription)
            bus.close()
        assert "the event bus is closed" in one.messages[-1].text
        after = asking(bus)
        await after.run("go")
    assert "the event bus is closed" in after.messages[-1].text


async def test_without_answers_nobody_can_be_asked_and_an_own_callback_takes_precedence() -> None:
    async def answer(question: str, options: tuple[str, ...]) -> str:
        return options[0]

    silent, own = asking(EventBus()), asking(EventBus(answers=True), ask=answer)
    with anyio.fail_after(WAIT):
        await silent.run("go")
        await own.run("go")
    assert "no user is available" in silent.messages[-1].text
    assert own.messages[-1].text == "a"


async def test_bus_knows_the_sessions_of_its_agents_and_of_its_buffer() -> None:
    bus = EventBus()
    one = agent(ScriptedProvider(), event_bus=bus)
    before = one.session_id
    assert (bus.knows(before), bus.knows("other")) == (True, False)
    one.new_session()
    assert (bus.knows(before), bus.knows(one.session_id)) == (False, True)
    bus.publish("other", note("x"))
    assert bus.knows("other")


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"types": ["text_delta", "txt"]}, "types: got 'txt'; use a collection of .*text_delta"),
        ({"types": "text_delta"}, "types: got 'text_delta'"),
        ({"after": 3}, "after: got 3; the bus published 1 events"),
        ({"after": -2}, "after: got -2"),
    ],
)
def test_unknown_filters_are_errors(filters: dict[str, Any], message: str) -> None:
    bus = EventBus()
    bus.publish("s", note("0"))
    with pytest.raises(ConfigurationError, match=message):
        bus.subscribe(**filters)


def test_buffer_without_events_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 event"):
        EventBus(buffer=0)


def test_types_are_those_of_the_wire_form() -> None:
    assert {"text_delta", "loop_end", "sub_agent_event", "parallel_loop_start"} < EVENT_TYPES
    assert isinstance(EventBus().subscribe(types=EVENT_TYPES), Subscription)
