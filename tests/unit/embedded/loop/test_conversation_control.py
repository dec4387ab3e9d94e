"""Steering, follow-ups, aborting, continuing and limiting runs."""

from pathlib import Path

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, Counted, agent, kinds, streamed

from agent_loop.behavior import Behavior, ExecutionLimits, RetrySettings, ToolExecution
from agent_loop.errors import ConfigurationError, NetworkError, ProviderError, RateLimitedError
from agent_loop.events import LoopEnd, LoopStart, MessageInjected, Retrying, TextSaid, ToolCalled, TurnStart
from agent_loop.loop.inputs import Pass, Reject, Warn
from agent_loop.messages import ToolMessage, UserMessage
from agent_loop.sessions.resume import fork
from agent_loop.usage import Usage
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio


def texts(messages: object, origin: str) -> list[str]:
    return [m.text for m in messages if isinstance(m, UserMessage) and m.origin == origin]


@pytest.mark.parametrize("execution", ["sequential", "parallel"])
async def test_steering_skips_the_tools_that_have_not_begun(execution: ToolExecution) -> None:
    def look() -> str:
        one.steer("Stop looking, listen.")
        return "seen"

    model = FakeProvider(reply("", calls("look"), calls("look", "2"), calls("look", "3")), reply("I listen."))
    one = agent(model, FakeTool("look", look), behavior=Behavior(tool_execution=execution))
    _, result = await streamed(one)
    answers = [m.text for m in result.messages if isinstance(m, ToolMessage)]
    assert answers == ["seen", *["Skipped: the user sent a new message; handle it first."] * 2]
    assert texts(result.messages, "steering") == ["Stop looking, listen."]
    assert result.text == "I listen."


async def test_session_records_its_working_directory(tmp_path: Path) -> None:
    one = agent(FakeProvider(reply("ok")), workspace=Workspace(tmp_path))
    await streamed(one)
    assert one.session.cwd == str(tmp_path)
    assert fork(one.session, "other").cwd == str(tmp_path)
    assert agent(FakeProvider(reply("ok"))).session.cwd is None


async def test_steering_at_the_end_makes_the_run_continue() -> None:
    def steer(_: object) -> object:
        if not one.steering:
            one.steer("And the tests?")
        return reply("Finished.")

    one = agent(FakeProvider(steer, reply("The tests pass.")))
    received, result = await streamed(one)
    assert [e.text for e in received if isinstance(e, TextSaid)] == ["Finished."]
    assert result.text == "The tests pass."


@pytest.mark.parametrize(("mode", "turns"), [("one_at_a_time", 3), ("all", 2)])
async def test_follow_ups_are_taken_when_the_agent_would_stop(mode: str, turns: int) -> None:
    one = agent(FakeProvider(reply("1"), reply("2"), reply("3")), behavior=Behavior(follow_up_mode=mode))
    one.follow_up("second")
    one.follow_up("third")
    _, result = await streamed(one, "first")
    assert texts(result.messages, "follow_up") == ["second", "third"]
    assert (result.turns, result.text) == (turns, str(turns))


@pytest.mark.parametrize(("mode", "taken"), [("one_at_a_time", [1, 1]), ("all", [2])])
async def test_queue_mode_selects_how_many_messages_are_taken_at_once(mode: str, taken: list[int]) -> None:
    one = agent(FakeProvider(reply("ok"), repeat=True), behavior=Behavior(steering_mode=mode))
    one.steer("a")
    one.steer("b")
    received, _ = await streamed(one)
    injected: list[int] = []
    for event in received:
        if isinstance(event, MessageInjected) and event.message.origin == "steering":
            injected.append(1) if not injected or injected[-1] == 0 else injected.append(injected.pop() + 1)
        elif isinstance(event, TurnStart):
            injected.append(0)
    assert [count for count in injected if count] == taken


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (ExecutionLimits(max_turns=2), "turns"),
        (ExecutionLimits(max_total_tokens=30), "tokens"),
        (ExecutionLimits(max_cost_usd=0.02), "cost"),
        (ExecutionLimits(max_duration=0.0), "duration"),
    ],
)
async def test_execution_limits_stop_the_run_with_a_message_and_no_error(limits: ExecutionLimits, limit: str) -> None:
    def look(_: object) -> object:
        look.count = getattr(look, "count", 0) + 1
        usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.01)
        return reply("", calls("look", f"c{look.count}"), usage=usage)

    received, result = await streamed(
        agent(FakeProvider(look, repeat=True), FakeTool("look"), behavior=Behavior(limits=limits))
    )
    assert result.status == "limited"
    assert result.error is None
    assert result.turns == (0 if limit == "duration" else 2)
    assert texts(result.messages, "limit")[0].startswith("[Agent stopped: ")
    reached = next(e for e in received if e.__struct_config__.tag == "limit_reached")
    assert reached.limit == limit


