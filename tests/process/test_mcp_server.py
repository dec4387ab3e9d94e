"""`amux mcp-server`, driven by the official MCP client over real pipes."""

import signal
import sys
from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from tests.process.installed_command import Installed
from tests.process.mcp_client import (
    ASKS,
    HELLO,
    PATIENCE,
    WORKS,
    Mode,
    Refusal,
    call_tool,
    delegator,
    initialize,
    send_message,
    start_raw,
    wait_until_gone,
    write,
)

from agent_mux.process.marker import processes_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
"""The server is a separate process, so the event loop of the client does not matter."""
EVERY_TOOL = [
    "list_agents", "start_run", "watch_run", "answer", "send_prompt", "stop_run", "compare_agents", "watch_comparison",
    "list_runs", "get_result",
]  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_run_is_started_watched_and_returns_a_result(installed: Installed, mode: Mode) -> None:
    body = "print('noise', file=sys.stderr, flush=True);" + HELLO
    async with delegator(installed, body=body, mode=mode) as tool:
        listed = await tool.client.list_tools()
        assert [one.name for one in listed.tools] == EVERY_TOOL
        started = await tool("start_run", agent="scripted", prompt="Write hello.\nThen exit.")
        assert started["prompt"] == "Write hello. Then exit."
        assert started["cwd"] == str(installed.home)
        seen = await tool.watch_to_end(started["runId"])
        assert [(one["kind"], one["text"]) for one in seen["entries"] if one["kind"] == "message"] == [
            ("message", "hello")
        ]
        assert (seen["state"], seen["result"]["exitReason"], seen["result"]["text"]) == (
            "completed",
            "completed",
            "hello",
        )
        whole = await tool("get_result")
        assert (whole["runId"], whole["over"]) == (started["runId"], True)
        assert whole["result"]["text"] == "hello"
        [one] = (await tool("list_runs"))["runs"]
        assert (one["runId"], one["state"]) == (started["runId"], "completed")
    await wait_until_gone(started["runId"])


@pytest.mark.slow
async def test_agents_are_listed_with_the_remaining_limits(installed: Installed) -> None:
    async with delegator(installed, "--agent", "scripted", "--approvals", "prompt", "--max-cost", 3) as tool:
        reported = await tool("list_agents")
    [scripted] = reported["agents"]
    assert (scripted["name"], scripted["installed"]) == ("scripted", True)
    assert scripted["approvalModes"] == ["deny", "prompt"]
    assert "further prompts (keepOpen)" in scripted["can"]
    assert reported["limits"]["roots"] == [str(installed.home)]
    assert (reported["limits"]["costLeftUsd"], reported["limits"]["maxDepth"]) == (3.0, 2)


@pytest.mark.slow
async def test_pending_approval_is_shown_and_answered(installed: Installed) -> None:
    async with delegator(installed, "--approvals", "prompt", body=ASKS) as tool:
        run = await tool.start()
        seen = await tool("watch_run", runId=run)
        [pending] = seen["pending"]
        assert (pending["kind"], pending["risk"]) == ("approval", "medium")
        assert "rm -rf build" in pending["text"]
        with pytest.raises(Refusal, match="requires the field 'text'"):
            await tool("answer", runId=run, decision="text")
        with pytest.raises(Refusal, match="Text does not answer the approval"):
            await tool("answer", runId=run, decision="text", text="yes")
        with pytest.raises(Refusal, match="INTERACTION_NOT_FOUND"):
            await tool("answer", runId=run, decision="approve", interactionId="unknown")
        answered = await tool("answer", runId=run, decision="approve", interactionId=pending["interactionId"])
        assert "pending" not in answered
        seen = await tool.watch_to_end(run)
        assert seen["result"]["text"] == "the answer was yes"
        with pytest.raises(Refusal, match=r"\[NO_PENDING_INTERACTION\]"):
            await tool("answer", runId=run, decision="approve")


