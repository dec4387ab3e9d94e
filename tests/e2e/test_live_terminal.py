"""Interactive modes of real CLIs, read from their screens: what an agent without a structured mode is driven by.

`pi` has a protocol of its own and is driven by its screen here only to prove that it can be. `openclaw tui` is the way
to OpenClaw where its gateway or its other protocols cannot be used.
"""

import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.harness import PROMPT, FinishedRun, LiveAgent, assert_nothing_left, finish, wait_for_event
from tests.e2e.terminal import amux
from tests.e2e.ways import CORE

from agent_mux import AgentMux, RunHandle, RunOptions
from agent_mux.journal.file import JournalReader
from agent_mux.process.marker import processes_of
from agent_mux_testing.live import Say, Shell
from agent_mux_testing.provision import find_agent

pytest.importorskip("pyte")
pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Program:
    """The interactive mode of a CLI."""

    agent: str
    """Whose kit knows how to start it and how its model speaks."""
    name: str
    """Of the program, as a user has it on PATH: it chooses the profile."""
    arguments: tuple[str, ...] = ()
    stopped: str = ""
    """What it shows of an interruption."""


PI = Program("pi", "pi", stopped="Operation aborted")
OPENCLAW = Program("openclaw", "openclaw", ("tui", "--local"), stopped="run aborted")
ONLY_PI = pytest.mark.parametrize("screens", [pytest.param(PI, marks=CORE)], indirect=True, ids=["pi"])
"""What would only say the same again of a program that takes half a minute to start."""


class Screens:
    """A program at a terminal, with a home, a workspace and a scripted model of its own."""

    def __init__(self, program: Program, live: LiveAgent, directory: Path) -> None:
        self.program = program
        self.live = live
        self._path = directory / program.name
        self._path.symlink_to(live.provisioned.program)

    @property
    def command(self) -> tuple[str, ...]:
        return (str(self._path), *self.program.arguments)

    def options(self, prompt: str, **fields: Any) -> RunOptions:
        given = {"approval_mode": "yolo", "collect_events": True, **fields}
        return RunOptions(
            agent="terminal", command=self.command, prompt=prompt, cwd=self.live.workspace,
            env=self.live.launch.environment, inherit_env=False, **given,
        )  # fmt: skip

    @asynccontextmanager
    async def running(self, prompt: str = PROMPT, **fields: Any) -> AsyncIterator[RunHandle]:
        with anyio.fail_after(self.live.kit.patience):
            async with AgentMux(config_dir=self.live.config_directory) as mux:
                run = mux.run(self.options(prompt, **fields))
                yield run
                await run

    async def run(self, prompt: str = PROMPT, **fields: Any) -> FinishedRun:
        async with self.running(prompt, **fields) as run:
            pass
        return await finish(run)


@pytest.fixture(params=[pytest.param(PI, marks=CORE), OPENCLAW], ids=["pi", "openclaw"])
def screens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Screens]:
    program: Program = request.param
    provisioned = find_agent(program.agent, None)
    if provisioned is None:
        pytest.skip(f"{program.agent} is not there; try: python -m agent_mux_testing.provision {program.agent}")
    with ExitStack() as stack:
        yield Screens(program, LiveAgent(provisioned, tmp_path, stack), tmp_path)


@ONLY_PI
async def test_an_answer(screens: Screens) -> None:
    screens.live.script(screens.live.answer(Say("Hello from the scripted model.\n\nTwo paragraphs, naïve 日本 😀.")))
    done = await screens.run()
    assert done.result.exit_reason == "completed"
    assert done.result.exit_code == 0
    assert done.result.messages == ["Hello from the scripted model.\n\nTwo paragraphs, naïve 日本 😀."]
    assert screens.live.model.received(PROMPT)
    assert JournalReader(Path(done.result.journal or "")).header.codec.protocol == screens.program.name


async def test_two_turns_the_second_of_two_lines(screens: Screens) -> None:
    live = screens.live.script(screens.live.answer(Say("The first.")), screens.live.answer(Say("The second.")))
    async with screens.running("one", interactive=True) as run:
        await wait_for_event(run, "turn_end")
        await run.send("line one\nline two")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.messages == ["The first.", "The second."]
    assert live.model.received("line one\nline two")


async def test_a_command_runs(screens: Screens) -> None:
    live = screens.live
    # An absolute path: OpenClaw works in a workspace of its own, wherever it is started.
    live.script(live.answer(Shell(f"touch {live.file('made')}")), live.answer(Say("It is done.")))
    done = await screens.run()
    assert done.result.exit_reason == "completed"
    assert done.result.text.endswith("It is done.")
    assert live.file("made").exists()


async def test_an_interruption_and_then_another_prompt(screens: Screens) -> None:
    live = screens.live.script(
        screens.live.answer(Say("A long text that hangs here."), hang=True),
        screens.live.answer(Say("Here I am again.")),
    )
    async with screens.running("begin", interactive=True) as run:
        await live.model.wait_for_requests(1)
        await run.interrupt()
        await wait_for_event(run, "turn_end")
        await run.send("and now?")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.messages[0].endswith(screens.program.stopped)
    assert done.result.messages[1] == "Here I am again."
    assert [error.code for error in done.all("error")] == ["ABORTED"]


async def test_a_wrong_key(screens: Screens) -> None:
    screens.live.script(screens.live.refusal("unauthorized", repeat=True))
    done = await screens.run()
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "AUTH_ERROR"
    assert done.types("message_stop", "auth_error") == ["auth_error"]


async def test_abort_in_a_command(screens: Screens) -> None:
    live = screens.live.script(screens.live.answer(Shell(f"touch {screens.live.file('started')}; sleep 300")))
    async with screens.running() as run:
        await live.wait_for_file("started")
        assert len(processes_of(run.run_id)) > 1  # the program and its shell
        await run.abort()
        assert_nothing_left(run.run_id)
    done = await finish(run)
    assert done.result.exit_reason == "aborted"


@ONLY_PI
async def test_another_size(screens: Screens) -> None:
    live = screens.live.script(screens.live.answer(Say("First.")), screens.live.answer(Say("word " * 20)))
    async with screens.running("one", interactive=True) as run:
        await wait_for_event(run, "turn_end")
        await run.resize(60, 30)
        await run.send("two")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.messages[0] == "First."
    assert done.result.messages[1].split() == ["word"] * 20
    assert max(map(len, done.result.messages[1].splitlines())) <= 60
    assert live.model.unused_steps == ()


def test_from_the_command_line(screens: Screens) -> None:
    live = screens.live.script(screens.live.answer(Say("Hello from the scripted model.")))
    command = shlex.join(screens.command)
    types, told = amux(live, "run", "terminal", "--command", command, "--yolo", "--json", PROMPT).check_stream()
    assert told["exitReason"] == "completed"
    assert told["text"] == "Hello from the scripted model."
    assert types[-1] == "session_end"
