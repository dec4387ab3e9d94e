"""A program at a terminal, driven by the client: input is typed, and the screen is read."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_mux import (
    AgentMux,
    AgentMuxError,
    Approve,
    Deny,
    RunHandle,
    RunOptions,
    Text,
    ValidationError,
    encode_event,
    validate,
)
from agent_mux.process.marker import processes_of
from agent_mux.run.derivation import derive_events
from agent_mux.run.plan import find_protocol
from agent_mux.sdk.registry import AdapterRegistry

pytest.importorskip("pyte")
pytestmark = pytest.mark.anyio
BOUND = 60.0
HERE = Path(__file__).parents[1] / "unit/adapters/terminal"
COMMAND = (sys.executable, str(HERE / "scripted_tui.py"))
GENERIC = {"AMUX_TERMINAL_PROFILE": "screen"}
LOOK_EVERY = 0.02
PROFILE = {"AMUX_TERMINAL_PROFILE": str(HERE / "scripted.toml")}

ON_BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
"""For tests that depend on the event loop; the others are about screens."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Program:
    """The scripted program in its own workspace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def wait_until_working(self) -> None:
        """Wait until the program has started on a prompt, which its screen does not show."""
        while not (self.directory / "working").exists():  # noqa: ASYNC110
            await anyio.sleep(LOOK_EVERY)

    async def run(
        self, prompt: str, meanwhile: Callable[[RunHandle], Any] | None = None, **fields: Any
    ) -> tuple[Any, list[Any]]:
        options = RunOptions(
            agent="terminal", command=COMMAND, prompt=prompt, cwd=self.directory, collect_events=True,
            **{"approval_mode": "yolo", "env": PROFILE, **fields},
        )  # fmt: skip
        with anyio.fail_after(BOUND):
            async with AgentMux(config_dir=self.directory / "mux") as mux:
                run = mux.run(options)
                if meanwhile is not None:
                    await meanwhile(run)
                result = await run
        events = list(result.events)
        assert validate(events) == []
        assert processes_of(run.run_id) == []
        registry = AdapterRegistry()
        derived = derive_events(
            Path(result.journal), lambda c: find_protocol(registry.get("terminal"), c.protocol, registry.get).codec(c)
        )
        assert [encode_event(event) for event in derived] == [encode_event(event) for event in events]
        return result, events


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def wait_for_turn_end(run: RunHandle, count: int = 1) -> None:
    async for event in run:
        count -= event.type == "turn_end"
        if not count:
            return


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_prompt_is_typed_and_its_answer_is_read(program: Program) -> None:
    result, _ = await program.run("describe naïve 日本")
    assert result.exit_reason == "completed"
    assert result.text == "You said describe naïve 日本 on 120 columns — naïve 日本 😀"
    assert result.exit_code == 0


@pytest.mark.slow
async def test_streamed_answer_is_read_once_it_is_complete(program: Program) -> None:
    result, events = await program.run("stream one two three four five six seven")
    assert result.messages == ["one two three four five six seven"]
    assert [event.text for event in events if event.type == "message_stop"] == result.messages


@pytest.mark.slow
async def test_multiline_prompt_is_one_prompt(program: Program) -> None:
    result, events = await program.run("first line\nsecond line\n\nlast line")
    assert result.text == "You said first line / second line /  / last line on 120 columns — naïve 日本 😀"
    assert len([event for event in events if event.type == "turn_start"]) == 1


@pytest.mark.slow
async def test_control_keys_in_a_prompt_are_removed(program: Program) -> None:
    result, _ = await program.run("no\x04end \x1b[201~here\x03")
    assert result.text == "You said noend [201~here on 120 columns — naïve 日本 😀"


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_several_prompts_and_a_resize_complete(program: Program) -> None:
    async def converse(run: RunHandle) -> None:
        await wait_for_turn_end(run)
        await run.resize(70, 30)
        await run.send("second")
        await wait_for_turn_end(run, 2)
        await run.close()

    result, _ = await program.run("first", converse, interactive=True)
    assert result.exit_reason == "completed"
    assert result.messages == [
        "You said first on 120 columns — naïve 日本 😀", "You said second on 70 columns — naïve 日本 😀",
    ]  # fmt: skip


@pytest.mark.slow
async def test_long_answer_ends_with_its_last_line(program: Program) -> None:
    # This program redraws its screen, so nothing scrolls, and lines that leave the screen are lost.
    result, _ = await program.run("long")
    assert result.exit_reason == "completed"
    assert result.text.splitlines()[-1] == "line 99 of many"


@pytest.mark.parametrize(
    ("response", "answer", "outcome"),
    [
        (Approve(), "It ran.", "approval_granted"),
        (Approve(always=True), "It ran, and will run.", "approval_granted"),
        (Deny("no"), "It did not run.", "approval_denied"),
    ],
)
async def test_dialog_becomes_an_approval(program: Program, response: Any, answer: str, outcome: str) -> None:
    result, events = await program.run(
        "ask rm -rf /tmp/x", approval_mode="prompt", on_approval_request=lambda _: response
    )
    assert result.text.endswith(answer)
    asked = next(event for event in events if event.type == "approval_request")
    assert (asked.action, asked.detail, asked.risk_level) == ("Allow this command?", "rm -rf /tmp/x", "high")
    assert [event.type for event in events if event.type.startswith("approval_")] == ["approval_request", outcome]


@pytest.mark.slow
@pytest.mark.parametrize(("response", "answer"), [(Approve(), "It ran."), (Deny(), "It did not run.")])
async def test_menu_becomes_an_approval(program: Program, response: Any, answer: str) -> None:
    result, events = await program.run(
        "menu make clean", approval_mode="prompt", on_approval_request=lambda _: response
    )
    assert result.text.endswith(answer)
    assert [event.action for event in events if event.type == "approval_request"] == ["Run this command?"]


@pytest.mark.slow
async def test_repeated_dialog_is_asked_again(program: Program) -> None:
    answers = iter([Approve(), Deny()])
    result, events = await program.run(
        "twice make clean", approval_mode="prompt", on_approval_request=lambda _: next(answers)
    )
    assert result.text.endswith("You said y and n.")
    assert [event.type for event in events if event.type.startswith("approval_")] == [
        "approval_request", "approval_granted", "approval_request", "approval_denied",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "answer"), [("yolo", "It ran."), ("deny", "It did not run.")])
async def test_approval_mode_answers_dialogs(program: Program, mode: str, answer: str) -> None:
    result, _ = await program.run("ask make clean", approval_mode=mode)
    assert result.text.endswith(answer)


@pytest.mark.slow
async def test_generic_profile_recognizes_menus(program: Program) -> None:
    result, events = await program.run(
        "menu make clean", approval_mode="prompt", env=GENERIC, on_approval_request=lambda _: Approve()
    )
    asked = [(event.action, event.detail) for event in events if event.type == "approval_request"]
    assert asked == [("Run this command?", "make clean")]
    assert result.exit_reason == "completed"
    assert result.text == "It ran."


@pytest.mark.slow
async def test_question_is_answered(program: Program) -> None:
    result, events = await program.run("question", approval_mode="prompt", on_input_required=lambda _: Text("blue"))
    assert result.text.endswith("You like blue.")
    assert next(event for event in events if event.type == "input_required").question == "Which colour?"


@pytest.mark.slow
async def test_failure_on_the_screen_fails_the_run(program: Program) -> None:
    result, events = await program.run("fail")
    assert result.exit_reason == "failed"
    assert result.error.code == "AUTH_ERROR"
    assert "401" in result.error.message
    assert [event for event in events if event.type == "message_stop"] == []


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_answer_can_be_interrupted(program: Program) -> None:
    async def stop(run: RunHandle) -> None:
        await program.wait_until_working()
        await run.interrupt()
        await wait_for_turn_end(run)
        await run.send("and now?")
        await wait_for_turn_end(run, 2)
        await run.close()

    result, events = await program.run("begin", stop, interactive=True, env={**PROFILE, "TUI_SECONDS": "3"})
    assert result.exit_reason == "completed"
    assert result.messages[0] == "Stopped."
    assert "and now?" in result.messages[1]
    assert [event.code for event in events if event.type == "error"] == ["ABORTED"]


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_program_that_exits_during_a_turn_is_a_crash(program: Program) -> None:
    result, events = await program.run("die")
    assert result.exit_reason == "crashed"
    assert result.exit_code == 3
    assert any("Working" in event.line for event in events if event.type == "log")


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_abort_leaves_no_process(program: Program) -> None:
    async def abort(run: RunHandle) -> None:
        await program.wait_until_working()
        await run.abort()

    result, _ = await program.run("begin", abort, env={**PROFILE, "TUI_SECONDS": "60"})
    assert result.exit_reason == "aborted"


@pytest.mark.slow
@ON_BOTH_LOOPS
async def test_abort_denies_the_dialog_on_the_screen(program: Program) -> None:
    async def abort(run: RunHandle) -> None:
        async for event in run:
            if event.type == "approval_request":
                break
        await run.abort()

    result, events = await program.run("ask make clean", abort, approval_mode="prompt")
    assert result.exit_reason == "aborted"
    assert [event.type for event in events if event.type.startswith("approval_")] == [
        "approval_request", "approval_denied",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", [(0, 24), (80, -1), (80, 100_000)])
async def test_invalid_terminal_size_is_refused(program: Program, size: tuple[int, int]) -> None:
    async def resize(run: RunHandle) -> None:
        with pytest.raises(ValidationError, match="columns and rows"):
            await run.resize(*size)

    result, _ = await program.run("hi", resize)
    assert result.exit_reason == "completed"


async def test_missing_program_is_refused(tmp_path: Path) -> None:
    program = Program(tmp_path)
    missing = RunOptions(agent="terminal", command=("no-such-program",), prompt="hi", cwd=program.directory)
    async with AgentMux(config_dir=tmp_path / "mux") as mux:
        with pytest.raises(AgentMuxError, match="no-such-program is neither a program"):
            mux.run(missing)


async def test_missing_extra_is_reported_with_its_install_command(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyte", None)  # as if it were not installed
    with pytest.raises(AgentMuxError, match=r"need pyte: pip install 'agent-mux\[terminal\]'") as caught:
        await program.run("hi")
    assert caught.value.code == "PTY_NOT_AVAILABLE"
