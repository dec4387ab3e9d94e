"""`amux acp`, driven by the official client library over real pipes, with a scripted agent."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from acp import Client, RequestError, connect_to_agent, image_block
from acp._transport import memory_transport_pair
from acp.schema import AgentMessageChunk, ToolCallProgress, ToolCallStart, UserMessageChunk
from tests.process.acp_editor import COMMAND, FORMS, Editor, start_editor
from tests.process.conversations import CHAT_AGENT
from tests.process.installed_command import PATIENCE, REPOSITORY, Installed
from tests.process.scripted import MakeClient

from agent_mux.acp_server.serving import serve
from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.anyio
Start = Callable[..., AbstractAsyncContextManager[Editor]]
STORE = REPOSITORY / "tests" / "stores" / "claude" / "2.1.330" / "home"
FIRST = "read(); emit(session='S')\n"
STUBBORN = FIRST + "emit(text='working'); signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(100)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def start(installed: Installed) -> Start:
    @asynccontextmanager
    async def starting(
        *arguments: object,
        agent: str = "scripted",
        body: str = CHAT_AGENT,
        can: Any = None,
        code: int = 0,
        **extra: str,
    ) -> AsyncIterator[Editor]:
        place: Any = {"environment": installed.environment(body, extra), "cwd": installed.home}
        async with start_editor("--agent", agent, *arguments, can=can, code=code, **place) as one:
            yield one

    return starting


@pytest.mark.slow
async def test_prompts_share_one_run_and_updates_precede_the_response(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "hello") == "end_turn"
        assert await editor.ask(session, "again") == "end_turn"
        assert editor.text_of(session) == "echo firstecho again"
        kinds = ["response" if "result" in message else message["method"] for message in editor.wire]
        assert kinds == ["response", "response", "session/update", "response", "session/update", "response"]
    assert processes_of(session) == []


@pytest.mark.slow
async def test_initialize_reports_only_supported_capabilities(start: Start) -> None:
    async with start() as editor:
        can: Any = editor.init_response.agent_capabilities
        assert (can.load_session, can.prompt_capabilities.image, can.mcp_capabilities.http) == (False, False, True)
        assert can.session_capabilities.list is None
        assert editor.init_response.agent_info is not None
        assert editor.init_response.agent_info.name == "amux-scripted"


async def test_text_is_streamed_while_the_agent_writes_it(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    body = (
        FIRST
        + "emit(text='one '); open(os.environ['GO']).read(); emit(text='two'); emit(over=1); emit(done=1); drain()"
    )
    async with start(body=body, GO=str(go)) as editor:
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "continue"))
        await editor.wait_until(lambda seen: seen.text_of(session) == "one ")
        assert not asking.done()
        await asyncio.to_thread(go.write_text, "go")
        assert await asking == "end_turn"
        assert editor.text_of(session) == "one two"


def code_of(error: RequestError) -> str:
    """Return the agent-mux error code."""
    assert error.data is not None
    return str(error.data["code"])


SHELL = (
    FIRST
    + """
emit(shell='make')
emit(ask='make')
emit(text=read()['answer'])
emit(over=True); emit(done=True); drain()"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "answer"), [("allow", "yes"), ("allow_always", "yes"), ("reject", "no"), (None, "no")]
)
async def test_permission_requests_are_shown_in_the_editor(
    start: Start, tmp_path: Path, chosen: str | None, answer: str
) -> None:
    async with start(body=SHELL) as editor:
        editor.decide = lambda _: chosen
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "build") == "end_turn"
        (call, options) = editor.asked[0]
        assert (call.title, call.tool_call_id, call.kind) == ("make", "make", "execute")
        assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
        assert editor.text_of(session) == answer
        begun = next(number for number, message in enumerate(editor.wire) if "tool_call" in json.dumps(message))
        asked = next(n for n, m in enumerate(editor.wire) if m.get("method") == "session/request_permission")
        assert begun < asked


