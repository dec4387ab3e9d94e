"""Outcomes of runs for all kinds of agent behaviour. Every wait is bounded."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient, ScriptedCodec, ScriptedMux

from agent_mux import AgentMuxError, Approve, CapabilityError, Choice, Deny, RunResult, Text, encode_event, validate
from agent_mux.process.marker import processes_of
from agent_mux.run.derivation import derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.handle import RunHandle

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

HELLO = "read(); emit(session='S1'); emit(text='hello '); emit(text='world'); emit(done=True); drain()"


async def watch(run: RunHandle) -> tuple[list[Any], RunResult]:
    """Collect events and result; check that the events conform and that the journal derives the same bytes."""
    events = [event async for event in run]
    result = await run
    assert validate(events) == []
    if result.journal is not None:
        derived = [encode_event(event) for event in derive_events(Path(result.journal), ScriptedCodec)]
        assert derived == [encode_event(event) for event in events]
    return events, result


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


async def _wait_for(run: RunHandle, kind: str) -> None:
    async for event in run:
        if event.type == kind:
            return
    raise AssertionError(f"the run ended without {kind}")


async def run_to_end(make_client: MakeClient, body: str, **fields: Any) -> tuple[list[Any], RunResult]:
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            return await watch(mux.run(**{"prompt": "hi", **fields}))


async def test_agent_that_closes_properly_completes_the_run(make_client: MakeClient) -> None:
    events, result = await run_to_end(make_client, HELLO)
    assert (result.exit_reason, result.exit_code, result.text, result.session_id) == (
        "completed",
        0,
        "hello world",
        "S1",
    )
    assert types(events) == [
        "session_start", "turn_start", "message_start", "text_delta", "text_delta", "message_stop", "turn_end",
        "session_end",
    ]  # fmt: skip
    assert result.ok
    assert result.messages == ["hello world"]


@pytest.mark.parametrize(
    ("ending", "reason", "code", "terminal"),
    [
        ("sys.exit(0)", "truncated", "AGENT_CRASH", "error"),
        ("sys.exit(3)", "crashed", "AGENT_CRASH", "crash"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed", "AGENT_CRASH", "crash"),
        ("os.kill(os.getpid(), signal.SIGQUIT)", "killed", "AGENT_CRASH", "crash"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "AGENT_CRASH", "crash"),
        ("sys.exit(143)", "killed", "AGENT_CRASH", "crash"),
        ("emit(failed='AUTH_ERROR'); drain()", "failed", "AUTH_ERROR", "auth_error"),
        ("emit(failed='RATE_LIMITED'); drain()", "failed", "RATE_LIMITED", "rate_limit_error"),
        ("emit(failed='CONTEXT_EXCEEDED'); sys.exit(1)", "failed", "CONTEXT_EXCEEDED", "context_exceeded"),
        ("emit(failed='BUDGET_EXCEEDED'); sys.exit(1)", "budget", "BUDGET_EXCEEDED", "error"),
        ("emit(stopped=True); sys.exit(1)", "interrupted", "ABORTED", "interrupted"),
        ("print('{\"text\": \"cut', end='', flush=True); os._exit(0)", "truncated", "AGENT_CRASH", "error"),
    ],
)
async def test_exit_reason_and_error_reflect_the_end_of_the_agent(
    make_client: MakeClient, ending: str, reason: str, code: str, terminal: str
) -> None:
    body = f"print('why', file=sys.stderr, flush=True); read(); emit(text='partial'); {ending}"
    events, result = await run_to_end(make_client, body)
    assert result.exit_reason == reason
    assert result.error is not None
    assert result.error.code == code
    assert types(events)[-2:] == [terminal, "session_end"]
    assert "why" in result.error.stderr
    assert result.text == "partial"


async def test_program_that_cannot_be_started_is_a_crash_with_its_reason(
    make_client: MakeClient, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00not a program")
    broken.chmod(0o755)
    with anyio.fail_after(20):
        async with make_client("", argv=(str(broken),)) as mux:
            events, result = await watch(mux.run(prompt="hi"))
    assert (result.exit_reason, result.exit_code) == ("crashed", None)
    assert events[-2].exit_code == -1
    assert result.error is not None
    assert result.error.code == "SPAWN_ERROR"
    assert "Exec format error" in result.error.message


async def test_finished_run_leaves_no_temp_dir_and_no_process(make_client: MakeClient) -> None:
    body = """
