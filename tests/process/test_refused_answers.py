"""Answers that an agent's codec refuses: reported, asked again once, then declined. Every wait is bounded."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.checked_runs import types
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient

from agent_mux import AgentMux, AgentMuxError, Approve, Defer, PendingInteraction, Policy, RunResult, Text, validate

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

CHOICE = "read(); emit(question='choice'); emit(text=read()['answer']); emit(done=True); drain()"
ASK = "read(); emit(ask='make'); emit(text=read()['answer']); emit(done=True); drain()"
FORBIDDEN = "read(); emit(ask='forbidden'); emit(text=read()['answer']); emit(done=True); drain()"
UNAVOIDABLE = """
import pathlib
read(); emit(ask='unavoidable')
while not pathlib.Path('go').exists(): time.sleep(0.01)
emit(text='went on'); emit(done=True); drain()
"""
NEVER_ALLOWED = "forbidden: this cannot be approved"


async def finish(make_client: MakeClient, body: str, **fields: Any) -> tuple[list[Any], RunResult]:
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", **fields)
            events = [event async for event in run]
            assert validate(events) == []
            return events, await run


def warnings_of(events: list[Any]) -> list[str]:
    return [event.message for event in events if event.type == "debug" and event.level == "warn"]


def errors_of(events: list[Any]) -> list[str]:
    return [event.message for event in events if event.type == "error" and event.recoverable]


def returned(answer: Any, _: PendingInteraction) -> Any:
    return answer


class Callback:
    """A callback that gives these answers, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []

    def __call__(self, pending: PendingInteraction) -> Any:
        self.questions.append(pending.description)
        return self.answers.pop(0)


async def test_callback_is_asked_again_after_a_refused_answer(make_client: MakeClient) -> None:
    callback = Callback(Text("green"), Text("blue"))
    events, result = await finish(make_client, CHOICE, on_input_required=callback)
    assert (result.text, result.exit_reason) == ("blue", "completed")
    assert callback.questions == ["choice", "choice"]
    (warning,) = warnings_of(events)
    assert "choice: got 'green'; allowed: 'red' or 'blue'; the callback is asked again" in warning
    assert "the callback Callback (on_input_required)" in warning


async def test_request_is_declined_after_two_refused_answers(make_client: MakeClient) -> None:
    callback = Callback(Text("green"), Text("yellow"), Text("blue"))
    events, result = await finish(make_client, CHOICE, on_input_required=callback)
    assert (result.text, result.exit_reason) == ("no", "completed")
    assert len(callback.questions) == 2
    again, declined = warnings_of(events)
    assert "got 'green'" in again
    assert again.endswith("the callback is asked again")
    assert "got 'yellow'" in declined
    assert declined.endswith("the request is declined")


@pytest.mark.parametrize("answer", [None, Approve(), "blue", True], ids=["None", "approval", "plain text", "bool"])
async def test_wrong_value_for_a_question_is_an_error_and_is_asked_again(make_client: MakeClient, answer: Any) -> None:
    callback = Callback(answer, Text("red"))
    events, result = await finish(make_client, CHOICE, on_input_required=callback)
    assert (result.text, result.exit_reason) == ("red", "completed")
    (error,) = errors_of(events)
    assert f"the callback Callback (on_input_required) returned {answer!r}" in error
    assert error.endswith("return Text, Choice or Deny, or Defer() to answer later; the callback is asked again")
    assert warnings_of(events) == []


@pytest.mark.promise("callback-answer")
@pytest.mark.parametrize("wrong", [None, "yes", Text("x"), 1], ids=["None", "string", "text", "number"])
async def test_approval_callback_without_an_answer_is_an_error_with_its_name(
    make_client: MakeClient, wrong: Any
) -> None:
    def decide(_: PendingInteraction) -> Any:
        return wrong

    events, result = await finish(make_client, ASK, on_approval_request=decide)
    assert (result.text, result.exit_reason) == ("no", "completed")
    again, declined = errors_of(events)
    assert "<locals>.decide (on_approval_request) returned " in again
    assert repr(wrong) in again
    assert "return Approve, Deny, True or False, or Defer() to answer later" in again
    assert again.endswith("the callback is asked again")
    assert declined.endswith("the request is declined")
    assert types(events, "approval_granted", "approval_denied") == ["approval_denied"]


@pytest.mark.parametrize(("answer", "text"), [(True, "yes"), (False, "no")])
async def test_true_approves_and_false_denies(make_client: MakeClient, answer: bool, text: str) -> None:
    events, result = await finish(make_client, ASK, on_approval_request=partial(returned, answer))
    assert (result.text, result.exit_reason) == (text, "completed")
    assert errors_of(events) == warnings_of(events) == []


