"""The control socket of a run: what other processes of the same user can do, and what hostile ones cannot."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.process.control_client import PATIENCE, BareClient, close_all, in_thread, socket_of, wait_for
from tests.process.scripted import ScriptedMux

from agent_mux import AgentMux, AgentMuxError, Approve
from agent_mux.control import places, server
from agent_mux.control.messages import MAX_REQUEST

ASKS = "read(); emit(session='S'); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
WAITS = "read(); emit(session='S'); emit(text='on it'); emit(text=read()['send']); emit(done=True); drain()"
pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tmp_path / "runtime"
    monkeypatch.setenv("AGENT_MUX_RUNTIME_DIR", str(directory))
    yield directory
    close_all()


async def test_only_the_owner_can_reach_the_socket_and_it_is_gone_after_the_run(tmp_path: Path, runtime: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client(ASKS) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE)
        path = await socket_of(run, tmp_path / "config")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [stat.S_IMODE(one.stat().st_mode) for one in (path.parent, runtime)] == [0o700, 0o700]
        await run.abort()
    assert not runtime.exists()  # noqa: ASYNC240


async def test_another_client_answers_an_approval_and_receives_every_event_and_the_result(tmp_path: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client(ASKS) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE)
        run.interaction.keep_open()  # the request may precede the client
        client = await in_thread(BareClient, await socket_of(run, tmp_path / "config"))
        with anyio.fail_after(PATIENCE):
            while not run.interaction.pending:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        status = await in_thread(client.ask, {"type": "status", "id": 1})
        (pending,) = status["run"]["pending"]
        approve = {"type": "approve", "interactionId": pending["id"]}
        client.send({"type": "subscribe", "start": 0, "id": 2}, approve)
        lines = await in_thread(client.rest)
        events = [event async for event in run]
        result = await run
    names = [line["type"] for line in lines]
    assert [name for name in names if name in {event.type for event in events}] == [event.type for event in events]
    assert (names[-1], lines[-1]["exitReason"], lines[-1]["text"]) == ("run_result", "completed", result.text)
    assert [line["delivery"] for line in lines if line.get("command") == "approve"] == ["applied"]


async def test_commands_steer_queue_interrupt_pause_and_end_the_run(tmp_path: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client("read(); emit(text='x'); time.sleep(1000)") as mux:
        run = mux.run(prompt="hi", interactive=True, grace_period=0.2)
        path = await socket_of(run, tmp_path / "config")
        client = await in_thread(BareClient, path)

        async def ask(**command: object) -> str:
            answer = await in_thread(client.ask, command)
            return str(answer.get("delivery") or answer["error"]["code"])

        assert await ask(type="steer", text="more") == "merged"
        assert await ask(type="queue", text="later") == "queued"
        assert await ask(type="interrupt") == "applied"
        assert (await ask(type="pause"), run.state) == ("applied", "paused")
        assert await ask(type="pause") == "INVALID_STATE_TRANSITION"
        assert (await ask(type="resume"), run.state) == ("applied", "running")
        assert await ask(type="approve") == "NO_PENDING_INTERACTION"
        assert await ask(type="abort") == "applied"
        assert (await run).exit_reason == "aborted"


async def test_hostile_clients_get_errors_and_do_not_affect_the_run(tmp_path: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client(WAITS) as mux:
        run = mux.run(prompt="hi", interactive=True, timeout=PATIENCE)
        path = await socket_of(run, tmp_path / "config")
        client = await in_thread(BareClient, path)
        for bad in (b"no json", b"[]", b'{"type":"fly"}', b"\xff\xfe", b"[" * 5000, {"type": "subscribe", "start": -1}):
            answer = await in_thread(client.ask, bad)
            assert (answer["type"], answer["error"]["code"]) == ("command_error", "VALIDATION_ERROR")
        await in_thread(lambda: client.send(b" " * (MAX_REQUEST + 100)))
        assert "bytes" in (await in_thread(client.receive))["error"]["message"]
        assert (await in_thread(client.ask, {"type": "status"}))["type"] == "ack"
        others = [await in_thread(BareClient, path) for _ in range(server.MAX_CONNECTIONS)]
        assert others[-1].hello["error"]["code"] == "LIMIT_EXCEEDED"
        for other in others:
            other.close()
        await run.send("bye")
        await run.close()
        assert (await run).text.endswith("bye")


@pytest.mark.slow
async def test_a_watcher_that_never_reads_does_not_delay_the_run_and_others_receive_the_same_events(
    tmp_path: Path,
) -> None:
    body = "read()\nfor n in range(3000): emit(text='x' * 2000)\nemit(done=True); drain()"
    async with ScriptedMux(tmp_path / "config").client(body) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE, event_buffer_size=50)
        path = await socket_of(run, tmp_path / "config")
        stuck = await in_thread(BareClient, path)
        stuck.send({"type": "subscribe"})
        readers = [await in_thread(BareClient, path) for _ in range(2)]
        seen: list[list[str]] = []

        async def read(client: BareClient) -> None:
            client.send({"type": "subscribe"})
            seen.append([line["delta"] for line in await in_thread(client.rest) if line["type"] == "text_delta"])

        async with anyio.create_task_group() as tasks:
            for reader in readers:
                tasks.start_soon(read, reader)
            result = await run
    assert result.exit_reason == "completed"
    assert seen[0] == seen[1][: len(seen[0])] or seen[1] == seen[0][: len(seen[1])]
    stuck.close()


async def test_processes_of_the_run_cannot_approve_its_requests(tmp_path: Path) -> None:
    body = """
