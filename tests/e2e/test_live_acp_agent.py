"""`amux acp` with a real CLI, driven by an editor (the official client library) and by `acpx`."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from acp import image_block, text_block
from acp.schema import AgentMessageChunk, FileEditToolCallContent, ToolCallProgress, ToolCallStart, UserMessageChunk
from tests.e2e.harness import LiveAgent, assert_nothing_left
from tests.e2e.terminal import environment
from tests.e2e.ways import ALL_AGENTS
from tests.process.acp_editor import COMMAND, Editor, start_editor

from agent_mux_testing.live import Edit, Say, Shell, Write
from agent_mux_testing.provision import ACPX, find_tool

pytestmark = pytest.mark.anyio

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""


@asynccontextmanager
async def open_editor(live: LiveAgent, *arguments: object, code: int = 0) -> AsyncIterator[Editor]:
    agent, *command = live.agent_arguments
    more = [agent, *command, *arguments]
    async with start_editor(
        "--agent", *more, environment=environment(live), cwd=live.workspace, patience=live.kit.patience, code=code
    ) as editor:
        yield editor
    assert live.processes() == []


def texts(editor: Editor, session: str, kind: type[AgentMessageChunk | UserMessageChunk]) -> str:
    chunks: list[Any] = [update for update in editor.updates_of(session) if isinstance(update, kind)]
    return "".join(chunk.content.text for chunk in chunks)


@ALL_AGENTS
async def test_acp_agent_turns(live: LiveAgent) -> None:
    """Two prompts are answered, and the second request contains the first prompt."""
    live.script(live.answer(Say("Hello from the script.")), live.answer(Say("Hello again.")))
    async with open_editor(live) as editor:
        session = await editor.begin(live.workspace)
        assert await editor.ask(session, "say hello") == "end_turn"
        assert editor.text_of(session) == "Hello from the script."
        assert await editor.ask(session, "and again") == "end_turn"
        assert editor.text_of(session).endswith("Hello again.")
    assert live.model.received("say hello")
    assert live.model.received("and again")
    assert_nothing_left(session)


@ALL_AGENTS
async def test_acp_agent_approves(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    async with open_editor(live) as editor:
        session = await editor.begin(live.workspace)
        assert await editor.ask(session, "make it") == "end_turn"
        assert editor.asked
        assert any("touch made" in str(call) for call, _ in editor.asked)
        assert live.file("made").exists()
        assert editor.calls(session)[-1][1] == "completed"
        assert editor.text_of(session).endswith("Made it.")


@ALL_AGENTS
async def test_acp_agent_denies(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    async with open_editor(live) as editor:
        editor.decide = lambda _: "reject"
        session = await editor.begin(live.workspace)
        assert await editor.ask(session, "make it") == "end_turn"
        assert not live.file("made").exists()
        assert editor.calls(session)[-1][1] == "failed"


async def test_acp_agent_edits(live: LiveAgent) -> None:
    live.script(
        live.answer(Write("a.txt", "one\ntwo\n")), live.answer(Edit("a.txt", "two", "TWO")), live.answer(Say("Done."))
    )
    async with open_editor(live, "--yolo") as editor:
        session = await editor.begin(live.workspace)
        assert await editor.ask(session, "edit") == "end_turn"
        calls = [
            update for update in editor.updates_of(session) if isinstance(update, ToolCallStart | ToolCallProgress)
        ]
        diffs = [one for call in calls for one in call.content or () if isinstance(one, FileEditToolCallContent)]
        assert {diff.path for diff in diffs} == {str(live.file("a.txt"))}
        assert "TWO" in diffs[-1].new_text
        assert live.file("a.txt").read_text() == "one\nTWO\n"
        assert editor.asked == []


@ALL_AGENTS
async def test_acp_agent_cancels(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch started; sleep 300")), live.answer(Say("Here again.")))
    async with open_editor(live, "--yolo") as editor:
        session = await editor.begin(live.workspace)
        asking = asyncio.ensure_future(editor.ask(session, "work"))
        await live.wait_for_file("started")
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        assert await editor.ask(session, "are you there?") == "end_turn"
        assert editor.text_of(session).endswith("Here again.")


async def test_acp_agent_loads(live: LiveAgent) -> None:
    """Another process loads a session by the id that the first process returned."""
    live.script(live.answer(Say("It is 17.")), live.answer(Say("Still 17.")))
    async with open_editor(live) as editor:
        session = await editor.begin(live.workspace)
        await editor.ask(session, "remember the number")
    async with open_editor(live) as editor:
        listed = await editor.agent.list_sessions(cwd=str(live.workspace))
        assert [one.session_id for one in listed.sessions] == [session]
        await editor.agent.load_session(cwd=str(live.workspace), session_id=session, mcp_servers=[])
        assert "remember the number" in texts(editor, session, UserMessageChunk)
        assert texts(editor, session, AgentMessageChunk) == "It is 17."
        assert await editor.ask(session, "which was it?") == "end_turn"
        assert editor.text_of(session).endswith("Still 17.")
    assert "remember the number" in json.dumps(live.model.requests[-1].body)


async def test_acp_agent_loads_the_session_of_a_killed_process(live: LiveAgent) -> None:
    """The native session id is read from the journal, because the killed process could not store it."""
    live.script(live.answer(Say("It is 17.")), live.answer(Say("Still 17.")))
    async with open_editor(live, code=-signal.SIGKILL) as editor:
        session = await editor.begin(live.workspace)
        await editor.ask(session, "remember the number")
        editor.process.kill()
        await editor.process.wait()
        while live.processes():  # noqa: ASYNC110  # the reaper ends them without a notification
            await asyncio.sleep(0.02)
    async with open_editor(live) as editor:
        await editor.agent.load_session(cwd=str(live.workspace), session_id=session, mcp_servers=[])
        assert await editor.ask(session, "which was it?") == "end_turn"
    assert "remember the number" in json.dumps(live.model.requests[-1].body)


async def test_acp_agent_forks(live: LiveAgent) -> None:
    live.script(*(live.answer(Say(words)) for words in ("It is 17.", "A copy.", "The first.")))
    async with open_editor(live) as editor:
        first = await editor.begin(live.workspace)
        await editor.ask(first, "remember the number")
        answer = await editor.agent.fork_session(cwd=str(live.workspace), session_id=first, mcp_servers=[])
        assert await editor.ask(answer.session_id, "in the copy") == "end_turn"
        assert "remember the number" in json.dumps(live.model.requests[-1].body)
        assert await editor.ask(first, "in the first") == "end_turn"
        assert "in the copy" not in json.dumps(live.model.requests[-1].body)


async def test_acp_agent_restarts_the_agent_for_a_mode_or_image(live: LiveAgent) -> None:
    """A change of mode, or an image, resumes the session in another process of the agent."""
    live.script(
        live.answer(Say("Hello.")),
        live.answer(Shell("touch made")),
        live.answer(Say("Made it.")),
        live.answer(Say("A dot.")),
    )
    async with open_editor(live) as editor:
        session = await editor.begin(live.workspace)
        await editor.ask(session, "say hello")
        await editor.agent.set_session_mode(session_id=session, mode_id="yolo")
        assert await editor.ask(session, "make it") == "end_turn"
        assert live.file("made").exists()
        assert editor.asked == []
        prompt = [text_block("what is it?"), image_block(DOT, "image/png")]
        answer = await editor.agent.prompt(session_id=session, prompt=prompt)
        assert answer.stop_reason == "end_turn"
        assert editor.text_of(session).endswith("A dot.")
    last = json.dumps(live.model.requests[-1].body)
    # Agents may append to the file, not change it.
    assert all(words in last for words in ("say hello", "make it", "what is it?", DOT[:40]))


def test_acp_agent_is_driven_by_acpx(live: LiveAgent) -> None:
    """`acpx`, a client with which programs drive agents, runs a prompt."""
    program = acpx()
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    command = shlex.join([*COMMAND, "--agent", *live.agent_arguments])
    done = subprocess.run(
        [*program, "--agent", command, "--approve-all", "--format", "json", "exec", "make it"],
        cwd=live.workspace,
        env={**environment(live), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
        timeout=live.kit.patience,
        check=False,
    )
    assert done.returncode == 0, done
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in done.stdout.splitlines()]
    chunks = [update for update in updates if update.get("sessionUpdate") == "agent_message_chunk"]
    assert "".join(chunk["content"]["text"] for chunk in chunks).endswith("Made it.")
    assert live.file("made").exists()
    assert live.processes() == []


def acpx() -> list[str]:
    """Return the command line of `acpx`. Skip the test when it is not installed."""
    found = find_tool(ACPX)
    if found is None:
        pytest.skip(f"{ACPX} is not installed; try: python -m agent_mux_testing.provision {ACPX}")
    node = shutil.which("node", path=found.path)
    assert node is not None
    return [node, str(found.program)]
