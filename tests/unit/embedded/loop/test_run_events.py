"""Events, hooks and results of whole runs that the other tests of the loop do not cover."""

from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, Counted, agent, kinds, streamed

from agent_loop.behavior import Behavior
from agent_loop.errors import ConfigurationError, ModelAbortedError, NetworkError, ProviderError
from agent_loop.events import (
    LoopEnd,
    LoopStart,
    Retrying,
    ToolCalled,
    ToolProgress,
    TurnEnd,
    TurnStart,
    UsageReported,
)
from agent_loop.loop.inputs import Reject, Warn
from agent_loop.messages import AssistantMessage, Image, Text, ToolMessage, UserMessage, user, validate
from agent_loop.providers import ModelResponse, TextChunk
from agent_loop.sessions import MemorySessionStore, Session
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio


# -- events ---------------------------------------------------------------------------------------------------------


async def test_usage_is_reported_per_model_call_and_in_total() -> None:
    used = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=30, cost_usd=0.01)
    model = FakeProvider(reply("", calls("look"), usage=used), reply("ok", usage=used))
    hooks_told: list[int] = []
    one = agent(model, FakeTool("look"), hooks={"usage": lambda context: hooks_told.append(context.total.total_tokens)})
    received, result = await streamed(one)
    totals = [event.total.total_tokens for event in received if isinstance(event, UsageReported)]
    assert totals == [45, 90] == hooks_told
    assert (result.usage.cache_read_tokens, result.usage.cost_usd) == (60, 0.02)


def test_usage_adds_up_and_knows_its_cache_hit_rate() -> None:
    one = Usage(input_tokens=10, output_tokens=7, cache_read_tokens=30, cache_write_tokens=20)
    assert (one.total_tokens, one.prompt_tokens, one.cache_hit_rate) == (67, 60, 0.5)
    assert Usage().cache_hit_rate == 0.0
    assert one + Usage(thinking_tokens=3) == Usage(10, 7, 30, 20, 3)


async def test_the_final_text_is_all_text_joined_by_newlines_and_stripped() -> None:
    expected_messages = (
        AssistantMessage(content=(Text("  One."), Text("Two."))),
        AssistantMessage(content=(Text("Three. \n"),)),
    )
    _, result = await streamed(agent(FakeProvider(ModelResponse(expected_messages))))
    assert result.text == "One.\nTwo.\nThree."


async def test_command_in_the_background_is_no_command_of_its_call() -> None:
    asked = (calls("shell", "1", command="serve", background=True), calls("shell", "2", command="ls"))
    shell = FakeTool("shell", kind="execute")
    received, _ = await streamed(agent(FakeProvider(reply("", *asked), reply("ok")), shell))
    commands = [event.shell_command for event in received if isinstance(event, ToolCalled)]
    assert commands == [None, "ls"]


async def test_progress_of_a_tool_is_emitted_and_not_part_of_its_result() -> None:
    class Slow(FakeTool):
        async def execute(self, arguments: dict[str, Any], context: Any) -> str:
            await context.progress("half way")
            return "done"

    received, result = await streamed(agent(FakeProvider(reply("", calls("go")), reply("ok")), Slow("go")))
    assert [(e.name, e.text) for e in received if isinstance(e, ToolProgress)] == [("go", "half way")]
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["done"]


async def test_metadata_model_and_provider_are_in_the_first_event() -> None:
    received, _ = await streamed(agent(FakeProvider(reply("ok")), agent_id="me"), metadata={"ticket": 7})
    first = received[0]
    assert isinstance(first, LoopStart)
    assert (first.agent_id, first.metadata, first.model, first.provider) == (
        "me",
        {"ticket": 7},
        "made-up",
        "answering",
    )
    assert (first.continuation_kind, first.timestamp > 0) == (None, True)


async def test_loop_end_has_the_new_messages_usage_and_turns() -> None:
    received, result = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look")))
    last = received[-1]
    assert isinstance(last, LoopEnd)
    assert (last.messages, last.usage, last.turns) == (result.messages, result.usage, 2)


async def test_turn_end_has_the_answer_its_tool_results_and_its_usage() -> None:
    received, _ = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look")))
    first, second = (event for event in received if isinstance(event, TurnEnd))
    assert ([m.tool_call_id for m in first.tool_results], first.usage.total_tokens) == (["1"], 15)
    assert (second.messages[0].text, second.tool_results) == ("ok", ())