import glob, socket
read(); emit(ask='it')
while not (found := glob.glob(os.environ["AGENT_MUX_RUNTIME_DIR"] + "/*/*.sock")): time.sleep(0.01)
def ask():
    os.chdir(os.path.dirname(found[0]))
    client = socket.socket(socket.AF_UNIX); client.connect(os.path.basename(found[0])); lines = client.makefile("rwb")
    lines.readline(); lines.write(b'{"type":"approve"}\\n'); lines.flush()
    return json.loads(lines.readline())["error"]["code"]
emit(text=ask()); emit(text=read()["answer"]); emit(done=True); drain()
"""
    async with ScriptedMux(tmp_path / "config").client(body) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE)
        async for event in run:
            if event.type == "text_delta" and run.interaction.pending:
                await run.interaction.respond(run.interaction.pending[0].id, Approve())
        assert (await run).text == "FORBIDDENyes"


async def test_a_run_without_a_usable_runtime_directory_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENT_MUX_RUNTIME_DIR", str(tmp_path / "file"))
    async with ScriptedMux(tmp_path / "config").client("read(); emit(text='ok'); emit(done=True); drain()") as mux:
        assert (await mux.run(prompt="hi", timeout=PATIENCE)).text == "ok"
    assert "not a directory" in caplog.text


async def test_a_client_without_control_sockets_creates_none(tmp_path: Path, runtime: Path) -> None:
    body = "read(); emit(text=str(os.path.exists(os.environ['AGENT_MUX_RUNTIME_DIR']))); emit(done=True); drain()"
    async with ScriptedMux(tmp_path / "config").client(body, control_sockets=False) as mux:
        assert (await mux.run(prompt="hi", timeout=PATIENCE)).text == "False"
    assert not runtime.exists()  # noqa: ASYNC240


HANGS = "read(); emit(session='S'); emit(ask='it'); time.sleep(1000)"
OWNER = f"""
import sys, anyio
from pathlib import Path
from tests.process.scripted import ScriptedMux
async def main():
    async with ScriptedMux(Path(sys.argv[1])).client({HANGS!r}) as mux:
        run = mux.run(prompt="hi", tags=("mine",))
        run.interaction.keep_open()  # somebody in another process will answer
        await run
anyio.run(main)
"""


def start_owner(config_dir: Path) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).parents[2])
    return subprocess.Popen([sys.executable, "-c", OWNER, str(config_dir)], cwd=root, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_run_of_another_process_is_listed_answered_and_after_kill_9_its_socket_is_pruned(tmp_path: Path) -> None:
    config = tmp_path / "config"
    mux = ScriptedMux(config).client("")
    owner = start_owner(config)
    try:
        (record,) = wait_for(lambda: [one for one in mux.runs.list(state="alive") if one.pending])
        assert (record.pid, record.state, record.tags, record.prompt) == (owner.pid, "running", ("mine",), "hi")
        assert mux.runs.find(record.run_id[:20].lower()) == record or mux.runs.find().run_id == record.run_id
        assert mux.runs.prune(keep=0) == []
        answer = mux.runs.send(record, {"type": "deny", "reason": "no"})
        assert answer["delivery"] == "applied"
        owner.send_signal(signal.SIGKILL)
        owner.wait(PATIENCE)
        assert list(places.sockets(config))
        (lost,) = wait_for(lambda: mux.runs.list(state="over"))
        assert (lost.state, lost.exit_reason, lost.session_id) == ("lost", "lost", "S")
        assert list(places.sockets(config)) == []
        with pytest.raises(AgentMuxError) as error:
            mux.runs.send(record, {"type": "interrupt"})
        assert error.value.code == "RUN_NOT_ACTIVE"
        assert mux.runs.send(record, {"type": "abort"})["delivery"] == "unneeded"
        assert [one.run_id for one in mux.runs.prune(keep=0, dry_run=True)] == [record.run_id]
        assert [one.run_id for one in mux.runs.prune(keep=0)] == [record.run_id]
        assert mux.runs.list() == []
    finally:
        owner.kill()
        owner.wait()


@pytest.mark.slow
def test_a_stopped_process_is_listed_as_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.control.client.STATUS_TIMEOUT", 0.5)
    config = tmp_path / "config"
    mux = ScriptedMux(config).client("")
    owner = start_owner(config)
    try:
        wait_for(lambda: [one for one in mux.runs.list(state="alive") if one.pending])
        owner.send_signal(signal.SIGSTOP)
        (record,) = mux.runs.list()
        assert record.state == "running"
        assert "does not answer" in (record.problem or "")
    finally:
        owner.kill()
        owner.wait()


@pytest.mark.slow
def test_lines_of_hello_have_the_version(tmp_path: Path) -> None:
    owner = start_owner(tmp_path / "config")
    try:
        path = wait_for(lambda: next(places.sockets(tmp_path / "config"), None))
        hello = BareClient(path).hello
        assert (hello["protocol"], hello["version"]) == ("agent-mux-control", 1)
        assert json.dumps(hello["run"]["pid"]) == str(owner.pid)
        assert Path(hello["run"]["cwd"]).samefile(Path(__file__).parents[2])
    finally:
        owner.kill()
        owner.wait()


async def test_a_client_of_a_newer_protocol_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.control.server.VERSION", 2)
    async with ScriptedMux(tmp_path / "config").client(ASKS) as mux:
        run = mux.run(prompt="hi", grace_period=0.2)
        await socket_of(run, tmp_path / "config")
        other = AgentMux(config_dir=tmp_path / "config", adapters=mux.adapters)
        (record,) = await in_thread(other.runs.list)
        assert "another version of agent-mux" in (record.problem or "")
        await run.abort()
