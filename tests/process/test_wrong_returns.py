"""What callbacks and hooks return by mistake is logged, and never allows an action. Every wait is bounded."""

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux import AgentMux, AgentMuxError, Approve, Deny, RunHandle, RunResult, Text

pytestmark = pytest.mark.anyio
ASKS = "read(); emit(session='S1'); emit(ask='rm x'); emit(text=read()['answer']); emit(done=1); drain()"
HELLO = "read(); emit(session='S1'); emit(text='hi'); emit(done=1); drain()"


class Broken:
    """A value whose repr raises."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


ANSWERS: dict[str, Any] = {
    "a word": "yes", "a number": 1, "nothing": None, "a class": Approve, "another answer": Text("yes"),
    "a list": [True], "a mapping": {"approve": True}, "without repr": Broken(),
}  # fmt: skip
DECISIONS: dict[str, Any] = {
    "True": True, "False": False, "a word": "allow", "a number": 0, "an answer": Approve(), "a class": Deny,
    "names that are no texts": {1: "x"}, "a list": ["deny"], "without repr": Broken(),
}  # fmt: skip


async def run(mux: AgentMux, observe: Callable[[RunHandle], Any] = lambda _: None, **options: Any) -> RunResult:
    with anyio.fail_after(60):
        async with mux:
            handle = mux.run(prompt="go", collect_events=True, **options)
            observe(handle)
            return await handle


def messages(result: RunResult, kind: str) -> list[str]:
    return [event.message for event in result.events or () if event.type == kind]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_wrong_answer_denies_and_is_logged(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture, answer: Any, *, is_async: bool
) -> None:
    async def later(_: object) -> Any:
        return answer

    decide: Any = later if is_async else lambda _: answer
    result = await run(make_client(ASKS), approval_mode="prompt", on_approval_request=decide)
    assert (result.text, len(result.denials)) == ("no", 1)
    assert [record.levelname for record in caplog.records if "returned" in record.getMessage()] == ["ERROR", "ERROR"]
    assert all("or Defer() to answer later" in text for text in messages(result, "error"))


@pytest.mark.parametrize("returned", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.parametrize("hook_type", ["pre_tool_use", "permission_request"])
async def test_wrong_decision_of_a_hook_denies_and_is_logged(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture, returned: Any, hook_type: str
) -> None:
    hooks: Any = {hook_type: lambda _: returned}
    with caplog.at_level(logging.WARNING):
        result = await run(make_client(ASKS), approval_mode="yolo", hooks=hooks)
    assert result.text == "no"
    expected = f"the hook {hook_type} (<lambda>) failed: "
    assert [record.getMessage() for record in caplog.records if record.getMessage().startswith(expected)]


async def test_values_of_handlers_without_an_effect_are_logged(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(_: object) -> None: ...

    def observe(handle: RunHandle) -> None:
        forgotten: Any = lambda value: later(value)  # noqa: E731, PLW0108  # no coroutine function, but returns a coroutine
        handle.on("text_delta", forgotten)
        handle.on_state(forgotten)
        handle.on_state(lambda _: True)  # type: ignore[arg-type, return-value]

    with caplog.at_level(logging.WARNING):
        result = await run(make_client(HELLO), observe)
    assert result.exit_reason == "completed"
    log = [record.getMessage() for record in caplog.records]
    assert "a handler of this run failed; the run continues" in log
    assert "a callback of on_state raised for running; the run continues" in log
    assert "a callback of on_state returned True (bool) for running, which has no effect" in log
    assert "a handler failed: it returned a coroutine" in " ".join(messages(result, "debug"))


@pytest.mark.parametrize("returned", [True, "stop", None])
async def test_observer_that_returns_no_function_is_reported(make_client: MakeClient, returned: Any) -> None:
    mux = make_client(HELLO)
    mux.on_run(lambda _: returned)
    result = await run(mux)
    assert result.exit_reason == "completed"
    assert [text for text in messages(result, "debug") if text.startswith(f"an observer returned {returned!r}")]


async def test_coroutine_functions_and_other_values_are_refused_as_callbacks(make_client: MakeClient) -> None:
    async def later(_: object) -> None: ...

    class Later:
        async def __call__(self, _: object) -> None: ...

    def observe(handle: RunHandle) -> None:
        for wrong in (later, Later(), "print", None, 3):
            registrations: list[Callable[[Any], Any]] = [handle.on_state, handle.interaction.on_pending, mux.on_run]
            for register in registrations:
                with pytest.raises(AgentMuxError, match="function") as refused:
                    register(wrong)
                assert refused.value.code == "VALIDATION_ERROR"

    mux = make_client(HELLO)
    await run(mux, observe)