@pytest.mark.slow
async def test_permission_request_for_an_edit_has_the_diff(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    edit = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    body = (
        FIRST
        + f"""
emit(edit={edit!r})
emit(text=read()['answer'])
emit(over=True); emit(done=True); drain()"""
    )
    async with start(body=body) as editor:
        editor.decide = lambda _: "allow"
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "build") == "end_turn"
        ((call, _),) = editor.asked
        assert (call.kind, call.raw_input) == ("edit", edit)
        (text, diff) = call.content
        assert text.content.text == "a.txt"
        assert (diff.type, diff.path) == ("diff", str(tmp_path / "a.txt"))
        assert (diff.old_text, diff.new_text) == ("one\ntwo", "one\n2")


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "answer"), [("yolo", "yes"), ("deny", "no")])
async def test_session_mode_answers_permission_requests_without_the_editor(
    start: Start, tmp_path: Path, mode: str, answer: str
) -> None:
    async with start(body=SHELL) as editor:
        session = await editor.begin(tmp_path)
        await editor.agent.set_session_mode(session_id=session, mode_id=mode)
        assert await editor.ask(session, "build") == "end_turn"
        assert (editor.asked, editor.text_of(session)) == ([], answer)


@pytest.mark.slow
async def test_mode_change_during_a_turn_applies_immediately(start: Start, tmp_path: Path) -> None:
    body = (
        FIRST
        + "emit(ask='one'); read(); emit(ask='two'); emit(text=read()['answer']); emit(over=1); emit(done=1); drain()"
    )
    async with start(body=body) as editor:
        editor.hold = asyncio.Event()
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "build"))
        await editor.wait_until(lambda seen: seen.asked)
        answer = await editor.agent.set_config_option(config_id="mode", session_id=session, value="yolo")
        assert answer.config_options[0].current_value == "yolo"
        editor.hold.set()
        assert await asking == "end_turn"
        assert len(editor.asked) == 1
        assert editor.text_of(session) == "yes"


@pytest.mark.slow
async def test_new_mode_applies_to_the_next_prompt_of_an_agent_without_resume(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        await editor.agent.set_session_mode(session_id=session, mode_id="deny")
        assert await editor.ask(session, "ask it") == "end_turn"
        assert (editor.asked, editor.text_of(session)) == ([], "echo firstit was no")


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "status"), [("allow", "completed"), ("reject", "failed"), (None, "failed")])
async def test_request_without_a_known_tool_call_becomes_a_tool_call(
    start: Start, tmp_path: Path, chosen: str | None, status: str
) -> None:
    async with start() as editor:
        editor.decide = lambda _: chosen
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        assert await editor.ask(session, "ask it") == "end_turn"
        assert editor.calls(session) == [("it", "pending"), ("it", status)]


@pytest.mark.slow
async def test_policy_rules_answer_before_the_editor(start: Start, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rules]]\ndecision = "deny"\ncommands = ["make"]\nreason = "not here"\n')
    async with start("--policy", rules, body=SHELL) as editor:
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "build") == "end_turn"
        assert (editor.asked, editor.text_of(session)) == ([], "no")


@pytest.mark.slow
async def test_cancel_stops_the_turn_and_the_session_continues(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        asking = asyncio.ensure_future(editor.ask(session, "work"))
        await editor.wait_until(lambda seen: seen.text_of(session).endswith("working"))
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        assert await editor.ask(session, "again") == "end_turn"
        assert editor.text_of(session).endswith("echo again")


@pytest.mark.slow
@pytest.mark.promise("editor-cancel-twice")
async def test_second_cancel_changes_nothing(start: Start, tmp_path: Path) -> None:
    """The agent stops in its own time after the first one, and its run continues."""
    body = (
        FIRST
        + """
import pathlib
emit(over=1); emit(done=True)
while (line := read()):
    if 'interrupt' in line:
        emit(text='stopping')
        while not pathlib.Path('go').exists(): time.sleep(0.01)
        emit(stopped=True)
    elif line.get('send') == 'work': emit(text='working')
    else: emit(text='still here'); emit(over=1); emit(done=True)
"""
    )
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        asking = asyncio.ensure_future(editor.ask(session, "work"))
        await editor.wait_until(lambda seen: seen.text_of(session).endswith("working"))
        await editor.agent.cancel(session_id=session)
        await editor.wait_until(lambda seen: seen.text_of(session).endswith("stopping"))
        await editor.agent.cancel(session_id=session)
        await editor.agent.set_session_mode(session_id=session, mode_id="yolo")  # answered after the cancel before it
        (tmp_path / "go").touch()
        assert await asking == "cancelled"
        assert await editor.ask(session, "again") == "end_turn"
        assert editor.text_of(session).endswith("still here")


@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    ["emit(done=True); time.sleep(0.3)", "emit(failed='TOOL_ERROR'); time.sleep(0.3)"],
    ids=["input is open", "input is closed"],
)
async def test_prompt_to_an_exiting_agent_is_answered_by_the_next_one(start: Start, tmp_path: Path, end: str) -> None:
    """A turn can end before its agent has exited. The prompt that arrives between the two is not lost."""
    body = f"read(); emit(session='S'); emit(text='answer '); emit(over=1); {end}"
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        for _ in range(3):
            with suppress(RequestError):  # the turns of the second agent fail
                await editor.ask(session, "hello")
        assert editor.text_of(session) == "answer answer answer "


