"""The scripted provider: step selection, chunks, failures and waits."""

from typing import get_args

import anyio
import pytest
from tests.unit.embedded.providers.harness import PATIENCE, Listener, ask, called, request, result, tools

from agent_loop.errors import ConfigurationError, NetworkError, ProviderError, ProviderErrorKind, RateLimitedError
from agent_loop.messages import AssistantMessage, Text, Thinking, ToolCall
from agent_loop.providers import ModelResponse, TextChunk, ThinkingChunk, ToolCallChunk
from agent_loop.providers.script import Script, ScriptedCall, ScriptedError, Step, call, fail, say
from agent_loop.providers.scripted_provider import ScriptedProvider
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio


async def test_mock_provider_answers_without_a_network_in_the_order_of_its_script() -> None:
    provider = ScriptedProvider(["one", say("two"), call("shell", command="ls")])
    first, second, third = [await ask(provider, "go") for _ in range(3)]
    assert (first.text, second.text) == ("one", "two")
    assert third.tool_calls == (ToolCall("call_1", "shell", {"command": "ls"}),)
    assert (first.stop_reason, third.stop_reason) == ("stop", "tool_use")


async def test_requests_are_recorded_as_they_were_sent() -> None:
    provider = ScriptedProvider(["one", "two"])
    asked = request("go")
    with anyio.fail_after(PATIENCE):
        await provider.respond(asked, Listener())
    asked.messages.append(called("shell"))  # type: ignore[attr-defined]
    assert [len(each.messages) for each in provider.requests] == [1]


async def test_an_answer_comes_in_pieces_that_make_up_the_whole() -> None:
    step = Step(
        thinking="I think that the tests should be run first.",
        signature="c2ln",
        text="The tests are what I shall run now, all of them.",
        tool_calls=(ScriptedCall(name="shell", arguments={"command": "python -m pytest -q tests/unit"}),),
        usage=Usage(input_tokens=7, output_tokens=3),
    )
    received = []
    for _ in range(2):
        listener = Listener()
        with anyio.fail_after(PATIENCE):
            response = await ScriptedProvider([step]).respond(request("go"), listener)
        received.append(listener.chunks)
    text = [chunk.text for chunk in received[0] if isinstance(chunk, TextChunk)]
    thinking = [chunk.text for chunk in received[0] if isinstance(chunk, ThinkingChunk)]
    arguments = [chunk.delta for chunk in received[0] if isinstance(chunk, ToolCallChunk)]
    assert received[0] == received[1]
    assert len(text) > 1
    assert ("".join(text), "".join(thinking)) == (step.text, step.thinking)
    assert "".join(arguments) == '{"command":"python -m pytest -q tests/unit"}'
    assert response.usage == response.messages[0].usage == Usage(input_tokens=7, output_tokens=3)
    assert response.messages[0].content[0] == Thinking(step.thinking, "c2ln")


async def test_pieces_can_be_given() -> None:
    listener = Listener()
    step = Step(chunks=("He", "llo"), tool_calls=(ScriptedCall(name="shell", fragments=('{"comm', 'and": 1}')),))
    with anyio.fail_after(PATIENCE):
        response = await ScriptedProvider([step]).respond(request("go"), listener)
    assert [chunk.text for chunk in listener.chunks if isinstance(chunk, TextChunk)] == ["He", "llo"]
    assert [chunk.delta for chunk in listener.chunks if isinstance(chunk, ToolCallChunk)] == [
        "", '{"comm', 'and": 1}',
    ]  # fmt: skip
    assert response.text == "Hello"
    assert response.tool_calls[0].arguments == {"command": 1}


@pytest.mark.parametrize("raw", ['{"command": ', "[1]", '"text"', "[" * 100_000])
async def test_arguments_that_are_no_json_object_are_kept_raw(raw: str) -> None:
    provider = ScriptedProvider([Step(tool_calls=(ScriptedCall(name="shell", raw_arguments=raw),))])
    answered = (await ask(provider, "go")).tool_calls[0]
    assert answered.is_unparsable
    assert (answered.arguments, answered.raw_arguments) == ({"_raw": raw}, raw)


