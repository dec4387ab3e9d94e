"""Tools of the agent run, are reported correctly, and their results reach the model."""

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, CORE, ON_BOTH_LOOPS, TWO_WAY, WAYS

from agent_mux.sdk.in_process import TOOL_SERVER
from agent_mux_testing.live import Edit, Mcp, Read, Say, Shell, Write

pytestmark = pytest.mark.anyio
CONTENT = "one\ntwo\nthrée\n"
EDITED = CONTENT.replace("two", "TWO")
CALL_EVENTS = ("tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_result", "tool_error")
FILE_EVENTS = ("file_read", "file_write", "file_create", "file_patch", "file_delete")


@CORE
@ALL_AGENTS
@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_file_edits(live: LiveAgent, way: str) -> None:
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
    live.assert_usage(done, calls=3)


@ALL_AGENTS
async def test_file_diffs(live: LiveAgent) -> None:
    """Protocols that report changes yield diffs that git can reverse."""
    live.script(
        live.answer(Write("a.txt", CONTENT)), live.answer(Edit("a.txt", "two", "TWO")), live.answer(Say("All done.")),
    )  # fmt: skip
    done = await live.run(**TWO_WAY)
    diff = done.one("file_patch").diff
    assert [line for line in diff.splitlines() if line.startswith(("-", "+"))] == [
        "--- a/a.txt", "+++ b/a.txt", "-two", "+TWO",
    ]  # fmt: skip
    assert live.file("a.txt").read_text("utf-8") == EDITED
    live.git("apply", "--reverse", stdin=diff)
    assert live.file("a.txt").read_text("utf-8") == CONTENT


async def test_file_overwritten(live: LiveAgent) -> None:
    live.script(
        live.answer(Write("a.txt", "first\n")), live.answer(Write("a.txt", CONTENT)), live.answer(Say("All done.")),
    )  # fmt: skip
    done = await live.run(**TWO_WAY)
    assert live.file("a.txt").read_text("utf-8") == CONTENT
    assert done.types(*FILE_EVENTS) == ["file_create", "file_write"]
    assert done.one("file_write").byte_count == len(CONTENT.encode())


@ALL_AGENTS
async def test_file_read(live: LiveAgent) -> None:
    live.file("a.txt").write_text(CONTENT, "utf-8")
    live.script(live.answer(Read("a.txt")), live.answer(Say("All done.")))
    done = await live.run()
    assert live.model.received("thrée")
    assert live.workspace / done.one("file_read").path == live.file("a.txt")