@pytest.mark.slow
async def test_pending_edit_has_its_diff(installed: Installed) -> None:
    edit = {"path": "a.txt", "old_string": "x", "new_string": "y"}
    body = f"read(); emit(session='S'); emit(edit={edit!r}); read(); emit(done=True); drain()"
    async with delegator(installed, "--approvals", "prompt", body=body) as tool:
        run = await tool.start()
        [pending] = (await tool("watch_run", runId=run))["pending"]
        assert pending["diff"].endswith("-x\n+y\n")
        assert "cut" not in pending
        await tool("stop_run", runId=run)


@pytest.mark.slow
async def test_question_is_answered_with_an_option(installed: Installed) -> None:
    body = "read(); emit(question='Which?'); emit(text=read()['answer']); emit(over=1); emit(done=1); drain()"
    async with delegator(installed, "--approvals", "prompt", body=body) as tool:
        run = await tool.start()
        [pending] = (await tool("watch_run", runId=run))["pending"]
        assert (pending["kind"], pending["options"]) == ("question", ["red", "blue"])
        await tool("answer", runId=run, decision="option", option=1)
        assert (await tool.watch_to_end(run))["result"]["text"] == "blue"


@pytest.mark.slow
async def test_permission_requests_are_denied_by_default(installed: Installed) -> None:
    async with delegator(installed, body=ASKS) as tool:
        run = await tool.start()
        seen = await tool.watch_to_end(run)
        assert seen["result"]["text"] == "the answer was no"
        assert "failed" in {one["kind"] for one in seen["entries"]}
        with pytest.raises(Refusal, match="this server does not allow approval mode 'yolo'; use deny"):
            await tool.start(approvalMode="yolo")


@pytest.mark.slow
async def test_open_run_takes_further_prompts(installed: Installed) -> None:
    body = (
        "emit(session='s')\nwhile line := read(): emit(text=str(line.get('send', 'first'))); emit(over=1); emit(done=1)"
    )
    async with delegator(installed, body=body) as tool:
        run = await tool.start(keepOpen=True)
        seen = await tool("watch_run", runId=run)
        assert (seen["idle"], seen["entries"][-1]["text"]) == (True, "first")
        await tool("send_prompt", runId=run, prompt="second")
        seen = await tool("watch_run", runId=run)
        assert [one["text"] for one in seen["entries"] if one["kind"] == "message"] == ["second"]
        await tool("stop_run", runId=run, when="done")
        seen = await tool.watch_to_end(run)
        assert seen["result"]["exitReason"] == "completed"
        with pytest.raises(Refusal, match=r"\[RUN_NOT_ACTIVE\]"):
            await tool("send_prompt", runId=run, prompt="third")
        assert (await tool("stop_run", runId=run))["delivery"] == "unneeded"


@pytest.mark.slow
async def test_stop_run_aborts_the_run(installed: Installed) -> None:
    async with delegator(installed, body=WORKS) as tool:
        run = await tool.start()
        await tool("watch_run", runId=run, until="news")
        assert (await tool("stop_run", runId=run))["state"] == "aborted"
        assert processes_of(run) == []
        assert (await tool.watch_to_end(run))["result"]["exitReason"] == "aborted"


@pytest.mark.slow
async def test_watch_run_is_bounded_and_reports_progress(installed: Installed) -> None:
    reported: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async with delegator(installed, body=WORKS) as tool:
        run = await tool.start()
        await tool("watch_run", runId=run, until="news")
        seen = await tool.client.call_tool("watch_run", {"runId": run, "waitMs": 5200}, progress_callback=on_progress)
        assert seen.structured_content["state"] == "running"
        assert [(total, message) for _, total, message in reported] == [(5.2, "scripted is running")]
        assert (await tool("watch_run", runId=run, until="now"))["state"] == "running"
        with pytest.raises(Refusal, match=r"waitMs"):
            await tool("watch_run", runId=run, waitMs=999_999_999)