async def test_generated_ids_are_unique_also_in_a_continued_session() -> None:
    provider = ScriptedProvider([call("ls")])
    response = await ask(provider, "go", called("shell", "call_7"), result("ok", call_id="call_7"))
    assert response.tool_calls[0].id == "call_8"


async def test_a_call_can_fail_half_way_with_a_typed_error() -> None:
    listener = Listener()
    step = Step(chunks=("a", "b", "c"), error=ScriptedError(kind="network", message="gone", after_chunks=2))
    with anyio.fail_after(PATIENCE), pytest.raises(NetworkError, match="gone"):
        await ScriptedProvider([step]).respond(request("go"), listener)
    assert listener.chunks == [TextChunk("a"), TextChunk("b")]


async def test_rate_limit_reports_the_delay() -> None:
    provider = ScriptedProvider([fail("rate_limited", retry_after=2.5), "there"])
    with pytest.raises(RateLimitedError) as caught:
        await ask(provider, "go")
    assert (caught.value.retry_after, caught.value.provider) == (2.5, "scripted")
    assert (await ask(provider, "go")).text == "there"


@pytest.mark.parametrize("kind", ["provider", "context_exceeded", "auth", "network", "aborted", "rate_limited"])
async def test_every_kind_of_error_can_be_scripted(kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(ScriptedProvider([fail(kind)]), "go")  # type: ignore[arg-type]
    assert caught.value.kind == kind


async def test_errors_answers_and_functions_of_python_are_steps_too() -> None:
    whole = ModelResponse((AssistantMessage(content=(Text("whole"),)),) * 2)
    provider = ScriptedProvider([lambda asked: f"{len(asked.messages)} message", whole, NetworkError("gone")])
    assert (await ask(provider, "go")).text == "1 message"
    assert await ask(provider, "go") is whole
    with pytest.raises(NetworkError):
        await ask(provider, "go")


async def test_step_matches_the_text_since_the_last_answer() -> None:
    steps = [
        Step(when="1 failed", text="red"),
        Step(matches=r"(?P<count>\d+) passed in ([\d.]+)s", text="{{count}} in {{2}}: {{task}} / {{result}}"),
    ]
    green = await ask(ScriptedProvider(steps), "mend it", called("shell"), result("2 passed in 0.1s"))
    red = await ask(ScriptedProvider(steps), "mend it", called("shell"), result("1 failed, 2 passed in 0.1s"))
    assert green.text == "2 in 0.1: mend it / 2 passed in 0.1s"
    assert red.text == "red"


async def test_text_before_the_last_answer_does_not_match() -> None:
    provider = ScriptedProvider([Step(when="failed", text="red"), "green"])
    history = [called("shell"), result("1 failed"), called("shell", "call_2"), result("ok", call_id="call_2")]
    assert (await ask(provider, "go", *history)).text == "green"


async def test_inserted_text_is_never_expanded() -> None:
    provider = ScriptedProvider([Step(text="You said: {{task}}", tool_calls=(_echo("{{task}}"),))])
    response = await ask(provider, "{{result}} {{heard}}")
    assert response.text == "You said: {{result}} {{heard}}"
    assert response.tool_calls[0].arguments == {"text": ["{{result}} {{heard}}"]}


def _echo(text: str) -> ScriptedCall:
    return ScriptedCall(name="echo", arguments={"text": [text]})


async def test_templates_can_be_off_and_plain_text_is_not_expanded() -> None:
    provider = ScriptedProvider([Step(text="{{ x }} {{x}}", templates=False), "{{y}}"])
    assert [(await ask(provider, "go")).text for _ in range(2)] == ["{{ x }} {{x}}", "{{y}}"]


async def test_steps_repeat_follow_each_other_and_are_for_a_purpose() -> None:
    provider = ScriptedProvider([
        Step(purpose="summary", text="short", repeat=True),
        Step(name="again", text="again", repeat=2),
        Step(after="again", text="right after"),
        Step(task="child", text="for the child"),
    ])  # fmt: skip
    assert [(await ask(provider, "go")).text for _ in range(3)] == ["again", "again", "right after"]
    assert (await ask(provider, "child work")).text == "for the child"
    assert [(await ask(provider, "go", purpose="summary")).text for _ in range(3)] == ["short"] * 3


async def test_exhausted_script_is_an_error_with_the_reason() -> None:
    provider = ScriptedProvider(["one"])
    await ask(provider, "go")
    with pytest.raises(ProviderError, match=r"no step of the script matches request 2 \(1 played") as caught:
        await ask(provider, "go")
    assert not caught.value.retryable


async def test_a_script_that_is_used_up_can_have_a_closing_text() -> None:
    provider = ScriptedProvider([], closing="That is all.")
    assert [(await ask(provider, "go")).text for _ in range(2)] == ["That is all."] * 2


async def test_a_structured_answer_comes_in_the_way_it_is_asked_for() -> None:
    provider = ScriptedProvider([Step(output={"n": 1}, repeat=True)])
    by_schema = await ask(provider, "go", output_schema={"type": "object"})
    by_choice = await ask(provider, "go", tools=tools("ls", "answer"), tool_choice="answer")
    by_name = await ask(provider, "go", tools=tools("ls", "__output__"))
    listed = await ask(ScriptedProvider([Step(output=[1, 2])]), "go", tools=tools("__output__"))
    assert listed.tool_calls[0].arguments == {"value": [1, 2]}
    assert by_schema.text == '{"n":1}'
    assert [(each.name, each.arguments) for each in by_choice.tool_calls] == [("answer", {"n": 1})]
    assert [(each.name, each.arguments) for each in by_name.tool_calls] == [("__output__", {"n": 1})]


async def test_a_step_waits_for_an_event_and_for_no_clock() -> None:
    provider = ScriptedProvider([Step(chunks=("a", "b"), wait="go on", wait_after_chunks=1)])
    listener = Listener()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.respond, request("go"), listener)
            await provider.reached("go on")
            assert listener.chunks == [TextChunk("a")]
            provider.release("go on")
    assert listener.chunks == [TextChunk("a"), TextChunk("b")]