@CORE
@ALL_AGENTS
@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_shell(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Shell("echo out; touch made")), live.answer(Say("All done.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert live.file("made").exists()
    assert done.types(*CALL_EVENTS) == [
        "tool_call_start", "tool_call_ready", "shell_start", "shell_exit", "tool_result",
    ]  # fmt: skip
    assert "echo out; touch made" in done.one("shell_start").command
    assert live.workspace.samefile(done.one("shell_start").cwd)
    assert "".join(event.delta for event in done.all("shell_stdout_delta")).strip() == "out"
    assert done.one("shell_exit").exit_code == 0
    assert live.model.received("out")
    live.assert_usage(done, calls=2)


@CORE
@ALL_AGENTS
@BOTH_WAYS
async def test_tool_failure(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Shell("echo out; echo err >&2; exit 3")), live.answer(Say("It failed.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"  # the tool failed, not the run
    assert done.types("tool_result", "tool_error", "shell_exit") == ["shell_exit", "tool_error"]
    assert done.one("shell_exit").exit_code == 3
    assert "err" in done.one("tool_error").error
    assert live.model.received("err")
    assert done.result.text == "It failed."


@ALL_AGENTS
@BOTH_WAYS
async def test_parallel_tools(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Shell("echo one"), Shell("echo two")), live.answer(Say("Both done.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    calls = {event.tool_call_id for event in done.all("tool_call_ready")}
    assert len(calls) == 2
    assert {event.tool_call_id for event in done.all("tool_result")} == calls
    assert [event.exit_code for event in done.all("shell_exit")] == [0, 0]
    assert live.model.received("one")
    assert live.model.received("two")
    live.assert_usage(done, calls=2)


@ALL_AGENTS
@BOTH_WAYS
async def test_five_parallel_tools_of_which_two_fail(live: LiveAgent, way: str) -> None:
    commands = [
        f"echo out{number}; touch made{number}; exit {number if number in {2, 4} else 0}" for number in range(5)
    ]
    live.script(live.answer(*map(Shell, commands)), live.answer(Say("Some failed.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Some failed."
    assert all(live.file(f"made{number}").exists() for number in range(5))
    calls = {event.tool_call_id: str(event.input) for event in done.all("tool_call_ready")}
    failed = {event.tool_call_id for event in done.all("tool_error")}
    assert {number for number in range(5) for call in failed if f"touch made{number}" in calls[call]} == {2, 4}
    assert sorted(event.exit_code for event in done.all("shell_exit")) == [0, 0, 0, 2, 4]
    assert sorted(done.types("tool_result", "tool_error")) == ["tool_error"] * 2 + ["tool_result"] * 3
    assert all(live.model.received(f"out{number}") for number in range(5))
    live.assert_usage(done, calls=2)


async def test_tools_run_concurrently(live: LiveAgent) -> None:
    # The first command succeeds only if the second runs at the same time.
    wait = "for i in $(seq 50); do [ -e second ] && break; sleep 0.05; done; [ -e second ] && echo one"
    live.script(live.answer(Shell(wait), Shell("touch second; echo two")), live.answer(Say("Both done.")))
    done = await live.run()
    assert done.result.exit_reason == "completed"
    assert [event.exit_code for event in done.all("shell_exit")] == [0, 0]


@CORE
@ALL_AGENTS
@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_mcp_tool(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Mcp("echo", {"text": "ping"})), live.answer(Say("All done.")))
    done = await live.run(mcp_servers=[live.mcp_server], **WAYS[way])
    assert done.result.exit_reason == "completed"
    called, ended = done.one("mcp_tool_call_start"), done.one("mcp_tool_result")
    assert (called.server, called.tool_name, called.input) == ("echo", "echo", {"text": "ping"})
    assert (ended.server, ended.tool_name, ended.tool_call_id) == ("echo", "echo", called.tool_call_id)
    assert "echo: ping" in str(ended.output)
    assert done.types("tool_call_start", "tool_call_ready", "tool_result", "tool_error") == []
    assert live.model.received("echo: ping")


@ALL_AGENTS
@BOTH_WAYS
async def test_mcp_tool_failure(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Mcp("boom")), live.answer(Say("It failed.")))
    done = await live.run(mcp_servers=[live.mcp_server], **WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.types("mcp_tool_call_start", "mcp_tool_result", "mcp_tool_error") == [
        "mcp_tool_call_start", "mcp_tool_error",
    ]  # fmt: skip
    assert "boom failed" in done.one("mcp_tool_error").error
    assert live.model.received("boom failed")


@ALL_AGENTS
async def test_subagent(live: LiveAgent) -> None:
    live.script(
        live.delegation("count the files", Shell("echo from-sub"), Say("There are 3 files.")),
        live.answer(Say("The sub-agent found 3 files.")),
    )
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    spawned, reported = done.one("subagent_spawn"), done.one("subagent_result")
    assert "count the files" in spawned.prompt
    assert reported.subagent_id == spawned.subagent_id
    assert "There are 3 files." in reported.summary
    assert done.result.text == "The sub-agent found 3 files."
    assert done.result.messages == ["The sub-agent found 3 files."]
    assert done.types("shell_start", "tool_call_start") == []
    assert live.model.received("There are 3 files.")
    live.assert_usage(done, calls=len(live.model.requests) - 2, inside=2)


async def test_subagent_events_included(live: LiveAgent) -> None:
    live.script(
        live.delegation("count the files", Shell("echo from-sub"), Say("There are 3 files.")),
        live.answer(Say("The sub-agent found 3 files.")),
    )
    done = await live.run(include_subagent_events=True, **TWO_WAY)
    inside = [event for event in done.events if event.subagent_id is not None]
    assert {event.subagent_id for event in inside} == {done.one("subagent_spawn").subagent_id}
    inside_types = [event.type for event in inside if event.type in {"shell_start", "shell_exit", "message_stop"}]
    assert inside_types == ["shell_start", "shell_exit", "message_stop"]
    assert done.result.messages == ["The sub-agent found 3 files."]


@ALL_AGENTS
async def test_unknown_tool(live: LiveAgent) -> None:
    live.script(live.answer(Mcp("no_such_tool", {"a": 1})), live.answer(Say("There is none.")))
    has_mcp = live.adapter.capabilities.mcp
    done = await live.run(mcp_servers=[live.mcp_server] if has_mcp else [])
    assert done.result.exit_reason == "completed"
    assert done.types("tool_result", "mcp_tool_result") == []
    assert len(done.types("tool_error", "mcp_tool_error")) == 1


@ALL_AGENTS
@BOTH_WAYS
async def test_tools_of_the_caller(live: LiveAgent, way: str) -> None:
    """The agent calls functions of this process: one that returns, one that raises."""
    received: list[tuple[str, int]] = []

    def multiply(text: str, times: int = 2) -> str:
        """Repeat a text.

        Args:
            text: What to repeat.
            times: How often.
        """
        received.append((text, times))
        return f"result: {text * times}"

    async def refuse(reason: str) -> str:
        raise LookupError(f"refused because {reason}")

    live.script(
        live.answer(Mcp("multiply", {"text": "ping", "times": 3}, TOOL_SERVER)),
        live.answer(Mcp("refuse", {"reason": "of rain"}, TOOL_SERVER)),
        live.answer(Say("All done.")),
    )
    done = await live.run(tools=[multiply, refuse], **WAYS[way])
    assert done.result.exit_reason == "completed"
    assert received == [("ping", 3)]
    returned, failed = done.one("mcp_tool_result"), done.one("mcp_tool_error")
    assert (returned.server, returned.tool_name) == (TOOL_SERVER, "multiply")
    assert "result: pingpingping" in str(returned.output)
    assert "LookupError: refused because of rain" in failed.error
    assert live.model.received("result: pingpingping")
    assert live.model.received("refused because of rain")