subprocess.Popen(["sleep", "1000"], start_new_session=True)
subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 1000"], stdout=subprocess.DEVNULL)
read(); emit(text='x'); emit(done=True); drain()"""
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            _, result = await watch(run)
            temp_dir = temp_dir_of(run.run_id)
    assert result.exit_reason == "completed"
    assert processes_of(run.run_id) == []
    assert not temp_dir.exists()


async def test_abort_ends_an_agent_that_ignores_every_signal(make_client: MakeClient) -> None:
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
read(); emit(text='ready')
while True: time.sleep(100)"""
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", grace_period=0.2)
            async for event in run:
                if event.type == "text_delta":
                    await run.abort()
            result = await run
            await run.abort()  # has no effect on an ended run
    assert (result.exit_reason, run.state) == ("aborted", "aborted")
    assert processes_of(run.run_id) == []


async def test_leaving_the_block_aborts_unfinished_runs(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client("read(); emit(text='x'); time.sleep(1000)") as mux:
            runs = [mux.run(prompt="hi", grace_period=0.2) for _ in range(3)]
    for run in runs:
        assert (await run).exit_reason == "aborted"
        assert processes_of(run.run_id) == []


async def test_cancelled_client_leaves_nothing_behind(make_client: MakeClient) -> None:
    runs: list[RunHandle] = []
    with anyio.fail_after(20):
        with anyio.CancelScope() as scope:
            async with make_client("read(); emit(text='x'); time.sleep(1000)") as mux:
                runs.append(mux.run(prompt="hi", grace_period=0.2))
                async for event in runs[0]:
                    if event.type == "text_delta":
                        scope.cancel()
        assert scope.cancelled_caught
        assert (await runs[0]).exit_reason == "aborted"
    assert processes_of(runs[0].run_id) == []


async def test_exception_in_the_consumer_aborts_the_runs(make_client: MakeClient) -> None:
    runs: list[RunHandle] = []

    async def consume() -> None:
        async with make_client("read(); time.sleep(1000)") as mux:
            runs.append(mux.run(prompt="hi", grace_period=0.2))
            raise LookupError("the consumer's own")

    with anyio.fail_after(20):
        with pytest.raises((LookupError, ExceptionGroup)):
            await consume()
        assert (await runs[0]).exit_reason == "aborted"


async def test_run_timeout_ends_the_run(make_client: MakeClient) -> None:
    events, result = await run_to_end(make_client, "read(); time.sleep(1000)", timeout=0.2, grace_period=0.1)
    assert result.exit_reason == "timeout"
    assert events[-2].kind == "run"


async def test_inactivity_timeout_ends_a_silent_run(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); time.sleep(1000)"
    events, result = await run_to_end(make_client, body, inactivity_timeout=0.3, grace_period=0.1)
    assert result.exit_reason == "inactivity"
    assert events[-2].kind == "inactivity"


@pytest.mark.slow
async def test_pending_request_suspends_the_inactivity_timeout(make_client: MakeClient) -> None:
    body = "read(); emit(ask='it'); answer = read(); emit(text=answer['answer']); emit(done=True); drain()"

    async def slow(_: Any) -> Approve:
        await anyio.sleep(2.5)
        return Approve()

    # Long enough for an agent to start on a busy machine.
    _, result = await run_to_end(make_client, body, inactivity_timeout=2, on_approval_request=slow)
    assert (result.exit_reason, result.text) == ("completed", "yes")


@pytest.mark.parametrize(
    ("mode", "callback", "shown", "answer"),
    [
        ("yolo", None, [], "yes"),
        ("yolo", lambda _: Deny("no"), ["approval_request", "approval_denied"], "no"),
        ("deny", lambda _: Approve(), ["approval_denied"], "no"),
        ("prompt", lambda _: Approve(), ["approval_request", "approval_granted"], "yes"),
        ("prompt", lambda _: Deny("no"), ["approval_request", "approval_denied"], "no"),
        ("prompt", lambda _: 1 / 0, ["approval_request", "approval_denied"], "no"),
    ],
)
async def test_approvals_follow_mode_and_callback(
    make_client: MakeClient, mode: str, callback: Any, shown: list[str], answer: str
) -> None:
    body = "read(); emit(shell='it'); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", approval_mode=mode, on_approval_request=callback)
            events = [event async for event in run]
            result = await run
    assert validate(events) == []
    assert [name for name in types(events) if name.startswith("approval")] == shown
    assert result.text == answer
    assert ("shell_start" in types(events)) == (answer == "yes")