@pytest.mark.slow
async def test_cancelled_call_leaves_nothing_behind(installed: Installed) -> None:
    async with delegator(installed, body=WORKS) as tool:
        run = await tool.start()
        await tool("watch_run", runId=run, until="news")
        with anyio.move_on_after(0.2) as scope:
            await tool("watch_run", runId=run, waitMs=50_000)
        assert scope.cancelled_caught
        with anyio.move_on_after(0) as scope:
            await tool("stop_run", runId=run)
        [one] = (await tool("list_runs"))["runs"]
        assert one["runId"] == run
        await tool("stop_run", runId=run)
        assert (await tool.watch_to_end(run))["result"]["exitReason"] == "aborted"
        assert processes_of(run) == []


@pytest.mark.slow
async def test_entries_are_not_repeated_and_answers_are_bounded(installed: Installed) -> None:
    body = (
        "read(); emit(session='s')\nfor n in range(50): emit(text=f'{n}' + 'x' * 300); emit(over=1)"
        "\nemit(done=1); drain()"
    )
    async with delegator(installed, body=body) as tool:
        run = await tool.start()
        shown: list[str] = []
        answers = 0
        while True:
            seen = await tool("watch_run", runId=run, maxChars=1000)
            assert sum(len(one["text"]) for one in seen.get("entries", [])) <= 1000
            shown += [one["text"] for one in seen.get("entries", []) if one["kind"] == "message"]
            answers += 1
            if "result" in seen:
                break
            assert answers < 100
        assert [text.rstrip("x") for text in shown] == [str(n) for n in range(50)]
        again = await tool("watch_run", runId=run, after=0, maxChars=1000)
        assert (again["entries"][0]["text"].rstrip("x"), again["more"]) == ("0", True)
        part = await tool("get_result", runId=run, fromChar=300, maxChars=1000)
        assert (part["result"]["fromChar"], part["result"]["nextChar"]) == (300, 1300)
        assert len(part["result"]["text"]) == 1000


@pytest.mark.slow
async def test_raw_events_are_returned_in_pages(installed: Installed) -> None:
    body = "read(); emit(session='s'); emit(text='y' * 5000); emit(over=1); emit(done=1); drain()"
    async with delegator(installed, body=body) as tool:
        run = await tool.start()
        await tool.watch_to_end(run)
        events: list[dict[str, object]] = []
        after = 0
        while True:
            seen = await tool("watch_run", runId=run, view="raw", after=after, maxChars=2000)
            events += seen["events"]
            after = seen["next"]
            if not seen.get("more"):
                break
        assert [one["n"] for one in events] == list(range(len(events)))
        assert (events[0]["type"], events[-1]["type"]) == ("session_start", "session_end")
        [delta] = [one for one in events if one["type"] == "text_delta"]
        assert str(delta["cut"]).endswith("more characters)")


@pytest.mark.slow
async def test_output_of_the_delegate_is_sanitized_and_redacted(installed: Installed) -> None:
    body = (
        r"read(); emit(session='s'); emit(text='\x1b]0;owned\x07\x1b[2J\u202esafe\x00 ' + os.environ['X_API_KEY']);"
        "emit(ask='\\x1b[8mrm -rf /'); read(); emit(over=1); emit(done=1); drain()"
    )
    secret = "sk-ant-api03-not-a-real-key-0123456789"  # noqa: S105
    async with delegator(installed, "--approvals", "prompt", body=body, X_API_KEY=secret) as tool:
        run = await tool.start()
        seen = await tool("watch_run", runId=run)
        await tool("answer", runId=run, decision="deny")
        last = await tool.watch_to_end(run)
        raw = await tool("watch_run", runId=run, view="raw", after=0, maxChars=60_000)
        whole = await tool("get_result", runId=run)
    for answer in (seen, last, raw, whole):
        text = str(answer)
        assert secret not in text
        assert not set(text) & set("\x00\x07\x1b\u202e")
        assert "\\x1b" not in text
    assert "rm -rf /" in seen["pending"][0]["text"]


