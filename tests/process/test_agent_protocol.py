"""Programs that implement the agent protocol, driven by `amux run native --command ...`."""

import re
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_mux import AgentMux, Approve, Deny, RunResult, Text, encode_event, validate
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.options import Attachment
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec
from agent_mux_adapters.native import ADAPTER

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "connect-your-program.md"
PRELUDE = """
import json, os, signal, sys
def emit(kind, **fields): print(json.dumps({"type": kind, **fields}), flush=True)
def read(): return json.loads(sys.stdin.readline() or '{"type": "close"}')
def begin(**more):
    emit("session_start", sessionId="S1", resumed=False, **more)
    return read()
def start_turn(number, text):
    emit("turn_start", turnIndex=number)
    emit("message_start"); emit("text_delta", delta=text); emit("message_stop", text=text)
def answer(number, text):
    start_turn(number, text)
    emit("turn_end", turnIndex=number)
def end_session(turns): emit("session_end", sessionId="S1", turnCount=turns)
start = read()
"""
ECHO = (
    PRELUDE
    + """
line, turns = begin(), 0
while line["type"] == "prompt":
    answer(turns, line["text"]); turns += 1; line = read()
end_session(turns)
"""
)


def client(directory: Path) -> AgentMux:
    registry = AdapterRegistry()
    registry.register(ADAPTER)
    return AgentMux(adapters=registry, default_agent="native", config_dir=directory, approval_mode="prompt")


def program(body: str) -> tuple[str, ...]:
    return sys.executable, "-c", body


async def watch_to_end(run: Any) -> tuple[list[Any], RunResult]:
    """Collect the events and the result; check that the events conform and that the journal derives them again."""
    events = [event async for event in run]
    result: RunResult = await run
    assert validate(events) == []
    assert result.journal is not None
    derived = [encode_event(event) for event in derive_events(Path(result.journal), AgentEventsCodec)]
    assert derived == [encode_event(event) for event in events]
    return events, result


async def run_to_end(directory: Path, body: str, **options: Any) -> tuple[list[Any], RunResult]:
    with anyio.fail_after(30):
        async with client(directory) as mux:
            return await watch_to_end(mux.run(**{"prompt": "hi", "command": program(body), **options}))


def of_type(events: list[Any], kind: str) -> list[Any]:
    return [event for event in events if event.type == kind]


async def test_program_answers_and_the_run_completes(tmp_path: Path) -> None:
    events, result = await run_to_end(tmp_path, ECHO)
    assert (result.exit_reason, result.text, result.session_id, result.exit_code) == ("completed", "hi", "S1", 0)
    assert [event.type for event in events] == [
        "session_start", "turn_start", "message_start", "text_delta", "message_stop", "turn_end", "session_end",
    ]  # fmt: skip
    assert {event.run_id for event in events} == {result.run_id}
    assert {event.agent for event in events} == {"native"}


async def test_start_line_contains_the_options_of_the_run(tmp_path: Path) -> None:
    body = PRELUDE + "begin(); answer(0, json.dumps(start)); end_session(1)"
    options: dict[str, Any] = {
        "model": "m", "session_id": "S1", "approval_mode": "deny", "system_prompt": "be kind", "max_model_calls": 3,
        "thinking_effort": "high", "temperature": 0, "output_schema": {"type": "object"}, "max_cost_usd": 2.5,
    }  # fmt: skip
    _, result = await run_to_end(tmp_path, body, **options)
    assert result.text.startswith('{"type": "start", "protocol": 1, ')
    for option in (
        '"model": "m"', '"sessionId": "S1"', '"approvalMode": "deny"', '"systemPrompt": "be kind"',
        '"systemPromptMode": "append"', '"maxTurns": 3', '"thinkingEffort": "high"', '"temperature": 0',
        '"outputSchema": {"type": "object"}', '"maxCostUsd": 2.5',
    ):  # fmt: skip
        assert option in result.text
    assert "interactive" not in result.text
    assert "noSession" not in result.text