async def test_interaction_channel_accepts_one_answer_per_request(make_client: MakeClient) -> None:
    body = "read(); emit(ask='it'); emit(question='colour?'); emit(text=f'{read()} {read()}'); emit(done=1); drain()"
    seen: list[str] = []
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            run.interaction.on_pending(lambda pending: seen.append(pending.description))
            async for event in run:
                if event.type == "input_required":
                    approval, question = run.interaction.pending
                    with pytest.raises(AgentMuxError, match="does not answer"):
                        await run.interaction.respond(approval.id, Text("?"))
                    await run.interaction.respond(approval.id, Approve())
                    with pytest.raises(AgentMuxError) as twice:
                        await run.interaction.respond(approval.id, Approve())
                    assert twice.value.code == "INTERACTION_NOT_FOUND"
                    await run.interaction.respond(question.id, Choice(1))
            result = await run
    assert seen == ["run: it", "colour?"]
    assert "blue" in result.text
    assert result.exit_reason == "completed"


async def test_abort_during_pending_approval_denies_it_and_ends_with_aborted(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client("read(); emit(ask='it'); time.sleep(1000)") as mux:
            run = mux.run(prompt="hi", grace_period=0.2)
            async for event in run:
                if event.type == "approval_request":
                    await run.abort()
            events, result = await watch(run)
    assert types(events)[-4:] == ["approval_denied", "turn_end", "aborted", "session_end"]
    assert result.exit_reason == "aborted"
    with pytest.raises(AgentMuxError) as over:
        await run.approve()
    assert over.value.code == "RUN_NOT_ACTIVE"


async def test_interactive_run_takes_prompts_until_closed(make_client: MakeClient) -> None:
    body = """
read(); emit(session='S'); emit(text='first'); emit(done=True)
for line in sys.stdin: emit(text='to ' + json.loads(line)['send']); emit(done=True)"""
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True)
            await run.continue_("second")
            await run.continue_("third")
            turns = 0
            async for event in run:
                turns += event.type == "turn_end"
                if turns == 3:
                    turns += 1
                    await run.close()
            events, result = await watch(run)
    assert (result.exit_reason, result.turn_count, result.text) == ("completed", 3, "to third")
    assert result.messages == ["first", "to second", "to third"]
    assert [event.turn_index for event in events if event.type == "turn_start"] == [0, 1, 2]


async def test_send_and_steer_return_their_delivery(make_client: MakeClient) -> None:
    body = (
        "read(); emit(session='S1'); emit(text='on it'); [read() for _ in range(2)]; emit(done=True); read(); drain()"
    )
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True)
            await _wait_for(run, "text_delta")
            assert await run.steer("left") == "merged"
            assert await run.send("later") == "queued"
            await _wait_for(run, "turn_end")
            assert await run.steer("more") == "applied"
            with pytest.raises(CapabilityError, match="scripted does not support a message in the middle of a turn"):
                await run.steer("never mind")
            await run.abort()
            with pytest.raises(AgentMuxError) as late:
                await run.steer("too late")
    assert late.value.code == "RUN_NOT_ACTIVE"


@pytest.mark.promise("interrupt-continues")
async def test_interrupted_interactive_run_continues(make_client: MakeClient) -> None:
    body = """
read(); emit(text='first'); assert read()['interrupt']; emit(stopped=True)
emit(text='to ' + read()['send']); emit(done=True); drain()"""
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True)
            async for event in run:
                if event.type == "text_delta" and event.delta == "first":
                    await run.interrupt()
                    assert run.state == "interrupted"
                if event.type == "error":
                    assert (event.code, event.recoverable) == ("ABORTED", True)
                    await run.send("again")
                if event.type == "text_delta" and event.delta == "to again":
                    assert run.state == "running"
                    await run.close()
            events, result = await watch(run)
    assert "interrupted" not in types(events)
    assert (result.exit_reason, result.text) == ("completed", "to again")


async def test_interrupt_that_ends_the_run_is_the_exit_reason(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); read(); emit(stopped=True); sys.exit(1)"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            async for event in run:
                if event.type == "text_delta":
                    await run.interrupt()
            events, result = await watch(run)
    assert types(events)[-2:] == ["interrupted", "session_end"]
    assert result.exit_reason == "interrupted"


@pytest.mark.slow
async def test_paused_agent_stops_and_resumes(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); read(); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", inactivity_timeout=0.5)
            async for event in run:
                if event.type == "text_delta":
                    await run.pause()
                    with pytest.raises(AgentMuxError) as twice:
                        await run.pause()
                    assert twice.value.code == "INVALID_STATE_TRANSITION"
                    await run.send("while paused")
                if event.type == "paused":
                    await anyio.sleep(0.7)  # longer than the inactivity timeout, which pausing suspends
                    await run.resume()
            events, result = await watch(run)
    assert result.exit_reason == "completed"
    assert types(events).index("paused") < types(events).index("resumed") < types(events).index("turn_end")


