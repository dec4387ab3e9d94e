"""The states of a run: all legal and illegal transitions. Each test bounds every wait."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient
from tests.process.watching import types, watch

from agent_mux import AgentMuxError, RunHandle, Text

pytestmark = [pytest.mark.anyio, pytest.mark.everywhere]

BUSY = "hear(); say(session='S'); say(text='on it')\n"
IDLE = "hear(); say(session='S'); say(text='on it'); say(done=True)\n"
TALKS = """
while (said := hear()) is not None:
    if said.get("interrupt"): say(stopped=True)
    else: say(text=str(said.get("send"))); say(done=True)
"""
LINGERS = "\nimport pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)"
STAYS = "\ntime.sleep(1000)"
Act = Callable[[RunHandle], Awaitable[Any]]


async def until(run: RunHandle, kind: str, count: int = 1) -> None:
    async for event in run:
        count -= event.type == kind
        if not count:
            return
    raise AssertionError(f"the run ended without {kind}")


async def paused(run: RunHandle) -> None:
    await until(run, "text_delta")
    await run.pause()


async def interrupted(run: RunHandle) -> None:
    await until(run, "text_delta")
    await run.interrupt()


async def running(run: RunHandle) -> None:
    await until(run, "text_delta")


async def idle(run: RunHandle) -> None:
    await until(run, "turn_end")


ACTS: dict[str, Act] = {
    "send": lambda run: run.send("more"),
    "steer": lambda run: run.steer("more"),
    "queue": lambda run: run.queue("more"),
    "continue_": lambda run: run.continue_("more"),
    "approve": lambda run: run.approve(),
    "deny": lambda run: run.deny(),
    "respond": lambda run: run.interaction.respond("nobody", Text("x")),
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

# state -> act -> (what it gives, or the code of its error; the state after it)
MOVES: dict[str, tuple[str, Act, dict[str, tuple[str, str]]]] = {
    "running": (
        BUSY + TALKS, running,
        {
            "send": ("queued", "running"), "steer": ("merged", "running"), "queue": ("queued", "running"),
            "interrupt": ("applied", "interrupted"), "pause": ("applied", "paused"), "resume": (ILLEGAL, "running"),
            "close": ("applied", "running"),
        },
    ),
    "idle": (
        IDLE + TALKS, idle,
        {
            "send": ("applied", "running"), "steer": ("applied", "running"), "queue": ("applied", "running"),
            "continue_": ("applied", "running"), "interrupt": ("unneeded", "running"),
            "pause": ("applied", "paused"), "resume": (ILLEGAL, "running"), "close": ("applied", "running"),
        },
    ),
    "paused": (
        BUSY + TALKS, paused,
        {
            "send": ("queued", "paused"), "steer": ("merged", "paused"), "queue": ("queued", "paused"),
            "interrupt": (ILLEGAL, "paused"), "pause": (ILLEGAL, "paused"), "resume": ("applied", "running"),
            "close": ("applied", "paused"),
        },
    ),
    "interrupted": (
        # It says that it stopped only when it is told to go on.
        BUSY + "hear(); hear(); say(stopped=True)\n" + TALKS, interrupted,
        {
            "send": ("queued", "running"), "steer": ("merged", "running"), "queue": ("queued", "running"),
            "interrupt": (ILLEGAL, "interrupted"), "pause": ("applied", "paused"), "resume": (ILLEGAL, "interrupted"),
            "close": ("applied", "interrupted"),
        },
    ),
}  # fmt: skip
CASES = [
    (state, act, *({name: (code, "") for name, code in {**NOTHING_WAITS, **NO_TERMINAL}.items()} | told)[act])
    for state, (_, _, told) in MOVES.items()
    for act in ACTS
    if act in told or act in NOTHING_WAITS or act in NO_TERMINAL
]


async def outcome(act: Awaitable[Any]) -> str:
    try:
        return str(await act)
    except AgentMuxError as error:
        return error.code


@pytest.mark.parametrize(("state", "act", "gives", "then"), CASES)
async def test_a_move(make_client: MakeClient, state: str, act: str, gives: str, then: str) -> None:
    body, reach, _ = MOVES[state]
    with anyio.fail_after(20):
        async with make_client(body + STAYS) as mux:
            run = mux.run(prompt="hi", interactive=True)
            await reach(run)
            before = run.state
            assert await outcome(ACTS[act](run)) == gives
            assert run.state == (then or before)
            assert await run.abort() == "applied"
            assert run.state == "aborted"


ENDINGS: dict[str, tuple[str, Act, dict[str, Any]]] = {
    "completed": (IDLE + "rest()", lambda run: run.close(), {"interactive": True}),
    "aborted": (BUSY + "rest()", lambda run: run.abort(), {}),
    "timed-out": (BUSY + "rest()", running, {"timeout": 0.5}),
    "crashed": (BUSY + "sys.exit(3)", running, {}),
    "killed": (BUSY + "os.kill(os.getpid(), 9)", running, {}),
}


@pytest.mark.parametrize("state", ENDINGS)
async def test_terminal_states_are_final(make_client: MakeClient, state: str) -> None:
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


async def test_an_interrupted_run_continues_with_queued_prompts(make_client: MakeClient, tmp_path: Path) -> None:
    body = BUSY + "hear(); hear(); say(stopped=True); say(text='next'); say(done=True)\n" + TALKS + LINGERS
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True, cwd=tmp_path)
            await running(run)
            assert await run.send("next") == "queued"
            assert await run.interrupt() == "applied"
            await until(run, "turn_end", 2)
            assert run.state == "running"
            assert await run.close() == "applied"
            assert await run.close() == "unneeded"
            (tmp_path / "go").touch()
            events, result = await watch(run)
    assert (result.exit_reason, result.text) == ("completed", "next")
    assert types(events, "interrupted") == []


async def test_a_closed_run_takes_no_more_input(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client(BUSY + "rest()" + STAYS) as mux:
            run = mux.run(prompt="hi", interactive=True)
            await running(run)
            await run.close()
            for act in ("send", "steer", "queue"):
                assert await outcome(ACTS[act](run)) == "STDIN_NOT_AVAILABLE"


async def test_lost_input_is_a_warning(make_client: MakeClient) -> None:
    body = BUSY + "os.close(0); say(text='deaf'); time.sleep(1000)"
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", interactive=True)
            await until(run, "text_delta", 2)
            await run.send("hello?")
            await until(run, "debug")
            assert await outcome(run.send("hello?")) == "STDIN_NOT_AVAILABLE"
            await run.abort()
            events, _ = await watch(run)
    [told] = [event.message for event in events if event.type == "debug"]
    assert told == "scripted no longer reads its input: the last 19 bytes are lost"