async def test_turn_trigger_of_a_prompt_is_user_and_of_later_turns_continuation() -> None:
    received, _ = await streamed(agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look")))
    assert [event.trigger for event in received if isinstance(event, TurnStart)] == ["user", "continuation"]


async def test_an_answer_that_breaks_off_is_abandoned_before_the_retry() -> None:
    class Breaking(FakeProvider):
        async def respond(self, request: Any, on_chunk: Any) -> Any:
            if not self.requests:
                await on_chunk(TextChunk("Half"))
            return await super().respond(request, on_chunk)

    counted = Counted()
    received, result = await streamed(agent(Breaking(NetworkError("gone"), reply("Whole.")), counted=counted))
    names = kinds(received)
    assert names[names.index("message_abandoned") :][:3] == ["message_abandoned", "retrying", "text_delta"]
    retrying = next(event for event in received if isinstance(event, Retrying))
    assert (retrying.attempt, retrying.max_attempts, retrying.kind, counted.slept) == (
        2,
        3,
        "network",
        [retrying.delay],
    )
    assert result.text == "Whole."


@pytest.mark.parametrize(("stop", "error"), [("error", ProviderError), ("aborted", ModelAbortedError)])
async def test_an_answer_whose_stop_reason_is_error_or_aborted_fails_the_run(stop: Any, error: type[Exception]) -> None:
    one = agent(FakeProvider(reply("Half", stop_reason=stop, error="the model broke")))
    with anyio.fail_after(WAIT), pytest.raises(error, match="the model broke"):
        await one.run("go")


async def test_on_event_receives_the_events_of_a_stream() -> None:
    received: list[Any] = []

    async def note(event: Any) -> None:
        received.append(event)

    with anyio.fail_after(WAIT):
        await agent(FakeProvider(reply("ok"))).run("go", on_event=note)
    streamed_told, _ = await streamed(agent(FakeProvider(reply("ok"))))
    assert kinds(received) == kinds(streamed_told)


# -- prompts --------------------------------------------------------------------------------------------------------


async def test_a_prompt_may_be_text_a_message_or_several_messages() -> None:
    picture = UserMessage(content=(Text("see"), Image("aGk=", "image/png")))
    for prompt, texts in (("hi", ["hi"]), (picture, ["see"]), ([user("a"), user("b")], ["a", "b"])):
        model = FakeProvider(reply("ok"))
        await streamed(agent(model), prompt)
        assert [message.text for message in model.requests[0].messages] == texts


async def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the prompt is empty"):
        await agent(FakeProvider()).run("  ")


async def test_the_first_rejection_of_input_filters_ends_it_and_the_others_are_not_asked() -> None:
    asked: list[str] = []

    def last(text: str) -> Warn:
        asked.append(text)
        return Warn("late")

    filters = [lambda _: Warn("careful"), lambda _: Reject("no"), last]
    received, result = await streamed(agent(FakeProvider(), input_filters=filters))
    assert (result.status, result.rejection, asked) == ("rejected", "no", [])
    assert kinds(received) == ["loop_start", "input_warning", "input_rejected", "loop_end"]
    assert received[-1].rejection == "no"


# -- hooks ----------------------------------------------------------------------------------------------------------


async def aborting(one: Any) -> None:
    one.abort("enough")
    await anyio.sleep_forever()


@pytest.mark.parametrize("path", ["completed", "failed", "rejected", "limited", "aborted"])
async def test_agent_done_session_end_and_loop_after_fire_on_every_path(path: str) -> None:
    fired: list[tuple[str, str, tuple[int, int]]] = []
    names = ("agent:done", "session:end", "loop:after")
    one = agent(
        FakeProvider(ProviderError("no") if path == "failed" else reply("", calls("wait")), reply("ok")),
        FakeTool("wait", lambda: aborting(one) if path == "aborted" else "ok"),
        hooks={name: lambda c, name=name: fired.append((name, c.status, c.turn_range)) for name in names},
        input_filters=[lambda _: Reject("no")] if path == "rejected" else [],
        behavior=Behavior(max_iterations=1 if path == "limited" else 5),
    )
    await streamed(one)
    turns = {"completed": 2, "rejected": 0}.get(path, 1)
    assert fired == [(name, path, (0, turns)) for name in names]


async def test_session_start_reports_a_history_and_turn_range_continues() -> None:
    seen: list[Any] = []
    hooks = {
        "session:start": lambda context: seen.append(context.resumed),
        "session:end": lambda context: seen.append(context.turn_range),
        "loop:before": lambda context: seen.append((context.loop_index, len(context.messages))),
    }
    one = agent(FakeProvider(reply("ok"), repeat=True), hooks=hooks)
    await streamed(one)
    await streamed(one)
    assert seen == [False, (0, 0), (0, 1), True, (1, 2), (1, 2)]


async def test_stream_hooks_get_each_fragment_and_the_whole_text() -> None:
    seen: list[tuple[str, str]] = []
    names = ("stream:thinking", "stream:text", "stream:end")
    hooks = {name: lambda context, name=name: seen.append((name, context.text)) for name in names}
    await streamed(agent(FakeProvider(reply("Yes.", thinking="Hm.")), hooks=hooks))
    assert seen == [("stream:thinking", "Hm."), ("stream:text", "Yes."), ("stream:end", "Yes.")]


async def test_hooks_of_a_tool_call_know_turn_call_names_and_label() -> None:
    seen: list[Any] = []
    names = ("tool:gate", "tool:before", "tool:transform", "tool:after")
    hooks = {
        name: lambda c: seen.append((c.loop_id, c.turn, c.call_id, c.name, c.label, c.wire_name)) for name in names
    }
    model = FakeProvider(reply("", calls("Look", "c7")), reply("", calls("Look", "c8")), reply("ok"))
    look = FakeTool("look", label="Look around")
    received, _ = await streamed(agent(model, look, hooks=hooks, aliases={"look": "Look"}))
    loop_id = received[0].loop_id
    assert seen == [
        (loop_id, turn, call_id, "look", "Look around", "Look")
        for turn, call_id in ((0, "c7"), (1, "c8"))
        for _ in names
    ]


async def test_run_tool_counts_are_a_snapshot_from_before_the_call() -> None:
    seen: list[dict[str, int]] = []
    hooks = {"tool:before": lambda context: seen.append(dict(context.run_tool_counts))}
    model = FakeProvider(reply("", calls("look", "1"), calls("look", "2")), reply("", calls("look", "3")), reply("ok"))
    await streamed(agent(model, FakeTool("look", read_only=True), hooks=hooks))
    assert seen == [{}, {}, {"look": 2}]


async def test_turn_after_has_the_tool_counts_of_the_turn() -> None:
    seen: list[dict[str, int]] = []
    model = FakeProvider(reply("", calls("look", "1"), calls("look", "2")), reply("ok"))
    hooks = {"turn:after": lambda context: seen.append(dict(context.tool_counts))}
    await streamed(agent(model, FakeTool("look"), hooks=hooks))
    assert seen == [{"look": 2}, {}]


async def test_tool_before_has_the_prior_content_of_a_written_file() -> None:
    seen: list[Any] = []
    tool = FakeTool("write", lambda path: path, prior_content=lambda arguments, _: f"old {arguments['path']}")
    hooks = {"tool:before": lambda context: seen.append(context.prior_content)}
    await streamed(agent(FakeProvider(reply("", calls("write", path="a")), reply("ok")), tool, hooks=hooks))
    assert seen == ["old a"]


async def test_hooks_can_be_registered_later_and_taken_out_again() -> None:
    seen: list[str] = []
    one = agent(FakeProvider(reply("ok"), repeat=True))
    unregister = one.hooks.on("agent:done", lambda _: seen.append("done"))
    await streamed(one)
    unregister()
    await streamed(one)
    assert seen == ["done"]


async def test_the_last_writer_of_a_mutable_field_wins() -> None:
    hooks = {"system:transform": [lambda c: setattr(c, "system", "first"), lambda c: setattr(c, "system", "last")]}
    model = FakeProvider(reply("ok"))
    await streamed(agent(model, hooks=hooks))
    assert model.requests[0].system == "last"


async def test_system_before_fires_only_for_a_system_prompt_of_the_run() -> None:
    seen: list[str] = []
    model = FakeProvider(reply("ok"), repeat=True)
    hooks = {"system:before": lambda context: seen.append(context.system)}
    one = agent(model, hooks=hooks, system_prompt="Be brief.")
    await streamed(one, system_prompt="Be long.")
    await streamed(one)
    assert (seen, [request.system for request in model.requests]) == (["Be long."], ["Be long.", "Be brief."])


# -- what is kept ---------------------------------------------------------------------------------------------------


async def test_calls_and_results_are_stored_as_a_pair() -> None:
    kept: list[int] = []

    class Watched(MemorySessionStore):
        async def save(self, session: Session) -> None:
            validate(session.history())
            kept.append(len(session.history()))
            await super().save(session)

    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look"), store=Watched())
    await streamed(one)
    assert kept == [1, 3, 4, 4]


async def test_a_tool_asks_the_person_by_its_context() -> None:
    class Asking(FakeTool):
        async def execute(self, arguments: dict[str, Any], context: Any) -> str:
            return "answer: " + await context.ask("Which?", ("a", "b"))

    async def person(question: str, options: tuple[str, ...]) -> str:
        return f"{question} {options[1]}"

    one = agent(FakeProvider(reply("", calls("which")), reply("ok")), Asking("which"), ask=person)
    _, result = await streamed(one)
    assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["answer: Which? b"]


async def test_clock_ids_and_sleep_are_handed_in_so_that_a_run_can_be_played_again_exactly() -> None:
    async def played() -> tuple[Any, Any]:
        model = FakeProvider(NetworkError("gone"), reply("", calls("look")), reply("ok"))
        one = agent(model, FakeTool("look"), counted=Counted())
        return await streamed(one)

    assert await played() == await played()


async def test_cancelled_tool_in_a_thread_sees_is_cancelled() -> None:
    seen: list[bool] = []

    class Looking(FakeTool):
        async def execute(self, arguments: dict[str, Any], context: Any) -> str:
            seen.append(context.is_cancelled())
            one.abort("enough")
            seen.append(context.is_cancelled())
            await anyio.lowlevel.checkpoint()
            return "never"

    one = agent(FakeProvider(reply("", calls("look"))), Looking("look"))
    await streamed(one)
    assert seen == [False, True]