@pytest.mark.slow
async def test_cancel_during_a_permission_request_ends_the_prompt(start: Start, tmp_path: Path) -> None:
    body = (
        FIRST
        + """
emit(ask='it')
while (line := read()):
    if 'interrupt' in line: emit(stopped=True)
"""
    )
    async with start(body=body) as editor:
        editor.hold = asyncio.Event()
        editor.decide = lambda _: None
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "build"))
        await editor.wait_until(lambda seen: seen.asked)
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        editor.hold.set()


@pytest.mark.slow
async def test_cancel_right_after_the_prompt_stops_the_turn(start: Start, tmp_path: Path) -> None:
    body = (
        FIRST
        + """
while (line := read()):
    if 'interrupt' in line: emit(text='stopped'); emit(over=True); emit(stopped=True)
"""
    )
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "work"))
        await asyncio.sleep(0)  # the prompt is sent first
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        assert editor.text_of(session) == "stopped"


@pytest.mark.slow
async def test_cancel_without_a_prompt_has_no_effect(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        await editor.agent.cancel(session_id=session)
        await editor.agent.cancel(session_id="unknown")
        assert await editor.ask(session, "hello") == "end_turn"


@pytest.mark.slow
async def test_agent_that_ignores_cancel_is_terminated(start: Start, tmp_path: Path, installed: Installed) -> None:
    site = installed.home / "sitecustomize.py"
    site.write_text("import agent_mux.acp_server.session as session\nsession.CANCEL_TIMEOUT = 0.2\n")
    path = f"{installed.environment('')['PYTHONPATH']}:{installed.home}"
    async with start(body=STUBBORN, PYTHONPATH=path) as editor:
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "build"))
        await editor.wait_until(lambda seen: seen.text_of(session) == "working")
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        assert processes_of(session) == []


@pytest.mark.slow
async def test_two_sessions_run_concurrently(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        one, two = await editor.begin(tmp_path), await editor.begin(tmp_path)
        await editor.ask(one, "hello")
        await editor.ask(two, "hello")
        working = asyncio.ensure_future(editor.ask(one, "work"))
        await editor.wait_until(lambda seen: seen.text_of(one).endswith("working"))
        assert await editor.ask(two, "meanwhile") == "end_turn"
        assert not working.done()
        await editor.agent.cancel(session_id=one)
        assert await working == "cancelled"
        assert editor.text_of(two) == "echo firstecho meanwhile"


@pytest.mark.slow
async def test_prompts_of_one_session_run_in_sequence(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        reasons = await asyncio.gather(*(editor.ask(session, word) for word in ("one", "two", "three")))
        assert reasons == ["end_turn"] * 3
        assert editor.text_of(session) == "echo firstecho twoecho three"


QUESTION = FIRST + "emit(question='which?'); emit(text='so ' + read()['answer']); emit(over=1); emit(done=1); drain()"


@pytest.mark.slow
async def test_question_is_a_form_if_the_editor_supports_forms(start: Start, tmp_path: Path) -> None:
    async with start(body=QUESTION, can=FORMS) as editor:
        editor.fill_in = {"answer": "blue"}
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "paint") == "end_turn"
        [(message, mode)] = editor.questions
        assert message == "which?"
        assert mode.requested_schema.properties["answer"].enum == ["red", "blue"]
        assert editor.text_of(session) == "so blue"


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "answer"), [("1", "so blue"), ("reject", "so no"), (None, "so no")])
async def test_question_is_a_choice_without_form_support(
    start: Start, tmp_path: Path, chosen: str | None, answer: str
) -> None:
    async with start(body=QUESTION) as editor:
        editor.decide = lambda _: chosen
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "paint") == "end_turn"
        [(call, options)] = editor.asked
        assert call.title == "which?"
        assert [option.name for option in options] == ["red", "blue", "Do not answer"]
        assert editor.text_of(session) == answer