@pytest.mark.slow
async def test_concurrent_and_total_runs_are_limited(installed: Installed) -> None:
    async with delegator(installed, "--max-runs", 1, "--max-runs-total", 2, body=WORKS) as tool:
        run = await tool.start()
        with pytest.raises(Refusal, match=r"the maximum of 1 active runs is reached.* \[BUDGET_EXCEEDED\]"):
            await tool.start()
        await tool("stop_run", runId=run)
        other = await tool.start()
        await tool("stop_run", runId=other)
        with pytest.raises(Refusal, match="all 2 runs of this server have been started"):
            await tool.start()


@pytest.mark.slow
async def test_budget_covers_all_runs(installed: Installed) -> None:
    body = "read(); emit(session='s'); emit(cost=0.6); emit(text='x'); emit(over=1); emit(done=1); drain()"
    async with delegator(installed, "--max-cost", "1.0", body=body) as tool:
        first = await tool.watch_to_end(await tool.start())
        assert first["result"]["costUsd"] == 0.6
        left = (await tool("list_runs"))["limits"]["costLeftUsd"]
        assert left == pytest.approx(0.4)
        second = await tool.watch_to_end(await tool.start())
        assert second["result"]["exitReason"] in {"budget", "aborted"}  # its own limit is the remaining budget
        with pytest.raises(Refusal, match=r"the budget is spent: 1\.2000 of 1 USD"):
            await tool.start()


@pytest.mark.slow
async def test_runs_that_exceed_the_common_budget_are_ended(installed: Installed) -> None:
    body = "read(); emit(session='s'); emit(text='x'); emit(over=1)\nread(); emit(cost=0.6); time.sleep(1000)"
    async with delegator(installed, "--max-cost", "1.0", body=body) as tool:
        runs = [await tool.start(keepOpen=True), await tool.start(keepOpen=True)]
        for run in runs:
            await tool("watch_run", runId=run, until="news")
            await tool("send_prompt", runId=run, prompt="spend")
        ends = {(await tool.watch_to_end(run))["result"]["exitReason"] for run in runs}
        assert ends <= {"aborted", "budget"}


@pytest.mark.slow
async def test_each_run_has_a_time_limit(installed: Installed) -> None:
    async with delegator(installed, "--timeout", "1", body=WORKS) as tool:
        run = await tool.start(timeoutMs=1_000_000)
        assert (await tool.watch_to_end(run))["result"]["exitReason"] == "timeout"


@pytest.mark.slow
async def test_directories_and_agents_are_restricted(installed: Installed) -> None:
    work = installed.home / "work"
    (work / "inner").mkdir(parents=True)
    (work / "out").symlink_to(installed.home)
    body = "read(); emit(session='s'); emit(text=os.getcwd()); emit(over=1); emit(done=1); drain()"
    async with delegator(installed, "--root", work, "--agent", "scripted", body=body) as tool:
        assert (await tool.watch_to_end(await tool.start()))["result"]["text"] == str(work)
        assert (await tool.watch_to_end(await tool.start(cwd="inner")))["result"]["text"] == str(work / "inner")
        for place in ("..", "out", str(installed.home), "/", "inner/../.."):
            with pytest.raises(Refusal, match="allowed: a directory in"):
                await tool.start(cwd=place)
        with pytest.raises(Refusal, match="this server may not start 'replay'; it may start scripted"):
            await tool.start(agent="replay")
        with pytest.raises(Refusal, match="no agent is named"):
            await tool.start(agent="unknown")