async def test_the_time_limit_ends_a_tool_that_hangs() -> None:
    async def for_ever() -> None:
        await anyio.sleep_forever()

    one = agent(
        FakeProvider(reply("", calls("wait"))),
        FakeTool("wait", for_ever),
        behavior=Behavior(limits=ExecutionLimits(max_duration=0.05)),
    )
    _, result = await streamed(one)
    assert result.status == "limited"
    assert next(m for m in result.messages if isinstance(m, ToolMessage)).text.startswith(
        "Aborted: the time limit of 0.05 seconds"
    )


async def test_before_turn_limits_count_over_retries_of_one_turn_as_one() -> None:
    model = FakeProvider(NetworkError("gone"), reply("ok"))
    _, result = await streamed(agent(model))
    assert (result.turns, len(model.requests)) == (1, 2)


async def test_retryable_errors_are_retried_and_reported() -> None:
    counted = Counted()
    model = FakeProvider(RateLimitedError("slow down", retry_after=7.0), NetworkError("gone"), reply("ok"))
    received, result = await streamed(agent(model, counted=counted))
    retries = [event for event in received if isinstance(event, Retrying)]
    assert [(r.attempt, r.max_attempts, r.kind) for r in retries] == [(2, 3, "rate_limited"), (3, 3, "network")]
    assert (counted.slept[0], result.text) == (7.0, "ok")


@pytest.mark.parametrize("error", [ProviderError("bad request"), ValueError("a bug in a provider")])
async def test_other_errors_fail_at_once_and_end_the_stream_properly(error: Exception) -> None:
    model = FakeProvider(error)
    received, result = await streamed(agent(model))
    assert (result.status, len(model.requests)) == ("failed", 1)
    assert isinstance(received[-1], LoopEnd)
    assert (received[-1].error_kind, str(error) in str(received[-1].error)) == ("provider", True)
    assert kinds(received)[-2] == "turn_end"


async def test_run_raises_the_typed_error_of_the_provider() -> None:
    one = agent(
        FakeProvider(RateLimitedError("no", retry_after=3.0)), behavior=Behavior(retry=RetrySettings(max_retries=0))
    )
    with anyio.fail_after(WAIT), pytest.raises(RateLimitedError) as caught:
        await one.run("go")
    assert caught.value.retry_after == 3.0


async def test_an_input_filter_rejects_before_anything_is_asked() -> None:
    model = FakeProvider(reply("never"))
    received, result = await streamed(agent(model, input_filters=[lambda _: Reject("no secrets, please")]))
    assert (result.status, result.rejection, model.requests) == ("rejected", "no secrets, please", [])
    assert kinds(received) == ["loop_start", "input_rejected", "loop_end"]
    assert result.messages == ()


async def test_input_filter_warns_the_model_and_the_run_continues() -> None:
    async def careful(text: str) -> Warn:
        return Warn(f"{len(text)} characters")

    model = FakeProvider(reply("ok"))
    received, result = await streamed(agent(model, input_filters=[lambda _: Pass(), careful]))
    assert model.requests[0].messages[-1].text == "go\n[Warning: 2 characters]"
    assert "input_warning" in kinds(received)
    assert result.status == "completed"


async def test_loops_are_numbered_by_session_and_configuration_and_linked_to_their_parents() -> None:
    one = agent(FakeProvider(reply("ok"), repeat=True), config_id="plain")
    (first, *_), _ = await streamed(one)
    (second, *_), _ = await streamed(one, "more")
    assert isinstance(first, LoopStart)
    assert isinstance(second, LoopStart)
    session = one.session.session_id
    assert (first.loop_id, first.parent_loop_id) == (f"{session}.plain.1", None)
    assert (second.loop_id, second.parent_loop_id) == (f"{session}.plain.2", first.loop_id)


async def test_default_continuation_keeps_the_whole_history() -> None:
    model = FakeProvider(ProviderError("broke"), reply("Recovered."))
    one = agent(model)
    await streamed(one, "do it")
    with anyio.fail_after(WAIT):
        async with one.continue_stream() as events:
            received = [event async for event in events]
    assert events.result is not None
    assert (events.result.text, received[0].continuation_kind) == ("Recovered.", "default")
    assert [e.trigger for e in received if isinstance(e, TurnStart)] == ["continuation"]
    assert [m.text for m in one.messages] == ["do it", "Recovered."]


async def test_continuing_after_a_final_answer_is_refused() -> None:
    one = agent(FakeProvider(reply("Done.")))
    await streamed(one)
    with anyio.fail_after(WAIT), pytest.raises(ConfigurationError, match="nothing to continue"):
        await one.continue_run()
    assert [m.text for m in one.messages] == ["go", "Done."]


