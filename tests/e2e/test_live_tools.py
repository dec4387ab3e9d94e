"""Tools of the agent: they really run, they are told as they are, and their results reach the model."""

import pytest
from tests.e2e.dialects import Edit, Mcp, Read, Say, Shell, Write
from tests.e2e.harness import Live

from agent_mux import Approve

pytestmark = pytest.mark.anyio
ON_BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
WAYS = {
    "one_shot": {"approval_mode": "yolo"},
    "two_way": {"approval_mode": "yolo", "on_approval_request": lambda _: Approve()},
}
BOTH_WAYS = pytest.mark.parametrize("way", WAYS)
CONTENT = "one\ntwo\nthrée\n"
EDITED = CONTENT.replace("two", "TWO")
FILE_EVENTS = ("file_read", "file_write", "file_create", "file_patch", "file_delete")


@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_file_edits(live: Live, way: str) -> None:
    live.script(
        live.answer(Say("Writing."), Write("a.txt", CONTENT)),
        live.answer(Edit("a.txt", "two", "TWO")),
        live.answer(Say("All done.")),
    )
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file("a.txt").read_text("utf-8") == EDITED
    assert done.types("tool_result", *FILE_EVENTS) == ["tool_result", "file_create", "tool_result", "file_patch"]
    created, patched = done.one("file_create"), done.one("file_patch")
    assert live.workspace / created.path == live.file("a.txt")
    assert created.byte_count == len(CONTENT.encode())
    assert live.workspace / patched.path == live.file("a.txt")
    live.used(done, calls=3)


async def test_file_diffs(live: Live) -> None:
    """Only where a protocol tells what changed."""
    live.script(
        live.answer(Write("a.txt", CONTENT)), live.answer(Edit("a.txt", "two", "TWO")), live.answer(Say("All done.")),
    )  # fmt: skip
    done = await live.run(**WAYS["two_way"])
    lines = done.one("file_patch").diff.splitlines()
    assert [line.split("\t")[0] for line in lines[:2]] == ["--- a/a.txt", "+++ b/a.txt"]
    assert lines[2].startswith("@@ -")
    assert [line for line in lines[3:] if not line.startswith(" ")] == ["-two", "+TWO"]


async def test_file_overwritten(live: Live) -> None:
    live.file("old.txt").write_text("old\n")
    live.script(
        live.answer(Read("old.txt")), live.answer(Write("old.txt", CONTENT)), live.answer(Say("All done.")),
    )  # fmt: skip
    done = await live.run(**WAYS["two_way"])
    assert live.file("old.txt").read_text("utf-8") == CONTENT
    written = done.one("file_write")
    assert written.byte_count == len(CONTENT.encode())
    assert done.all("file_create") == []


async def test_file_read(live: Live) -> None:
    live.file("a.txt").write_text(CONTENT, "utf-8")
    live.script(live.answer(Read("a.txt")), live.answer(Say("All done.")))
    done = await live.run()
    assert live.model.heard("thrée")
    assert live.workspace / done.one("file_read").path == live.file("a.txt")