@pytest.mark.slow
async def test_depth_and_limits_are_in_the_environment_of_a_run(installed: Installed) -> None:
    body = (
        "read(); emit(session='s'); emit(text=' '.join(f'{n}={v}' for n, v in sorted(os.environ.items())"
        " if n.startswith('AGENT_MUX_') and n.split('_')[2] in ('DEPTH', 'MAX'))); emit(over=1); emit(done=1); drain()"
    )
    flags = ("--max-depth", 5, "--max-cost", 2)
    async with delegator(installed, *flags, body=body, AGENT_MUX_DEPTH="1", AGENT_MUX_MAX_DEPTH="3") as tool:
        reported = (await tool.watch_to_end(await tool.start()))["result"]["text"]
    assert reported == "AGENT_MUX_DEPTH=2 AGENT_MUX_MAX_COST_USD=2.000000 AGENT_MUX_MAX_DEPTH=3"


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"AGENT_MUX_DEPTH": "2"}, {"AGENT_MUX_DEPTH": "1", "AGENT_MUX_MAX_DEPTH": "1"}])
async def test_server_at_the_maximum_depth_starts_nothing(installed: Installed, variables: dict[str, str]) -> None:
    async with delegator(installed, **variables) as tool:
        listed = await tool.client.list_tools()
        starting = {"start_run", "compare_agents"}
        assert [one.name for one in listed.tools] == [name for name in EVERY_TOOL if name not in starting]
        with pytest.raises(Refusal, match=r"the task is already delegated \(depth .\ of .\): do it yourself"):
            await tool.start()
        assert (await tool("list_agents"))["limits"]["runsLeft"] == 0


@pytest.mark.slow
async def test_nested_server_finds_its_depth_without_environment_variables(installed: Installed) -> None:
    """The delegate starts a server with an environment without our variables, as some agents do."""
    inner = (
        "import os, subprocess; env = {k: v for k, v in os.environ.items() if not k.startswith('AGENT_MUX_')};"
        f"done = subprocess.run([{sys.executable!r}, '-m', 'agent_mux.cli.main', 'mcp-server'], env=env,"
        "input='\\n'.join(json.dumps(dict(jsonrpc='2.0', **m)) for m in ("
        "dict(id=0, method='initialize', params=dict(protocolVersion='2025-06-18', capabilities={},"
        " clientInfo=dict(name='x', version='1'))),"
        "dict(method='notifications/initialized'),"
        "dict(id=1, method='tools/call', params=dict(name='list_runs', arguments={})))) + '\\n',"
        "capture_output=True, text=True);"
    )
    body = (
        f"read(); emit(session='s'); {inner} "
        "limits = json.loads(done.stdout.splitlines()[-1])['result']['structuredContent']['limits'];"
        "emit(text=json.dumps(limits)); emit(over=1); emit(done=1); drain()"
    )
    async with delegator(installed, "--max-depth", 7, "--max-cost", 2, body=body) as tool:
        reported = (await tool.watch_to_end(await tool.start()))["result"]["text"]
    assert '"depth": 1' in reported
    assert '"maxDepth": 2' in reported  # its own limit is lower
    assert '"costLeftUsd": 2.0' in reported


@pytest.mark.slow
async def test_invalid_calls_return_descriptive_errors(installed: Installed) -> None:
    async with delegator(installed) as tool:
        for arguments, words in (
            ({}, "no run has been started yet"),
            ({"runId": "unknown"}, "unknown run 'unknown'"),
            ({"runId": 5}, "Expected `str`, got `int`"),
            ({"runId": "x", "wrong": 1}, "unknown field `wrong`; the arguments are: runId, after"),
            ({"runId": "x" * 10_000}, "length <= 64"),
        ):
            with pytest.raises(Refusal, match=words):
                await tool("watch_run", **arguments)
        with pytest.raises(Refusal, match="missing required field `runId`"):
            await tool("stop_run")
        with pytest.raises(Refusal, match="prompt: got"):
            await tool.start(prompt="   ")
        with pytest.raises(Refusal, match="NUL"):
            await tool.start(prompt="a\0b")
        with pytest.raises(MCPError, match="unknown tool 'no_such'"):
            await tool("no_such")
        assert (await tool("list_runs"))["runs"] == []