@pytest.mark.slow
async def test_crashed_agent_returns_an_error_with_its_stderr(start: Start, tmp_path: Path) -> None:
    body = FIRST + "emit(text='so far'); print('out of cheese', file=sys.stderr); sys.exit(3)"
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        with pytest.raises(RequestError, match=r"exited with code 3 .*out of cheese") as raised:
            await editor.ask(session, "hello")
        assert raised.value.data == {"code": "AGENT_CRASH", "recoverable": False}
        assert editor.text_of(session) == "so far"
        with pytest.raises(RequestError, match="start a new session"):
            await editor.ask(session, "still there?")
        assert await editor.begin(tmp_path) != session


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "json_rpc"), [("AUTH_ERROR", -32000), ("RATE_LIMITED", -32603), ("AGENT_CRASH", -32603)]
)
async def test_failed_turn_returns_an_error(start: Start, tmp_path: Path, code: str, json_rpc: int) -> None:
    body = FIRST + f"emit(failed='{code}'); drain()"
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        with pytest.raises(RequestError, match="the agent reported a failure") as raised:
            await editor.ask(session, "hello")
        assert (raised.value.code, code_of(raised.value)) == (json_rpc, code)


@pytest.mark.slow
async def test_full_context_returns_stop_reason_max_tokens(start: Start, tmp_path: Path) -> None:
    async with start(body=FIRST + "emit(failed='CONTEXT_EXCEEDED'); drain()") as editor:
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "hello") == "max_tokens"


@pytest.mark.slow
async def test_missing_agent_returns_agent_not_installed(start: Start, tmp_path: Path) -> None:
    async with start(AMUX_SCRIPTED_EXECUTABLE="/nowhere/at/all") as editor:
        with pytest.raises(RequestError, match="/nowhere/at/all") as raised:
            await editor.begin(tmp_path)
        assert code_of(raised.value) == "AGENT_NOT_INSTALLED"


@pytest.mark.slow
async def test_invalid_requests_are_refused_and_the_connection_stays_open(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        with pytest.raises(RequestError, match="cwd") as raised:
            await editor.begin(tmp_path / "missing")
        assert raised.value.code == -32602
        session = await editor.begin(tmp_path)
        with pytest.raises(RequestError, match="no session 'x'"):
            await editor.ask("x", "hello")
        with pytest.raises(RequestError, match="attachments"):
            await editor.agent.prompt(session_id=session, prompt=[image_block("aGk=", "image/png")])
        with pytest.raises(RequestError, match="a non-empty text"):
            await editor.ask(session, "  ")
        with pytest.raises(RequestError, match="prompt, yolo, deny"):
            await editor.agent.set_session_mode(session_id=session, mode_id="wild")
        with pytest.raises(RequestError, match="no values"):
            await editor.agent.set_config_option(config_id="colour", session_id=session, value="red")
        assert await editor.ask(session, "hello") == "end_turn"


@pytest.mark.slow
async def test_mcp_servers_of_the_editor_reach_the_run(start: Start, tmp_path: Path, installed: Installed) -> None:
    servers = [
        {"name": "my files!", "command": "/bin/files", "args": ["-x"], "env": [{"name": "KEY", "value": "sesame-open"}]}
    ]
    async with start() as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=servers)
        await editor.ask(answer.session_id, "hello")
    journal = (installed.home / "config" / "runs" / f"{answer.session_id}.journal").read_bytes()
    assert b'"name":"my_files_"' in journal
    assert b"sesame-open" not in journal


@pytest.mark.slow
async def test_close_session_ends_its_run(start: Start, tmp_path: Path) -> None:
    async with start() as editor:
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        assert processes_of(session) != []
        await editor.agent.close_session(session_id=session)
        assert processes_of(session) == []
        with pytest.raises(RequestError, match="no session"):
            await editor.ask(session, "hello")


