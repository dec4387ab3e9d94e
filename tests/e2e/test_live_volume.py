"""Much output: nothing is lost or mixed up, and a slow reader receives all of it."""

import anyio
import anyio.lowlevel
import pytest
from tests.e2e.harness import LiveAgent, finish
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, WAYS

from agent_mux import encode_event
from agent_mux.events import AgentEvent
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
SIZE = 3_000_000
LONG = " ".join(f"wörd{number * 7919 % 1_000_003:x}" for number in range(100_000))
"""1 MB of different words: agents stop a model that repeats itself."""
MANY = 2_500
"""More deltas than the events that a slow reader may fall behind."""


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_three_megabytes_of_tool_output(live: LiveAgent, way: str) -> None:
    """Agents shorten the output for the model and in their protocols; the command and the run end normally."""
    line = "x" * 99
    command = f"echo first; yes {line} | head -n {SIZE // 100}; echo last; touch made"
    live.script(live.answer(Shell(command)), live.answer(Say("Done.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Done."
    assert live.file("made").exists()
    assert done.one("shell_exit").exit_code == 0
    output = str(done.one("tool_result").output) + "".join(event.delta for event in done.all("shell_stdout_delta"))
    assert line in output
    assert "first" in output or "last" in output
    live.assert_usage(done, calls=2)


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_one_megabyte_in_a_delta(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say(LONG), pieces=1))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == LONG
    assert "".join(event.delta for event in done.all("text_delta")) == LONG


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_slow_reader_receives_every_event(live: LiveAgent, way: str) -> None:
    """A reader that stops after the first event until the run is over, and one that yields after each event."""
    text = "".join(f"word{number} " for number in range(MANY)).strip()
    live.script(live.answer(Say(text), pieces=MANY))
    stalled: list[AgentEvent] = []
    slow: list[AgentEvent] = []
    async with live.running(event_buffer_size=100, **WAYS[way]) as run:

        async def read_late() -> None:
            async for event in run:
                if not stalled:
                    await run
                stalled.append(event)

        async def read_slowly() -> None:
            async for event in run:
                slow.append(event)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_late)
            tasks.start_soon(read_slowly)
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.text == text
    expected = [encode_event(event) for event in done.events]
    assert [encode_event(event) for event in stalled] == expected
    assert [encode_event(event) for event in slow] == expected
