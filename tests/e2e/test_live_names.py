"""Names with unicode, spaces and newlines: of workspaces, of files, and in commands."""

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, WAYS

from agent_mux_testing.live import Edit, Read, Say, Shell, Write

pytestmark = pytest.mark.anyio
UNICODE = "naïve 日本 😀 e\u0301"
"""Letters beyond ASCII, an emoji outside of the basic plane, and a combining accent."""
QUOTES = 'it\'s a "file" & $HOME #1'


async def assert_works_with(live: LiveAgent, way: str, workspace: str, name: str) -> None:
    """Assert that the agent writes and edits a file of this name and runs a command in a workspace of this name."""
    live.use_workspace(workspace)
    live.script(
        live.answer(Write(name, "one\ntwo\n")),
        live.answer(Edit(name, "two", "TWO")),
        live.answer(Shell("pwd > where")),
        live.answer(Say("Done.")),
    )
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Done."
    assert live.file(name).exists()
    assert live.file(name).read_text() == "one\nTWO\n"
    assert live.file("where").exists()
    assert live.file("where").read_text() == f"{live.workspace}\n"
    assert all(live.workspace.samefile(event.cwd) for event in done.all("shell_start"))  # not every protocol has them
    changed = [event for event in done.events if event.type in {"file_create", "file_write", "file_patch"}]
    assert {live.workspace / event.path for event in changed} <= {live.file(name)}


@ALL_AGENTS
@BOTH_WAYS
async def test_unicode_and_spaces_in_names(live: LiveAgent, way: str) -> None:
    await assert_works_with(live, way, f"{UNICODE} workspace", f"{UNICODE} file.txt")


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_quotes_in_names(live: LiveAgent, way: str) -> None:
    await assert_works_with(live, way, f"{QUOTES} [workspace]", f"{QUOTES}.txt")


@ALL_AGENTS
@BOTH_WAYS
async def test_newline_in_the_name_of_the_workspace(live: LiveAgent, way: str) -> None:
    await assert_works_with(live, way, "two\nlines", "a.txt")


@HEAVY
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
    assert live.file(name).exists()
    assert live.file(name).read_text() == UNICODE
    assert [event.exit_code for event in done.all("shell_exit")] == [0, 0]
    assert name in done.all("shell_start")[0].command
    assert live.model.received(r"two\nlines.txt")


@HEAVY
@ALL_AGENTS
async def test_file_with_a_newline_in_its_name_is_read(live: LiveAgent) -> None:
    name = "two\nlines.txt"
    live.file(name).write_text("found it\n")
    live.script(live.answer(Read(name)), live.answer(Say("Done.")))
    done = await live.run()
    assert done.result.exit_reason == "completed"
    assert live.model.received("found it")
    assert live.workspace / done.one("file_read").path == live.file(name)