@pytest.mark.slow
@pytest.mark.parametrize("body", [CHAT_AGENT, STUBBORN], ids=["waits", "stubborn"])
async def test_no_process_remains_after_the_editor_disconnects(start: Start, tmp_path: Path, body: str) -> None:
    async with start(body=body) as editor:
        session = await editor.begin(tmp_path)
        asking = asyncio.ensure_future(editor.ask(session, "hello"))
        await editor.wait_until(lambda seen: seen.text_of(session))
        assert processes_of(session) != []
    await asyncio.gather(asking, return_exceptions=True)
    assert processes_of(session) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 0),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGQUIT, -signal.SIGQUIT),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
async def test_no_process_remains_after_the_server_is_killed(
    start: Start, tmp_path: Path, number: int, code: int
) -> None:
    async with start(code=code) as editor:
        session = await editor.begin(tmp_path)
        await editor.ask(session, "hello")
        asking = asyncio.ensure_future(editor.ask(session, "work"))
        await editor.wait_until(lambda seen: seen.text_of(session).endswith("working"))
        editor.process.send_signal(number)
        await editor.process.wait()
        await asyncio.gather(asking, return_exceptions=True)
    with anyio.fail_after(PATIENCE):
        while processes_of(session):  # noqa: ASYNC110  # the reaper ends them; no event reports it
            await anyio.sleep(0.02)


@pytest.mark.slow
def test_malformed_lines_are_answered_with_errors(installed: Installed, tmp_path: Path) -> None:
    lines = [
        b"\xff\xfe garbage", b"", b"42", b"[]", b'"x"', b"null", b"[" * 100_000, b'{"id":[1],"result":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":{}}', b'{"jsonrpc":"2.0","id":99,"result":{}}', b"{}",
        b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', b'{"jsonrpc":"2.0","id":2,"method":"session/new"}',
        b'{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":5}}',
        b'{"jsonrpc":"2.0","method":"session/cancel","params":[]}',
        b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}',
    ]  # fmt: skip
    done = exchange(installed, b"\n".join(lines) + b"\n", b'"id":4')
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    codes = sorted(answer["error"]["code"] for answer in answers if answer["id"] is None)
    assert codes == [-32700] * 2 + [-32600] * 6
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert [by_id[number]["error"]["code"] for number in (1, 2, 3)] == [-32601, -32602, -32602]
    assert by_id[4]["result"]["protocolVersion"] == 1
    assert done.returncode == 0


@pytest.mark.slow
def test_oversized_message_is_refused(installed: Installed) -> None:
    site = installed.home / "sitecustomize.py"
    site.write_text("import agent_mux.acp_server.transport as transport\ntransport.LONGEST_MESSAGE = 1000\n")
    path = f"{installed.environment('')['PYTHONPATH']}:{installed.home}"
    long = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 500_000 + b'"}\n'
    message = b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = exchange(installed, long + message, b'"id":4', PYTHONPATH=path)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [None, 4]


@pytest.mark.slow
def test_slow_editor_receives_all_updates(installed: Installed, tmp_path: Path) -> None:
    flooded = tmp_path / "flooded"
    with start_server(installed, {}) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(number: int, method: str, **params: Any) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]

        def answer(number: int) -> tuple[str, dict[str, Any]]:
            text = ""
            for line in iter(process.stdout.readline, b""):  # type: ignore[union-attr]
                message = json.loads(line)
                if message.get("id") == number:
                    return text, message
                text += message["params"]["update"].get("content", {}).get("text", "")
            raise AssertionError("the output ended")

        ask(1, "session/new", cwd=str(tmp_path), mcpServers=[])
        session = answer(1)[1]["result"]["sessionId"]
        ask(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hello"}])
        answer(2)
        ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": f"flood {flooded}"}])
        deadline = time.monotonic() + PATIENCE
        while not flooded.exists():  # the agent has written everything and was not blocked
            assert time.monotonic() < deadline
            time.sleep(0.02)
        text, message = answer(3)
        assert text == "".join(f"line {number} of a flood\n" for number in range(5000))
        assert message["result"]["stopReason"] == "end_turn"
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.mark.slow
def test_standard_output_contains_only_protocol_messages(installed: Installed) -> None:
    site = installed.home / "sitecustomize.py"
    site.write_text(
        "import agent_mux.acp_server.capabilities as capabilities\nown = capabilities.initialize_response\n"
        "def noisy(adapter):\n print('noise'); import os; os.system('echo more noise'); return own(adapter)\n"
        "capabilities.initialize_response = noisy\n"
    )
    message = b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}\n'
    path = f"{installed.environment('')['PYTHONPATH']}:{installed.home}"
    done = exchange(installed, message, b'"id":4', PYTHONPATH=path)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [4]
    assert b"more noise" in done.stderr