async def test_rerun_repeats_the_last_prompt_in_an_equivalent_context() -> None:
    model = FakeProvider(reply("First."), reply("Second."))
    one = agent(model)
    await streamed(one, "try")
    with anyio.fail_after(WAIT):
        result = await one.continue_run("rerun")
    assert [m.text for m in one.messages] == ["try", "Second."]
    assert [len(request.messages) for request in model.requests] == [1, 1]
    session = one.session
    assert [m.text for m in session.history(session.loops[0].loop_id)] == ["try", "First."]
    assert [m.text for m in session.history()] == ["try", "Second."]
    assert result.text == "Second."


async def test_branch_continues_from_an_earlier_message() -> None:
    one = agent(FakeProvider(reply("A"), reply("B"), reply("C")))
    await streamed(one, "one")
    await streamed(one, "two")
    with anyio.fail_after(WAIT):
        async with one.continue_stream("branch", at=2, prompt="other") as events:
            received = [event async for event in events]
    assert [e.trigger for e in received if isinstance(e, TurnStart)] == ["branch"]
    assert [m.text for m in one.messages] == ["one", "A", "other", "C"]
    assert [m.text for m in one.session.history(one.session.loops[1].loop_id)] == ["one", "A", "two", "B"]


async def test_messages_are_saved_and_restored() -> None:
    one = agent(FakeProvider(reply("A"), reply("B")))
    await streamed(one)
    other = agent(FakeProvider(reply("C")))
    other.restore_messages(one.save_messages())
    assert other.messages == one.messages
    await streamed(other, "more")
    assert [m.text for m in other.session.history()] == ["go", "A", "more", "C"]


async def test_reset_and_new_session_begin_anew() -> None:
    one = agent(FakeProvider(reply("A"), repeat=True))
    await streamed(one)
    first = one.session.session_id
    one.follow_up("later")
    one.reset()
    assert (one.messages, bool(one.follow_ups)) == ((), False)
    second = one.session.session_id
    assert len({first, second, one.new_session()}) == 3


async def test_an_idle_session_is_rotated() -> None:
    counted = Counted()
    one = agent(FakeProvider(reply("A"), repeat=True), counted=counted)
    await streamed(one)
    first = one.session.session_id
    assert one.check_and_rotate(3600) is None
    counted.ticks += 3_700_000
    assert one.check_and_rotate(3600) == one.session.session_id != first
    assert one.session.formation == "inactivity"


@pytest.mark.parametrize(("strategy", "together"), [("parallel", 6), ("batched", 2), ("sequential", 1)])
async def test_tool_execution_strategies_run_so_many_at_once(strategy: str, together: int) -> None:
    running, most = 0, 0

    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return "ok"

    wanted = [calls("work", str(number)) for number in range(6)]
    one = agent(
        FakeProvider(reply("", *wanted), reply("ok")),
        FakeTool("work", work, read_only=True),
        behavior=Behavior(tool_execution=strategy, batch_size=2),
    )
    _, result = await streamed(one)
    assert most == together
    assert [m.tool_call_id for m in result.messages if isinstance(m, ToolMessage)] == [str(n) for n in range(6)]


async def test_sequential_tool_runs_without_others() -> None:
    running: list[str] = []

    def work(name: str) -> object:
        async def does() -> str:
            running.append(f"+{name}")
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            running.append(f"-{name}")
            return "ok"

        return does

    wanted = [calls("a", "1"), calls("alone", "2"), calls("a", "3")]
    one = agent(
        FakeProvider(reply("", *wanted), reply("ok")),
        FakeTool("a", work("a")),
        FakeTool("alone", work("alone"), sequential=True),
    )
    await streamed(one)
    assert running == ["+a", "-a", "+alone", "-alone", "+a", "-a"]


async def test_leaving_the_events_early_ends_the_run() -> None:
    ended = anyio.Event()

    async def for_ever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    one = agent(FakeProvider(reply("", calls("wait"))), FakeTool("wait", for_ever))
    with anyio.fail_after(WAIT):
        async with one.run_stream("go") as events:
            async for event in events:
                if isinstance(event, ToolCalled):
                    break
        await ended.wait()
    assert not one.is_running
    assert [m.is_error for m in one.messages if isinstance(m, ToolMessage)] == [True]
    assert one.session.loops[-1].status == "aborted"


async def test_an_error_of_the_reader_comes_out_as_it_was() -> None:
    one = agent(FakeProvider(reply("ok")))
    with anyio.fail_after(WAIT), pytest.raises(KeyError, match="mine"):
        async with one.run_stream("go"):
            raise KeyError("mine")


async def test_cancellation_from_outside_leaves_a_resumable_session() -> None:
    async def for_ever() -> None:
        scope.cancel()
        await anyio.sleep_forever()

    one = agent(FakeProvider(reply("", calls("wait")), reply("Back.")), FakeTool("wait", for_ever))
    with anyio.fail_after(WAIT):
        with anyio.CancelScope() as scope:
            await one.run("go")
        assert scope.cancelled_caught
        result = await one.run("go on")
    assert result.text == "Back."
    assert [m.is_error for m in one.messages if isinstance(m, ToolMessage)] == [True]