@pytest.mark.slow
async def test_client_disconnect_ends_all_runs(installed: Installed) -> None:
    body = "read(); emit(session='s'); emit(text='ready'); emit(over=1); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    body += "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True);"
    body += "time.sleep(1000)"
    async with delegator(installed, body=body) as tool:
        runs = [await tool.start(), await tool.start()]
        for run in runs:
            await tool("watch_run", runId=run, until="news")
    await wait_until_gone(*runs)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["eof", "term", "quit", "kill", "deaf"])
async def test_no_process_remains_however_the_client_ends(installed: Installed, how: str) -> None:
    server = start_raw(installed, body=WORKS)
    with server:
        initialize(server)
        run = str(call_tool(server, 1, "start_run", agent="scripted", prompt="go")["runId"])
        assert call_tool(server, 2, "watch_run", runId=run, until="news")["state"] == "running"
        assert server.stdin is not None
        assert server.stdout is not None
        match how:
            case "eof":
                server.stdin.close()
            case "term":
                server.send_signal(signal.SIGTERM)
            case "quit":
                server.send_signal(signal.SIGQUIT)
            case "kill":
                server.kill()
            case "deaf":  # the reader is gone, but the other pipe stays open
                server.stdout.close()
        code = server.wait(PATIENCE)
        assert server.stderr is not None
        assert server.stderr.read() == b""
    assert code == (-signal.SIGKILL if how == "kill" else 0)
    await wait_until_gone(run)


@pytest.mark.slow
async def test_second_signal_kills_a_stubborn_run(installed: Installed) -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WORKS
    server = start_raw(installed, body=body)
    with server:
        initialize(server)
        run = str(call_tool(server, 1, "start_run", agent="scripted", prompt="go")["runId"])
        call_tool(server, 2, "watch_run", runId=run, until="news")
        with anyio.fail_after(PATIENCE):
            while server.poll() is None:  # the first signal ends it in order, the next one kills it
                server.send_signal(signal.SIGTERM)
                await anyio.sleep(0.1)
        assert server.returncode in {0, -signal.SIGTERM}  # the last signal arrives when everything has ended
    await wait_until_gone(run)


@pytest.mark.slow
async def test_malformed_messages_do_no_harm(installed: Installed) -> None:
    server = start_raw(installed)
    with server:
        assert server.stdin is not None
        write(server, b"garbage\n\n{}\n[1]\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
        initialize(server)
        write(server, b'{"jsonrpc":"2.0","id":1}\n' + b"x" * (1 << 24) + b"xx\n" + b'{"jsonrpc":"1.0"}\n')
        write(server, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}\n')
        run = str(call_tool(server, 2, "start_run", agent="scripted", prompt="go")["runId"])
        while "result" not in (seen := call_tool(server, 3, "watch_run", runId=run)):
            pass
        assert seen["result"]["text"] == "hello"
        send_message(server, id=4, method="no/such")
        server.stdin.close()
        assert server.wait(PATIENCE) == 0
        assert server.stdout is not None
        rest = server.stdout.read().splitlines()
        assert all(line.startswith(b'{"jsonrpc":"2.0"') for line in rest)


@pytest.mark.slow
async def test_client_that_stops_reading_keeps_no_process_alive(installed: Installed) -> None:
    """Send requests without reading the answers, then close the pipe."""
    server = start_raw(installed, body=WORKS)
    with server:
        initialize(server)
        run = str(call_tool(server, 1, "start_run", agent="scripted", prompt="go")["runId"])
        for number in range(200):
            send_message(server, id=number + 2, method="tools/list", params={})
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(PATIENCE) == 0
    await wait_until_gone(run)
