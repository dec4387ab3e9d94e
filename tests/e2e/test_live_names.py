"""Names with unicode, spaces and newlines: of workspaces, of files, and in commands."""

from pathlib import Path

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, WAYS

from agent_mux_testing.live import Edit, Read, Say, Shell, Write

pytestmark = pytest.mark.anyio
UNICODE = "naïve 日本 😀 e\u0301"
"""Letters beyond ASCII, an emoji outside of the basic plane, and a combining accent."""
QUOTES = 'it\'s a "file" & $HOME #1'
NAMES = {"unicode": UNICODE, "quotes": QUOTES, "newline": "two\nlines"}


def paths(live: LiveAgent, done: FinishedRun) -> set[Path]:
    """Return the files that the run has changed, by its events."""
    changed = [event for event in done.events if event.type in {"file_create", "file_write", "file_patch"}]
    return {live.workspace / event.path for event in changed}


@ALL_AGENTS
@BOTH_WAYS
@pytest.mark.parametrize("kind", NAMES)
async def test_odd_workspace(live: LiveAgent, way: str, kind: str) -> None:
    live.use_workspace(f"{NAMES[kind]} [workspace]")
    live.script(
        live.answer(Write("a.txt", "one\n")), live.answer(Shell("pwd > where; touch made")), live.answer(Say("Done.")),
    )  # fmt: skip
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Done."
    assert live.file("a.txt").read_text() == "one\n"
    assert live.file("where").read_text() == f"{live.workspace}\n"
    assert paths(live, done) <= {live.file("a.txt")}
    assert live.workspace.samefile(done.one("shell_start").cwd)


@ALL_AGENTS
@BOTH_WAYS
@pytest.mark.parametrize("kind", ["unicode", "quotes"])
async def test_odd_file_name(live: LiveAgent, way: str, kind: str) -> None:
    name = f"{NAMES[kind]}.txt"
    live.script(
        live.answer(Write(name, "one\ntwo\n")), live.answer(Edit(name, "two", "TWO")), live.answer(Say("Done.")),
    )  # fmt: skip
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file(name).read_text() == "one\nTWO\n"
    assert paths(live, done) <= {live.file(name)}


@ALL_AGENTS
@BOTH_WAYS
async def test_file_name_with_a_newline(live: LiveAgent, way: str) -> None:
    """Not every tool can create such a file, so a command does; the agent reads it where it has a tool for that."""
    name = "two\nlines.txt"
    live.script(
        live.answer(Shell(f"printf %s '{UNICODE}' > '{name}'")), live.answer(Shell("ls -b")), live.answer(Say("Done.")),
    )  # fmt: skip
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file(name).read_text() == UNICODE
    assert [event.exit_code for event in done.all("shell_exit")] == [0, 0]
    assert name in done.all("shell_start")[0].command
    assert live.model.received(r"two\nlines.txt")


@ALL_AGENTS
async def test_file_with_a_newline_in_its_name_is_read(live: LiveAgent) -> None:
    name = "two\nlines.txt"
    live.file(name).write_text("found it\n")
    live.script(live.answer(Read(name)), live.answer(Say("Done.")))
    done = await live.run()
    assert done.result.exit_reason == "completed"
    assert live.model.received("found it")
    assert live.workspace / done.one("file_read").path == live.file(name)