async def test_approve_without_a_pending_request_raises(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client("read(); emit(text='x'); read(); time.sleep(1000)") as mux:
            run = mux.run(prompt="hi", grace_period=0.1)
            async for event in run:
                if event.type == "text_delta":
                    with pytest.raises(AgentMuxError) as nothing:
                        await run.approve()
                    assert nothing.value.code == "NO_PENDING_INTERACTION"
                    await run.abort()


async def test_handlers_receive_all_events_and_may_fail(make_client: MakeClient) -> None:
    seen: list[str] = []

    def broken(_: Any) -> None:
        raise ZeroDivisionError

    with anyio.fail_after(20):
        # The run waits for an approval: after its end, warnings are only logged.
        async with make_client("read(); emit(text='hi'); emit(ask='it'); read(); emit(done=True); drain()") as mux:
            run = mux.run(prompt="hi")
            run.on("*", lambda event: seen.append(event.type)).once("text_delta", broken)
            run.on("session_end", seen.clear).off("session_end", seen.clear)
            events = []
            async for event in run:
                events.append(event)
                if event.type == "approval_request":
                    await run.approve()
            result = await run
    assert result.exit_reason == "completed"
    warnings = [event.message for event in events if event.type == "debug"]
    assert len(warnings) == 1
    assert "ZeroDivisionError" in warnings[0]
    assert sorted(seen) == sorted(types(events))


@pytest.mark.slow
async def test_late_and_slow_readers_receive_every_event(make_client: MakeClient) -> None:
    body = "read()\nfor n in range(3000): emit(text=f'{n} ')\nemit(done=True); drain()"
    streams: dict[str, list[bytes]] = {}

    async def read(name: str, run: RunHandle, every: int) -> None:
        lines = streams.setdefault(name, [])
        async for event in run:
            lines.append(encode_event(event, accumulated=False))
            if every and len(lines) % every == 0:
                await anyio.sleep(0.001)

    with anyio.fail_after(25):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", event_buffer_size=10)
            async with anyio.create_task_group() as tasks:
                for name, every in (("fast", 0), ("slow", 50), ("slower", 7)):
                    tasks.start_soon(read, name, run, every)
            await read("late", run, 0)
            result = await run
    assert result.exit_reason == "completed"
    assert len(streams["fast"]) == 3006
    assert streams["fast"] == streams["slow"] == streams["slower"] == streams["late"]


@pytest.mark.slow
@local_only(LocalOnly.JOURNAL)
async def test_slow_reader_without_a_journal_is_warned_about_lost_events(make_client: MakeClient) -> None:
    body = "read()\nfor n in range(3000): emit(text=f'{n} ')\nemit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", event_buffer_size=10, journal=False)
            await run
            events = [event async for event in run]
    assert events[0].type == "debug"
    assert "events were lost" in events[0].message
    assert events[-1].type == "session_end"


