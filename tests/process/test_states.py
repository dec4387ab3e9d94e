"""The states of a run: all legal and illegal transitions. Every wait is bounded."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.checked_runs import types, watch
from tests.process.scripted import MakeClient

from agent_mux import AgentMuxError, RunHandle, Text

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

BUSY = "read(); emit(session='S'); emit(text='on it')\n"
IDLE = "read(); emit(session='S'); emit(text='on it'); emit(done=True)\n"
ANSWERS = """
while (line := read()) is not None:
    if line.get("interrupt"): emit(stopped=True)
    else: emit(text=str(line.get("send"))); emit(done=True)
"""
LINGERS = "\nimport pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)"
STAYS = "\ntime.sleep(1000)"
Act = Callable[[RunHandle], Awaitable[Any]]


async def wait_for(run: RunHandle, kind: str, count: int = 1) -> None:
    async for event in run:
        count -= event.type == kind
        if not count:
            return
    raise AssertionError(f"the run ended without {kind}")


async def paused(run: RunHandle) -> None:
    await wait_for(run, "text_delta")
    await run.pause()


async def interrupted(run: RunHandle) -> None:
    await wait_for(run, "text_delta")
    await run.interrupt()


async def running(run: RunHandle) -> None:
    await wait_for(run, "text_delta")


async def idle(run: RunHandle) -> None:
    await wait_for(run, "turn_end")


ACTS: dict[str, Act] = {
    "send": lambda run: run.send("more"),
    "steer": lambda run: run.steer("more"),
    "queue": lambda run: run.queue("more"),
    "continue_": lambda run: run.continue_("more"),
    "approve": lambda run: run.approve(),
    "deny": lambda run: run.deny(),
    "respond": lambda run: run.interaction.respond("unknown", Text("x")),
    "interrupt": lambda run: run.interrupt(),
    "pause": lambda run: run.pause(),
    "resume": lambda run: run.resume(),
    "close": lambda run: run.close(),
    "resize": lambda run: run.resize(80, 24),
}
NOTHING_WAITS = {
    "approve": "NO_PENDING_INTERACTION",
    "deny": "NO_PENDING_INTERACTION",
    "respond": "INTERACTION_NOT_FOUND",
}
NO_TERMINAL = {"resize": "PTY_NOT_AVAILABLE"}
ILLEGAL = "INVALID_STATE_TRANSITION"

# state -> action -> (the returned value or the error code, the state after the action)
TRANSITIONS: dict[str, tuple[str, Act, dict[str, tuple[str, str]]]] = {
    "running": (
        BUSY + ANSWERS, running,
        {
            "send": ("queued", "running"), "steer": ("merged", "running"), "queue": ("queued", "running"),
            "interrupt": ("applied", "interrupted"), "pause": ("applied", "paused"), "resume": (ILLEGAL, "running"),
            "close": ("applied", "running"),
        },
    ),
    "idle": (
        IDLE + ANSWERS, idle,
        {
            "send": ("applied", "running"), "steer": ("applied", "running"), "queue": ("applied", "running"),
            "continue_": ("applied", "running"), "interrupt": ("unneeded", "running"),
            "pause": ("applied", "paused"), "resume": (ILLEGAL, "running"), "close": ("applied", "running"),
        },
    ),
    "paused": (
        BUSY + ANSWERS, paused,
        {
            "send": ("queued", "paused"), "steer": ("merged", "paused"), "queue": ("queued", "paused"),
            "interrupt": (ILLEGAL, "paused"), "pause": (ILLEGAL, "paused"), "resume": ("applied", "running"),
            "close": ("applied", "paused"),
        },
    ),
    "interrupted": (
        # The agent reports the stop only after another message.
        BUSY + "read(); read(); emit(stopped=True)\n" + ANSWERS, interrupted,
        {
            "send": ("queued", "running"), "steer": ("merged", "running"), "queue": ("queued", "running"),
            "interrupt": ("unneeded", "interrupted"), "pause": ("applied", "paused"),
            "resume": (ILLEGAL, "interrupted"), "close": ("applied", "interrupted"),
        },
    ),
}  # fmt: skip
CASES = [
    (state, act, *({name: (code, "") for name, code in {**NOTHING_WAITS, **NO_TERMINAL}.items()} | transitions)[act])
    for state, (_, _, transitions) in TRANSITIONS.items()
    for act in ACTS
    if act in transitions or act in NOTHING_WAITS or act in NO_TERMINAL
]


async def outcome(act: Awaitable[Any]) -> str:
    try:
        return str(await act)
    except AgentMuxError as error:
        return error.code


@pytest.mark.promise("interrupt-twice")
@pytest.mark.promise("refused-call")
@pytest.mark.promise("states")
@pytest.mark.promise("delivery")
@pytest.mark.parametrize(("state", "act", "expected", "state_after"), CASES)
async def test_action_returns_its_outcome_and_changes_the_state(
    make_client: MakeClient, state: str, act: str, expected: str, state_after: str
) -> None:
    body, reach, _ = TRANSITIONS[state]
    with anyio.fail_after(20):
        async with make_client(body + STAYS) as mux:
            run = mux.run(prompt="hi", interactive=True, grace_period=0.1)
            await reach(run)
            before = run.state
            assert await outcome(ACTS[act](run)) == expected
            assert run.state == (state_after or before)
            assert await run.abort() == "applied"
            assert run.state == "aborted"


ENDINGS: dict[str, tuple[str, Act, dict[str, Any]]] = {
    "completed": (IDLE + "drain()", lambda run: run.close(), {"interactive": True}),
    "aborted": (BUSY + "drain()", lambda run: run.abort(), {}),
    "timed-out": (BUSY + "drain()", running, {"timeout": 0.5}),
    "crashed": (BUSY + "sys.exit(3)", running, {}),
    "killed": (BUSY + "os.kill(os.getpid(), 9)", running, {}),
}


@pytest.mark.promise("ended-run")
@pytest.mark.parametrize("state", ENDINGS)
async def test_ended_run_refuses_every_action(make_client: MakeClient, state: str) -> None:
    body, end, fields = ENDINGS[state]
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", **fields)
            await running(run)
            await end(run)
            events, result = await watch(run)
            assert run.state == state
            for name, act in ACTS.items():
                assert (name, await outcome(act(run))) == (name, "RUN_NOT_ACTIVE")
            assert await run.abort() == "unneeded"
            run.kill()
            assert run.state == state
            assert await run is result
            assert [event async for event in run] == events


async def test_interrupted_run_continues_with_queued_prompts(make_client: MakeClient, tmp_path: Path) -> None:
    body = BUSY + "read(); read(); emit(stopped=True); emit(text='next'); emit(done=True)\n" + ANSWERS + LINGERS
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True, cwd=tmp_path)
            await running(run)
            assert await run.send("next") == "queued"
            assert await run.interrupt() == "applied"
            await wait_for(run, "turn_end", 2)
            assert run.state == "running"
            assert await run.close() == "applied"
            assert await run.close() == "unneeded"
            (tmp_path / "go").touch()
            events, result = await watch(run)
    assert (result.exit_reason, result.text) == ("completed", "next")
    assert types(events, "interrupted") == []


async def test_closed_run_refuses_further_messages(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client(BUSY + "drain()" + STAYS) as mux:
            run = mux.run(prompt="hi", interactive=True, grace_period=0.1)
            await running(run)
            await run.close()
            for act in ("send", "steer", "queue"):
                assert await outcome(ACTS[act](run)) == "STDIN_NOT_AVAILABLE"


@pytest.mark.promise("lost-input")
async def test_unread_input_is_reported(make_client: MakeClient) -> None:
    body = BUSY + "os.close(0); emit(text='deaf'); time.sleep(1000)"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True, grace_period=0.1)
            await wait_for(run, "text_delta", 2)
            await run.send("hello?")
            await wait_for(run, "debug")
            assert await outcome(run.send("hello?")) == "STDIN_NOT_AVAILABLE"
            await run.abort()
            events, _ = await watch(run)
    [message] = [event.message for event in events if event.type == "debug"]
    assert message == "scripted no longer reads its input: the last 19 bytes are lost"