async def test_deferred_request_stays_open_until_it_is_answered(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client(ASK) as mux:
            run = mux.run(prompt="hi", on_approval_request=partial(returned, Defer()))
            async for event in run:
                if event.type == "approval_request":
                    await run.interaction.respond(event.interaction_id, True)
            assert (await run).text == "yes"


async def test_raising_callback_is_an_error_with_its_name_and_a_logged_traceback(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(_: PendingInteraction) -> Any:
        raise LookupError("no such rule")

    with caplog.at_level("ERROR", "agent_mux"):
        events, result = await finish(make_client, ASK, on_approval_request=decide)
    assert (result.text, result.exit_reason) == ("no", "completed")
    (error,) = errors_of(events)
    assert "decide (on_approval_request) raised LookupError('no such rule')" in error
    (record,) = [one for one in caplog.records if one.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


async def test_awaited_callback_is_asked_again(make_client: MakeClient) -> None:
    callback = Callback(Approve(), Approve())

    async def decide(pending: PendingInteraction) -> Any:
        await anyio.lowlevel.checkpoint()
        return callback(pending)

    events, result = await finish(make_client, FORBIDDEN, on_approval_request=decide)
    assert result.text == "no"
    assert len(callback.questions) == 2
    assert types(events, "approval_granted", "approval_denied") == ["approval_denied"]


@pytest.mark.parametrize(
    "options",
    [{"approval_mode": "yolo", "policy": Policy()}, {"policy": Policy(default="allow")}],
    ids=["mode", "policy"],
)
async def test_refused_decision_without_a_callback_is_a_denial(
    make_client: MakeClient, options: dict[str, Any]
) -> None:
    events, result = await finish(make_client, FORBIDDEN, **options)
    assert (result.text, result.exit_reason) == ("no", "completed")
    (warning,) = warnings_of(events)
    assert f"{NEVER_ALLOWED}; the request is declined" in warning
    assert types(events, "approval_granted", "approval_denied") == ["approval_denied"]


async def test_refused_answer_at_the_deadline_is_a_denial(make_client: MakeClient) -> None:
    policy = Policy(on_timeout="allow")
    events, result = await finish(make_client, FORBIDDEN, policy=policy, approval_timeout=0.2)
    assert result.text == "no"
    assert any(NEVER_ALLOWED in warning for warning in warnings_of(events))


@local_only(LocalOnly.NOTES)
async def test_request_after_the_input_was_closed_is_declined(make_client: MakeClient, tmp_path: Path) -> None:
    """No answer reaches the agent any more. The request must not keep the run open."""
    body = """
import pathlib
read(); emit(text='x')
while not pathlib.Path('go').exists(): time.sleep(0.01)
emit(ask='make')
while not pathlib.Path('denied').exists(): time.sleep(0.01)
emit(done=True)
"""
    callback = Callback(Approve())
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True, cwd=str(tmp_path), on_approval_request=callback)
            async for event in run:
                if event.type == "text_delta":
                    await run.close()
                    (tmp_path / "go").touch()
                if event.type == "approval_denied":
                    (tmp_path / "denied").touch()
            events = [event async for event in run.events()]
            await run
    assert callback.questions == ["run: make"]
    assert types(events, "approval_granted", "approval_denied") == ["approval_denied"]


async def test_refused_denial_is_reported_and_the_run_continues(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with make_client(UNAVOIDABLE) as mux:
            run = mux.run(prompt="hi", approval_mode="deny", cwd=str(tmp_path))
            run.once("debug", lambda _: (tmp_path / "go").touch())
            events = [event async for event in run]
            result = await run
    assert result.text == "went on"
    (warning,) = warnings_of(events)
    assert "unavoidable: this cannot be denied; the request stays open" in warning


async def test_refused_answer_does_not_prevent_the_others(make_client: MakeClient) -> None:
    body = """
read(); emit(ask='forbidden'); emit(ask='make'); emit(text=read()['answer']); emit(text=read()['answer'])
emit(done=True); drain()
"""
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            async for event in run:
                if event.type == "approval_request" and len(run.interaction.pending) == 2:
                    with pytest.raises(AgentMuxError, match=NEVER_ALLOWED):
                        await run.interaction.approve_all()
                    assert await run.interaction.deny_all() == 1
            result = await run
    assert (result.text, result.exit_reason) == ("yesno", "completed")


ACP_AGENT = """
import json, sys

def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            send(id=message["id"], result={"sessionId": "s"})
        case "session/prompt":
            prompt = message["id"]
            schema = {"type": "object", "properties": {"color": {"type": "string", "enum": ["red", "blue"]}}}
            schema["required"] = ["color"]
            send(id=7, method="elicitation/create", params={
                "sessionId": "s", "mode": "form", "message": "Which?", "requestedSchema": schema})
        case None if message.get("id") == 7:
            content = {"type": "text", "text": message["result"]["action"]}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            send(method="session/update", params={"sessionId": "s", "update": update})
            send(id=prompt, result={"stopReason": "end_turn"})
"""


async def run_acp(directory: Path, callback: Any) -> tuple[list[Any], RunResult]:
    program = directory / "agent.py"
    program.write_text(ACP_AGENT)
    with anyio.fail_after(20):
        async with AgentMux(config_dir=directory / "config") as mux:
            run = mux.run(
                agent="acp", command=(sys.executable, str(program)), prompt="hi", cwd=str(directory),
                on_input_required=callback,
            )  # fmt: skip
            return [event async for event in run], await run


@local_only(LocalOnly.NOTES)
@pytest.mark.parametrize(
    ("answers", "text"), [(("green", "blue"), "accept"), (("green", "yellow"), "decline")], ids=["corrected", "wrong"]
)
async def test_form_of_an_acp_agent_with_an_answer_that_it_does_not_allow(
    tmp_path: Path, answers: tuple[str, ...], text: str
) -> None:
    callback = Callback(*map(Text, answers))
    events, result = await run_acp(tmp_path, callback)
    assert (result.text, result.exit_reason) == (text, "completed")
    assert len(callback.questions) == 2
    assert validate(events) == []
    assert "allowed: red, blue" in warnings_of(events)[0]