@local_only(LocalOnly.JOURNAL)
async def test_unusable_journal_does_not_stop_the_run(make_client: MakeClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with anyio.fail_after(20):
        async with make_client(HELLO) as mux:
            run = mux.run(prompt="hi", journal=tmp_path / "file" / "x.journal")
            events = [event async for event in run]
            result = await run
    assert (result.exit_reason, result.text, result.journal) == ("completed", "hello world", None)
    assert any(event.type == "debug" and "no journal" in event.message for event in events)


async def test_output_of_any_shape_is_neither_lost_nor_raised(make_client: MakeClient) -> None:
    body = r"""
read(); out = sys.stdout.buffer
out.write(b'noise without json\n\x1b[31mcolour\x1b[0m\n\xff\xfe not utf-8\n\0nul\n')
out.write(b'{"text": "crlf "}\r\n{"text": "u2028\xe2\x80\xa8 "}\n{"text": "bad \xff "}\n\n  \n')
for byte in '{"text": "\u00e9\U0001f600 "}\n'.encode(): out.write(bytes([byte])); out.flush()
out.write(b'{"mystery": 1}\n{"nothing": 1}\n{"done": true}')
out.flush(); sys.stdout.close(); os._exit(0)"""
    events, result = await run_to_end(make_client, body)
    assert result.exit_reason == "completed"
    assert result.text == "crlf u2028\u2028 bad \ufffd \u00e9\U0001f600 "
    logs = [event.line for event in events if event.type == "log"]
    assert logs == ["noise without json", "\x1b[31mcolour\x1b[0m", "\ufffd\ufffd not utf-8", "\0nul"]
    assert result.ledger.unknown == {"mystery": 1}
    assert result.ledger.ignored == {"nothing": 1}
    assert result.ledger.reasons == {"nothing": "it carries nothing"}
    assert any(event.type == "debug" and "mystery" in event.message for event in events)


@pytest.mark.slow
async def test_64_mib_line_and_stderr_flood_are_received(make_client: MakeClient) -> None:
    body = """
import threading
def flood():
    for _ in range(2000): sys.stderr.write('e' * 999 + '\\n')
thread = threading.Thread(target=flood); thread.start()
read(); emit(text='x' * (64 << 20)); thread.join(); emit(done=True); drain()"""
    with anyio.fail_after(60):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", max_text_bytes=0)
            result = await run
            lines = 0
            async for event in run:
                lines += event.type == "log"
    assert result.exit_reason == "completed"
    assert len(result.text) == 64 << 20
    assert lines == 2000


@pytest.mark.slow
async def test_agent_that_never_reads_does_not_block_the_client(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); time.sleep(1000)"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", grace_period=0.1)
            async for event in run:
                if event.type == "text_delta":
                    for _ in range(40):
                        await run.send("y" * 100_000)
                    await run.abort()
            assert (await run).exit_reason == "aborted"


async def test_agent_that_closes_its_input_early_completes(make_client: MakeClient) -> None:
    body = "read(); os.close(0); emit(text='x'); time.sleep(0.3); emit(done=True)"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            async for event in run:
                if event.type == "text_delta":
                    await run.send("this is not read")
            assert (await run).exit_reason == "completed"


async def test_invalid_options_are_refused_before_the_start(make_client: MakeClient) -> None:
    async with make_client(HELLO) as mux:
        for fields, code in (
            ({"prompt": ""}, "VALIDATION_ERROR"),
            ({"prompt": "x", "agent": "scriptd"}, "AGENT_NOT_FOUND"),
            ({"prompt": "x", "session_id": "S"}, "CAPABILITY_ERROR"),
            ({"prompt": "x", "temprature": 1}, "VALIDATION_ERROR"),
            ({"prompt": "x", "env": {"AMUX_SCRIPTED_EXECUTABLE": "/nowhere"}}, "AGENT_NOT_INSTALLED"),
        ):
            with pytest.raises(AgentMuxError) as caught:
                mux.run(**fields)
            assert caught.value.code == code
    with pytest.raises(AgentMuxError):
        mux.run(prompt="after the block")


async def test_unpaired_surrogates_are_sent_as_replacement_characters(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); emit(text=read()['send']); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="bad \udcff", tags=["\udcfe"])
            async for event in run:
                if event.type == "text_delta" and event.delta == "x":
                    await run.send("also \udcff")
            _, result = await watch(run)
    assert (result.exit_reason, result.text, result.tags) == ("completed", "xalso \ufffd", ("\ufffd",))


async def test_turn_limit_is_enforced_by_counting_if_the_agent_lacks_it(make_client: MakeClient) -> None:
    body = "read()\nwhile True: emit(call=True); emit(text='again'); emit(over=True); time.sleep(0.05)"
    with anyio.fail_after(20):
        async with make_client(body, counts_turns=False) as mux:
            events, result = await watch(mux.run(prompt="hi", max_model_calls=2, grace_period=0.1))
    assert (result.exit_reason, events[-2].type, events[-2].max_turns) == ("turn_limit", "turn_limit", 2)
    assert types(events).count("step_start") >= 3


async def test_raising_codec_loses_its_line_but_not_the_run(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); emit(bug=1); emit(text='y'); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            events, result = await watch(mux.run(prompt="hi"))
    assert (result.exit_reason, result.text) == ("completed", "xy")
    assert result.ledger.unknown.total() == 1
    assert any(event.type == "debug" and "ZeroDivisionError" in event.message for event in events)


def test_callback_runs_in_the_event_loop_of_the_caller(tmp_path: Path) -> None:
    body = "read(); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"

    async def main() -> RunResult:
        async with asyncio.timeout(20), ScriptedMux(tmp_path).client(body) as mux:
            return await mux.run(prompt="hi", on_approval_request=lambda _: Approve())

    assert asyncio.run(main()).text == "yes"