def start_server(installed: Installed, extra: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start `amux acp` with pipes that the test reads and writes."""
    environment = installed.environment(CHAT_AGENT, extra)
    tree = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] += f":{tree}" if tree else ""
    return subprocess.Popen(
        [*COMMAND, "--agent", "scripted"], env=environment, cwd=installed.home,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def exchange(installed: Installed, data: bytes, until: bytes, **extra: str) -> "subprocess.CompletedProcess[bytes]":
    """Send data, wait for an answer, close the pipes and return the exit code and the output."""
    with start_server(installed, extra) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(data)
        process.stdin.flush()
        first = b""
        while until not in first:
            line = process.stdout.readline()
            assert line, "the output ended"
            first += line
        rest, errors = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess([], process.returncode, first + rest, errors)


@pytest.mark.slow
async def test_stored_session_is_listed_and_loaded_with_its_history(
    start: Start, installed: Installed, tmp_path: Path
) -> None:
    shutil.copytree(STORE, installed.home, dirs_exist_ok=True)
    async with start(agent="claude", AMUX_CLAUDE_EXECUTABLE=shutil.which("false") or "") as editor:
        assert editor.init_response.agent_capabilities is not None
        assert editor.init_response.agent_capabilities.load_session
        listed = await editor.agent.list_sessions()
        one = listed.sessions[0]
        answer = await editor.agent.load_session(cwd=str(tmp_path), session_id=one.session_id, mcp_servers=[])
        assert answer.modes.current_mode_id == "prompt"
        history = editor.updates_of(one.session_id)
        assert isinstance(history[0], UserMessageChunk)
        assert any(isinstance(update, AgentMessageChunk) for update in history)
        with pytest.raises(RequestError, match="before its closing message"):
            await editor.ask(one.session_id, "continue")
        with pytest.raises(RequestError, match="no stored session") as raised:
            await editor.agent.load_session(cwd=str(tmp_path), session_id="nothing", mcp_servers=[])
        assert raised.value.code == -32002


@pytest.mark.slow
async def test_tool_output_is_shown_while_the_tool_runs(start: Start, tmp_path: Path) -> None:
    body = FIRST + "emit(ran='make'); emit(over=True); emit(done=True); drain()"
    async with start("--yolo", body=body) as editor:
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "build") == "end_turn"
        updates = [
            update for update in editor.updates_of(session) if isinstance(update, ToolCallStart | ToolCallProgress)
        ]
        assert editor.calls(session)[0] == ("Shell", "pending")
        assert updates[-1].status == "completed"
        assert "'text': '!'" in str(updates[-1].model_dump()["content"])


@pytest.mark.slow
async def test_replay_agent_plays_recordings(start: Start, tmp_path: Path) -> None:
    async with start(agent="replay", AMUX_REPLAY_SPEED="0") as editor:
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "demo") == "end_turn"
        assert "Both pass." in editor.text_of(session)
        assert await editor.ask(session, "demo") == "end_turn"
        with pytest.raises(RequestError, match="a recording"):
            await editor.ask(session, "what is this?")


async def test_serve_works_with_any_transport_of_the_library(make_client: MakeClient, tmp_path: Path) -> None:
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(PATIENCE):
        serving = asyncio.ensure_future(serve(make_client(CHAT_AGENT), "scripted", {}, theirs))
        editor = Editor()
        connection = connect_to_agent(cast("Client", editor), ours)
        await editor.agent.initialize(protocol_version=1)
        session = await editor.begin(tmp_path)
        assert await editor.ask(session, "hello") == "end_turn"
        await connection.close()
        await serving
    assert processes_of(session) == []
