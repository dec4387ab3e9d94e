"""A reader that falls behind the window in memory reads what it missed from the journal, whatever the agent.

Each agent is its real adapter with the player of recordings in place of its program. The recording is one of the real
CLI in which a line of text is repeated, so that the run has several times more events than the window.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux import AgentMux, RunHandle, encode_event
from agent_mux.events import AgentEvent
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import TRANSCRIPTS_ONLY, Adapter, SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_adapters.replay.argv import PLAYER, SPEED
from agent_mux_adapters.replay.playback import lines
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.fixtures import Fixture, find_fixtures, write_fixture

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[2] / "fixtures"
BOUND = 120.0
WINDOW = 1000
"""The default of `event_buffer_size`; the window holds up to twice as many events."""
EVENTS = 10_000
TERMINAL = "terminal"
REPLAY = "replay"
TEXT = (facts.TextDelta, facts.WholeText)
NOT_JSON = b"a line that the program of the agent printed"
REGISTRY = AdapterRegistry()


def protocols() -> Iterator[Any]:
    """Yield each agent with every protocol that its runs use."""
    for agent in sorted(set(REGISTRY.names()) - {TERMINAL, REPLAY}):
        for protocol in REGISTRY.get(agent).protocols.values():
            if protocol.chosen_for != TRANSCRIPTS_ONLY:
                yield pytest.param(agent, protocol.name, id=f"{agent}-{protocol.name}")


def long_recording(agent: str, protocol: str) -> Fixture:
    """Return a recording in which a line is repeated that adds an event each time."""
    adapter = REGISTRY.get(agent)
    recordings = [Recorded(adapter, folder) for folder in find_fixtures(FIXTURES, agent)]
    suitable = [each for each in recordings if each.fixture.protocol == protocol and has_one_prompt(each.fixture)]
    for recorded in suitable:
        for line, found in recorded.facts_by_line():
            if isinstance(found[-1], TEXT) and adds_events(recorded, line):
                return repeated(recorded.fixture, line, EVENTS)
    return repeated(suitable[0].fixture, NOT_JSON, EVENTS)


def has_one_prompt(fixture: Fixture) -> bool:
    """Return whether the consumer decides nothing in this recording after its prompt."""
    decisions = [kind for line in fixture.stdin if (kind := lines.parse_sent(line).kind) in lines.NEEDED]
    return decisions in ([], [lines.PROMPT])


def adds_events(recorded: Recorded, line: bytes) -> bool:
    """Return whether each repetition of the line adds an event."""
    counts = []
    for count in (0, 20):
        output = repeated(recorded.fixture, line, count).stdout_lines
        counts.append(len(recorded.play(recorded.chunks(map(recorded.frame_message, output))).events))
    return counts[1] - counts[0] >= 20


def repeated(fixture: Fixture, line: bytes, count: int) -> Fixture:
    """Return the recording with the line repeated where it is first printed, else before the last line."""
    output, times = fixture.stdout_lines, fixture.times
    index = output.index(line) if line in output else len(output) - 1
    longer = [*output[:index], *[line] * count, *output[index:]]
    at = times[: index + 1][-1:] or (0.0,)
    return replace(
        fixture,
        stdout=b"".join(line + b"\n" for line in longer),
        times=(*times[:index], *at * count, *times[index:]),
    )


def with_player(adapter: Adapter, protocol: str, recording: Path) -> Adapter:
    """Return the adapter with another program; codec, context and framing are those of the agent."""

    def spawn(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
        spawned = adapter.spawn(options, environment)
        return replace(
            spawned,
            argv=(sys.executable, "-I", "-S", str(PLAYER), str(recording), "0", "5"),
            protocol=protocol,
            stdin_text=None if adapter.protocols[protocol].two_way else spawned.stdin_text,  # else the codec sends it
        )

    return replace(adapter, spawn=spawn)


async def check_slow_reader(run: RunHandle) -> None:
    """Read a run slowly, and compare the result with the events as they happened."""
    published: list[AgentEvent] = []
    received: list[AgentEvent] = []
    run.on("*", published.append)
    events = run.events()
    times_behind = 0
    is_over = False
    while not is_over:
        while len(published) - len(received) <= 2 * WINDOW and not is_over:
            await anyio.sleep(0.001)
            is_over = run.state in TERMINAL_STATES
        times_behind += len(published) - len(received) > 2 * WINDOW
        for _ in range(WINDOW):
            event = await anext(events, None)
            if event is None:
                break
            received.append(event)
    received += [event async for event in events]
    assert times_behind >= 1
    assert len(published) > EVENTS
    assert list(map(compact, received)) == list(map(compact, published))


def compact(event: AgentEvent) -> bytes:
    """Return the event without accumulated text, which repeats that of the events before it."""
    return encode_event(event, accumulated=False)


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "protocol"), list(protocols()))
async def test_slow_reader_receives_every_event(agent: str, protocol: str, tmp_path: Path) -> None:
    recording = write_fixture(long_recording(agent, protocol), tmp_path / "recording")
    registry = AdapterRegistry()
    adapter = with_player(REGISTRY.get(agent), protocol, recording)
    registry.register(adapter)
    given = {"command": (sys.executable,)} if adapter.takes_command else {}
    environment = {adapter.executable_variable: sys.executable}
    with anyio.fail_after(BOUND):
        async with AgentMux(adapters=registry, default_agent=agent, config_dir=tmp_path / "config") as mux:
            run = mux.run(prompt="go", approval_mode="yolo", env=environment, cwd=tmp_path, **given)
            await check_slow_reader(run)


@pytest.mark.slow
async def test_slow_reader_of_a_replay_receives_every_event(tmp_path: Path) -> None:
    recording = write_fixture(long_recording("claude", "stream-json"), tmp_path / "recording")
    with anyio.fail_after(BOUND):
        async with AgentMux(default_agent=REPLAY, config_dir=tmp_path / "config") as mux:
            run = mux.run(prompt=str(recording), env={SPEED: "0"})
            await check_slow_reader(run)


@pytest.mark.exhaustive  # minutes
@pytest.mark.slow  # 10,000 signals to its process group
async def test_slow_reader_of_a_terminal_receives_every_event(tmp_path: Path) -> None:
    """Pause and resume the run, because a program at a terminal produces few events by itself."""
    pytest.importorskip("pyte")
    command = (sys.executable, "-c", "input(); input()")
    with anyio.fail_after(3 * BOUND):  # each pause signals and checks all processes of the run
        async with AgentMux(default_agent=TERMINAL, config_dir=tmp_path / "config") as mux:
            run = mux.run(prompt="hi", approval_mode="yolo", command=command, interactive=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(check_slow_reader, run)
                for _ in range(EVENTS // 2):
                    await run.pause()
                    await run.resume()
                await run.abort()


@pytest.mark.parametrize("name", ["plain", os.fsdecode(b"not UTF-8 \xff")], ids=["plain", "not-utf8"])
async def test_directory_name_does_not_hide_the_journal(make_client: MakeClient, tmp_path: Path, name: str) -> None:
    project = tmp_path / name
    project.mkdir()
    published: list[AgentEvent] = []
    with anyio.fail_after(BOUND):
        async with make_client("read(); emit(session='S1'); emit(text='hello'); emit(done=True); drain()") as mux:
            run = mux.run(prompt="hi", event_buffer_size=1, cwd=project)
            run.on("*", published.append)
            await run
            received = [event async for event in run]
    assert len(published) > 2
    assert list(map(encode_event, received)) == list(map(encode_event, published))