@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_shell(live: Live, way: str) -> None:
    live.script(live.answer(Shell("echo out; touch made")), live.answer(Say("All done.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file("made").exists()
    assert done.types("tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_result", "tool_error") == [
        "tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_result",
    ]  # fmt: skip
    assert "echo out; touch made" in done.one("shell_start").command
    assert live.workspace.samefile(done.one("shell_start").cwd)
    assert "".join(event.delta for event in done.all("shell_stdout_delta")).strip() == "out"
    assert done.one("shell_exit").exit_code == 0
    assert live.model.heard("out")
    live.used(done, calls=2)


@BOTH_WAYS
async def test_tool_failure(live: Live, way: str) -> None:
    live.script(live.answer(Shell("echo out; echo err >&2; exit 3")), live.answer(Say("It failed.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"  # the agent did its work; its tool did not
    assert done.types("tool_result", "tool_error", "shell_exit") == ["shell_exit", "tool_error"]
    assert done.one("shell_exit").exit_code == 3
    assert "err" in done.one("tool_error").error
    assert live.model.heard("err")
    assert done.result.text == "It failed."


@BOTH_WAYS
async def test_parallel_tools(live: Live, way: str) -> None:
    # The first waits for the second: only at the same time can they end.
    wait = "for i in $(seq 500); do [ -e second ] && break; sleep 0.02; done; [ -e second ] && echo one"
    live.script(live.answer(Shell(wait), Shell("sleep 0.1; touch second; echo two")), live.answer(Say("Both done.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    calls = {event.tool_call_id for event in done.all("tool_call_ready")}
    assert len(calls) == 2
    assert {event.tool_call_id for event in done.all("tool_result")} == calls
    assert [event.exit_code for event in done.all("shell_exit")] == [0, 0]
    assert live.model.heard("one")
    assert live.model.heard("two")


@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_mcp_tool(live: Live, way: str) -> None:
    live.script(live.answer(Mcp("echo", {"text": "ping"})), live.answer(Say("All done.")))
    done = await live.run(mcp_servers=[live.mcp_server], **WAYS[way])
    assert done.result.exit_reason == "completed"
    called, ended = done.one("mcp_tool_call_start"), done.one("mcp_tool_result")
    assert (called.server, called.tool_name, called.input) == ("echo", "echo", {"text": "ping"})
    assert (ended.server, ended.tool_name, ended.tool_call_id) == ("echo", "echo", called.tool_call_id)
    assert "echo: ping" in str(ended.output)
    assert done.types("tool_call_start", "tool_call_ready", "tool_result", "tool_error") == []
    assert live.model.heard("echo: ping")


@BOTH_WAYS
async def test_mcp_tool_failure(live: Live, way: str) -> None:
    live.script(live.answer(Mcp("boom")), live.answer(Say("It failed.")))
    done = await live.run(mcp_servers=[live.mcp_server], **WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.types("mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error") == [
        "mcp_tool_call_start", "mcp_tool_error",
    ]  # fmt: skip
    assert "boom failed" in done.one("mcp_tool_error").error
    assert live.model.heard("boom failed")


async def test_subagent(live: Live) -> None:
    live.script(
        live.delegation("count the files", Shell("echo from-sub"), Say("There are 3 files.")),
        live.answer(Say("The sub-agent found 3 files.")),
    )
    done = await live.run(**WAYS["two_way"])
    assert done.result.exit_reason == "completed"
    spawned, reported = done.one("subagent_spawn"), done.one("subagent_result")
    assert "count the files" in spawned.prompt
    assert reported.subagent_id == spawned.subagent_id
    assert "There are 3 files." in reported.summary
    assert done.result.text == "The sub-agent found 3 files."
    assert done.result.messages == ["The sub-agent found 3 files."]
    assert done.types("shell_start", "tool_call_start") == []
    assert live.model.heard("There are 3 files.")


async def test_subagent_shown(live: Live) -> None:
    live.script(
        live.delegation("count the files", Shell("echo from-sub"), Say("There are 3 files.")),
        live.answer(Say("The sub-agent found 3 files.")),
    )
    done = await live.run(include_subagent_events=True, **WAYS["two_way"])
    inside = [event for event in done.events if event.subagent_id is not None]
    assert {event.subagent_id for event in inside} == {done.one("subagent_spawn").subagent_id}
    told = [event.type for event in inside if event.type in {"shell_start", "shell_exit", "message_stop"}]
    assert told == ["shell_start", "shell_exit", "message_stop"]
    assert done.result.messages == ["The sub-agent found 3 files."]


async def test_unknown_tool(live: Live) -> None:
    live.script(live.answer(Mcp("no_such_tool", {"a": 1})), live.answer(Say("There is none.")))
    done = await live.run(mcp_servers=[live.mcp_server])
    assert done.result.exit_reason == "completed"
    assert done.types("tool_result", "mcp_tool_result") == []
    assert len(done.types("tool_error", "mcp_tool_error")) == 1
