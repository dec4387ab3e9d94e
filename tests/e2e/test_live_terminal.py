"""Interactive modes of real CLIs, read from their screens, as for agents without a structured protocol.

`pi` has a structured protocol; here it only verifies the terminal adapter. `openclaw tui` is for installations where
the gateway and the other protocols of OpenClaw cannot be used.
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
class TerminalProgram:
    """The interactive mode of a CLI."""

    agent: str
    """The agent whose kit starts the program and scripts its model."""
    name: str
    """The name of the program on PATH, which selects the profile."""
    arguments: tuple[str, ...] = ()
    interrupted_text: str = ""
    """The text that it shows after an interruption."""


PI = TerminalProgram("pi", "pi", interrupted_text="Operation aborted")
OPENCLAW = TerminalProgram("openclaw", "openclaw", ("tui", "--local"), interrupted_text="run aborted")
ONLY_PI = pytest.mark.parametrize("terminal", [pytest.param(PI, marks=CORE)], indirect=True, ids=["pi"])
"""For tests that would add nothing with OpenClaw, which takes half a minute to start."""


class TerminalAgent:
    """A program at a terminal, with its own home, workspace and scripted model."""

    def __init__(self, program: TerminalProgram, live: LiveAgent, directory: Path) -> None:
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
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TerminalAgent]:
    program: TerminalProgram = request.param
    provisioned = find_agent(program.agent, None)
    if provisioned is None:
        pytest.skip(f"{program.agent} is not installed; try: python -m agent_mux_testing.provision {program.agent}")
    with ExitStack() as stack:
        yield TerminalAgent(program, LiveAgent(provisioned, tmp_path, stack), tmp_path)


@ONLY_PI
async def test_answer_is_read_from_the_screen(terminal: TerminalAgent) -> None:
    terminal.live.script(terminal.live.answer(Say("Hello from the scripted model.\n\nTwo paragraphs, naïve 日本 😀.")))
    done = await terminal.run()
    assert done.result.exit_reason == "completed"
    assert done.result.exit_code == 0
    assert done.result.messages == ["Hello from the scripted model.\n\nTwo paragraphs, naïve 日本 😀."]
    assert terminal.live.model.received(PROMPT)
    assert JournalReader(Path(done.result.journal or "")).header.codec.protocol == terminal.program.name


async def test_second_prompt_may_have_two_lines(terminal: TerminalAgent) -> None:
    live = terminal.live.script(terminal.live.answer(Say("The first.")), terminal.live.answer(Say("The second.")))
    async with terminal.running("one", interactive=True) as run:
        await wait_for_event(run, "turn_end")
        await run.send("line one\nline two")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.messages == ["The first.", "The second."]
    assert live.model.received("line one\nline two")


async def test_command_of_the_agent_runs(terminal: TerminalAgent) -> None:
    live = terminal.live
    # An absolute path, because OpenClaw always uses its own workspace.
    live.script(live.answer(Shell(f"touch {live.file('made')}")), live.answer(Say("It is done.")))
    done = await terminal.run()
    assert done.result.exit_reason == "completed"
    assert done.result.text.endswith("It is done.")
    assert live.file("made").exists()


async def test_interrupted_program_answers_the_next_prompt(terminal: TerminalAgent) -> None:
    live = terminal.live.script(
        terminal.live.answer(Say("A long text that hangs here."), hang=True),
        terminal.live.answer(Say("Here I am again.")),
    )
    async with terminal.running("begin", interactive=True) as run:
        await live.model.wait_for_requests(1)
        await run.interrupt()
        await wait_for_event(run, "turn_end")
        await run.send("and now?")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.messages[0].endswith(terminal.program.interrupted_text)
    assert done.result.messages[1] == "Here I am again."
    assert [error.code for error in done.all("error")] == ["ABORTED"]


async def test_wrong_key_is_an_auth_error(terminal: TerminalAgent) -> None:
    terminal.live.script(terminal.live.refusal("unauthorized", repeat=True))
    done = await terminal.run()
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "AUTH_ERROR"
    assert done.types("message_stop", "auth_error") == ["auth_error"]


async def test_abort_ends_a_running_command(terminal: TerminalAgent) -> None:
    live = terminal.live.script(terminal.live.answer(Shell(f"touch {terminal.live.file('started')}; sleep 300")))
    async with terminal.running() as run:
        await live.wait_for_file("started")
        assert len(processes_of(run.run_id)) > 1  # the program and its shell
        await run.abort()
        assert_nothing_left(run.run_id)
    done = await finish(run)
    assert done.result.exit_reason == "aborted"


@ONLY_PI
async def test_resized_terminal_wraps_the_answer(terminal: TerminalAgent) -> None:
    live = terminal.live.script(terminal.live.answer(Say("First.")), terminal.live.answer(Say("word " * 20)))
    async with terminal.running("one", interactive=True) as run:
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


def test_amux_run_drives_a_terminal_program(terminal: TerminalAgent) -> None:
    live = terminal.live.script(terminal.live.answer(Say("Hello from the scripted model.")))
    command = shlex.join(terminal.command)
    types, result = amux(live, "run", "terminal", "--command", command, "--yolo", "--json", PROMPT).check_stream()
    assert result["exitReason"] == "completed"
    assert result["text"] == "Hello from the scripted model."
    assert types[-1] == "session_end"