async def test_images_are_sent_with_the_first_prompt(tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(b"png")
    body = PRELUDE + "line = begin(); answer(0, json.dumps(line['images'])); end_session(1)"
    _, result = await run_to_end(tmp_path, body, attachments=[Attachment(file_path=str(picture))])
    assert result.text == '[{"mimeType": "image/png", "data": "cG5n"}]'


async def test_prompts_are_sent_to_one_process_in_order(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with client(tmp_path) as mux:
            run = mux.run(prompt="one", command=program(ECHO), interactive=True)
            assert await run.send("two") == "queued"
            await run.send("three")
            await run.close()
            _, result = await watch_to_end(run)
    assert result.messages == ["one", "two", "three"]
    assert (result.turn_count, result.exit_reason) == (3, "completed")


APPROVAL = (
    PRELUDE
    + """
begin(); emit("turn_start", turnIndex=0)
emit("tool_call_start", toolCallId="c1", toolName="Shell")
emit("tool_call_ready", toolCallId="c1", toolName="Shell", input={})
emit("approval_request", interactionId="r1", action="run", detail="ls", riskLevel="low", toolCallId="c1", command="ls")
answered = read()
if answered["type"] == "approve":
    emit("approval_granted", interactionId="r1")
    emit("shell_start", command="ls", cwd="/"); emit("shell_stdout_delta", delta="a file")
    emit("shell_exit", exitCode=0, durationMs=1)
    emit("tool_result", toolCallId="c1", toolName="Shell", output="a file", durationMs=2)
    emit("file_read", path="/a")
else:
    emit("approval_denied", interactionId="r1", reason=answered.get("reason"))
    emit("tool_error", toolCallId="c1", toolName="Shell", error="denied")
emit("message_start"); emit("message_stop", text=json.dumps(answered)); emit("turn_end", turnIndex=0); end_session(1)
"""
)


async def test_approval_is_requested_and_granted(tmp_path: Path) -> None:
    asked: list[Any] = []

    def decide(pending: Any) -> Any:
        asked.append(pending.detail)
        return Approve()

    events, result = await run_to_end(tmp_path, APPROVAL, on_approval_request=decide)
    assert len(asked) == 1
    assert [event.type for event in events if event.type.startswith(("approval", "shell", "tool", "file"))] == [
        "tool_call_start", "tool_call_ready", "approval_request", "approval_granted", "shell_start",
        "shell_stdout_delta", "shell_exit", "tool_result", "file_read",
    ]  # fmt: skip
    assert result.text == '{"type": "approve", "requestId": "r1"}'


async def test_denial_reaches_the_program_with_its_reason(tmp_path: Path) -> None:
    def decide(_: Any) -> Any:
        return Deny("not here")

    events, result = await run_to_end(tmp_path, APPROVAL, on_approval_request=decide)
    (denied,) = of_type(events, "approval_denied")
    assert denied.reason == "not here"
    assert result.text == '{"type": "deny", "requestId": "r1", "reason": "not here"}'


async def test_question_is_answered(tmp_path: Path) -> None:
    body = (
        PRELUDE
        + """
begin(); emit("turn_start", turnIndex=0)
emit("input_required", interactionId="q1", question="red?", source="agent", options=["red", "blue"])
reply = read()["text"]
emit("message_start"); emit("message_stop", text=reply); emit("turn_end", turnIndex=0); end_session(1)
"""
    )

    def reply(pending: Any) -> Any:
        return Text("blue")

    _, result = await run_to_end(tmp_path, body, on_input_required=reply)
    assert result.text == "blue"


BUSY = (
    PRELUDE
    + """
begin(interactive=True); start_turn(0, "working")
line = read()
if line["type"] == "steer":
    emit("response", id=line["id"], accepted=True, delivery="merged")
    emit("message_start"); emit("message_stop", text="steered: " + line["text"])
    emit("turn_end", turnIndex=0); read(); end_session(1)
if line["type"] == "interrupt":
    emit("turn_end", turnIndex=0); read(); emit("interrupted"); end_session(1)
if line["type"] == "cancel":
    emit("turn_end", turnIndex=0); emit("aborted"); end_session(1)
"""
)


async def _wait_for_message(run: Any) -> None:
    async for event in run:
        if event.type == "message_stop":
            return
    raise AssertionError("no message arrived")


async def test_steer_is_merged_into_the_current_turn(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with client(tmp_path) as mux:
            run = mux.run(prompt="hi", command=program(BUSY))
            await _wait_for_message(run)
            assert await run.steer("left") == "merged"
            _, result = await watch_to_end(run)
    assert result.messages == ["working", "steered: left"]
    assert (result.turn_count, result.exit_reason) == (1, "completed")


async def test_interrupt_ends_the_turn_and_the_run(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with client(tmp_path) as mux:
            run = mux.run(prompt="hi", command=program(BUSY))
            await _wait_for_message(run)
            await run.interrupt()
            events, result = await watch_to_end(run)
    assert result.exit_reason == "interrupted"
    assert [event.type for event in events[-3:]] == ["turn_end", "interrupted", "session_end"]


async def test_abort_sends_cancel_to_the_program(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with client(tmp_path) as mux:
            run = mux.run(prompt="hi", command=program(BUSY))
            await _wait_for_message(run)
            await run.abort()
            events, result = await watch_to_end(run)
    assert result.exit_reason == "aborted"
    assert [event.type for event in events[-3:]] == ["turn_end", "aborted", "session_end"]


@pytest.mark.parametrize(
    ("body", "reason", "code"),
    [
        ("begin(); start_turn(0, 'half'); sys.exit(3)", "crashed", "AGENT_CRASH"),
        ("begin(); start_turn(0, 'half'); sys.exit(0)", "truncated", "AGENT_CRASH"),
        ("begin(); start_turn(0, 'half'); os.kill(os.getpid(), signal.SIGKILL)", "killed", "AGENT_CRASH"),
        ("begin(); answer(0, 'x'); emit('auth_error', message='no key', guidance='set it'); end_session(1)",
         "failed", "AUTH_ERROR"),
        ("begin(); answer(0, 'x'); emit('turn_limit', maxTurns=1); end_session(1)", "turn_limit", "TURN_LIMIT"),
        ("begin(); emit('error', code='SESSION_NOT_FOUND', message='no', recoverable=False); end_session(0)",
         "failed", "SESSION_NOT_FOUND"),
        ("begin(); emit('turn_start', turnIndex=0); emit('error', code='odd'); emit('turn_end', turnIndex=0)",
         "failed", "INTERNAL"),
        ("l = begin(); emit('response', id=l['id'], accepted=False, code='RATE_LIMITED', message='later'); read()",
         "failed", "RATE_LIMITED"),
    ],
)  # fmt: skip
async def test_exit_reason_reflects_how_the_program_ends(tmp_path: Path, body: str, reason: str, code: str) -> None:
    _, result = await run_to_end(tmp_path, PRELUDE + body)
    assert (result.exit_reason, result.error.code if result.error else None) == (reason, code)


async def test_out_of_order_events_are_repaired_and_reported(tmp_path: Path) -> None:
    body = (
        PRELUDE
        + """
read(); emit("text_delta", delta="hi"); emit("tool_result", toolCallId="c", toolName="T", output=1, durationMs=0)
emit("shell_exit", exitCode=0, durationMs=0); emit("file_read", path="x"); emit("turn_end", turnIndex=7)
print("noise"); print('{"type": "made_up"}'); print('{"type": "text_delta"}'); sys.stdout.flush(); end_session(1)
"""
    )
    events, result = await run_to_end(tmp_path, body)
    warnings = [event.message for event in of_type(events, "debug")]
    assert any("before session_start" in message for message in warnings)
    assert any("unknown native line (made_up)" in message for message in warnings)
    assert [event.line for event in of_type(events, "log")] == ["noise"]
    assert (result.exit_reason, result.text) == ("completed", "hi")


async def test_how_to_program_works_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_agent.py").write_text(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])  # type: ignore[index]
    command = (sys.executable, str(tmp_path / "my_agent.py"))
    options = {"prompt": "write to hello.txt", "command": command, "cwd": str(tmp_path)}
    events, result = await run_to_end(tmp_path / "config", "", approval_mode="deny", **options)
    assert (result.text, len(of_type(events, "approval_denied"))) == ("Permission denied.", 1)
    assert of_type(events, "approval_request") == []
    assert not (tmp_path / "hello.txt").exists()
    events, result = await run_to_end(tmp_path / "config", "", approval_mode="yolo", **options)
    assert (result.text, result.exit_reason) == ("Done.", "completed")
    assert [event.path for event in of_type(events, "file_create")] == ["hello.txt"]
    assert of_type(events, "debug") == []