async def test_an_answer_is_cancellable_at_each_piece() -> None:
    received = []
    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:

        async def cancel_at_the_second(chunk: object) -> None:
            received.append(chunk)
            if len(received) == 2:
                scope.cancel()

        await ScriptedProvider([Step(chunks=("a", "b", "c"))]).respond(request("go"), cancel_at_the_second)
    assert scope.cancelled_caught
    assert len(received) == 2


def test_a_name_without_a_script_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'scripted' lacks a script; use scripted:PATH"):
        ScriptedProvider.from_name("")


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Step(after="never"), "comes after 'never'"),
        (Step(matches="("), "not a regular expression"),
        (Step(text="{{typo}}"), r"inserts \{\{typo\}\}"),
        (Step(tool_calls=(ScriptedCall(name="x", arguments={"a": ["{{1}}"]}),)), r"inserts \{\{1\}\}"),
    ],
)
async def test_a_step_that_cannot_be_played_is_found_when_the_provider_is_made(step: Step, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ScriptedProvider(Script(steps=(step,)))


async def test_each_kind_of_error_can_be_scripted() -> None:
    for kind in get_args(ProviderErrorKind):
        with pytest.raises(ProviderError, match="made to fail") as caught:
            await ask(ScriptedProvider([fail(kind, "made to fail")]), "go")
        assert caught.value.kind == kind
